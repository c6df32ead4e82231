"""Searches that belong together embed each question once, at the cost of the first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import EmbedderUnavailable
from memoranda.providers.embeddings.base import Embedded, Task
from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.store.retrieval.questions import Questions
from memoranda.text.analysis import language_in


class Counting(HashEmbedder):
    """The hash embedder, which notes what it reads and waits until `answering` is set."""

    languages = frozenset({"en"})

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(16, 1)
        self.error = error
        self.asked: list[tuple[str, ...]] = []
        self.answering = asyncio.Event()

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        self.asked.append(tuple(texts))
        await self.answering.wait()
        if self.error is not None:
            raise self.error
        return await super().embed(texts, task)


def asked(
    rc: BlockingMemoranda,
    work: Callable[[Counting, Questions], Awaitable[Any]],
    error: Exception | None = None,
    below: str = "",
) -> Any:
    """The result of work with the questions of a tenant of its own."""

    async def run() -> Any:
        embedder = Counting(error)
        embedder.answering.set()
        questions = Questions(rc.inner.core.costs, embedder, "asker", below)
        try:
            return await work(embedder, questions)
        finally:
            await questions.end()

    return rc.portal.call(run())


def test_a_text_is_read_once_and_each_search_is_an_operation(rc: BlockingMemoranda) -> None:
    async def work(embedder: Counting, questions: Questions) -> None:
        found = await asyncio.gather(*(questions.embedded([text]) for text in ("one", "two", "one")))
        found.append(await questions.embedded(["two"]))
        assert embedder.asked == [("one",), ("two",)]
        vectors = [embedded[0].vector for embedded, _ in found if embedded is not None]
        assert np.array_equal(vectors[0], vectors[2])
        assert np.array_equal(vectors[1], vectors[3])
        assert not np.array_equal(vectors[0], vectors[1])

    asked(rc, work)
    (spent,) = rc.usage(tenant="asker").data
    assert (spent.purpose, spent.operations, spent.texts_embedded) == ("search", 4, 2)


def test_the_model_reads_what_is_below_and_the_question_has_its_own_language(rc: BlockingMemoranda) -> None:
    async def work(embedder: Counting, questions: Questions) -> None:
        embedded, _ = await questions.embedded(["Where did the cat go in the morning?"])
        assert embedder.asked == [("Where did the cat go in the morning?" + below,)]
        assert language_in(embedder.asked[0][0]) == "de"
        assert embedded is not None
        assert embedded[0].covered

    below = "\nDie Katze ist heute nicht da, und wir wissen nicht, wohin sie am Morgen gegangen ist."
    asked(rc, work, below=below)


def test_a_model_that_does_not_answer_is_asked_once(rc: BlockingMemoranda) -> None:
    async def work(embedder: Counting, questions: Questions) -> None:
        for _ in range(2):
            assert await questions.embedded(["one"]) == (None, [])
        assert len(embedder.asked) == 1

    asked(rc, work, EmbedderUnavailable("away"))


def test_a_search_that_is_cancelled_leaves_the_embedding_to_others(rc: BlockingMemoranda) -> None:
    async def work(embedder: Counting, questions: Questions) -> None:
        embedder.answering.clear()
        first, second = (asyncio.ensure_future(questions.embedded(["one"])) for _ in range(2))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        embedder.answering.set()
        assert (await second)[0] is not None
        assert first.cancelled()
        assert len(embedder.asked) == 1

    asked(rc, work)


def test_the_end_cancels_what_is_pending(rc: BlockingMemoranda) -> None:
    async def work(embedder: Counting, questions: Questions) -> None:
        embedder.answering.clear()
        search = asyncio.ensure_future(questions.embedded(["one"]))
        await asyncio.sleep(0)
        await questions.end()
        assert await asyncio.gather(search, return_exceptions=True)
        assert search.cancelled()

    asked(rc, work)
