"""The sources that earlier answers name behind their quotes are not quoted; the same words of a user are."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from memoranda.errors import EmbedderUnavailable
from memoranda.providers.chat.base import Source
from memoranda.providers.chat.quoting import MAX_EMBEDDED, best
from memoranda.providers.embeddings.base import Calibration, Embedded, Embedder, Span, Task
from memoranda.types import KINDS
from support.growth import grows_in_proportion

ANSWER = "assistant, 14 October 2026"


def quoted(question: str, text: str, title: str) -> list[str]:
    source = Source(number=0, kind="memory", text=text, title=title)
    return [sentence.text for sentence in asyncio.run(best(question, [source]))]


@pytest.mark.parametrize("title", ["note", "Ana, 13 October 2026", "13 October 2026"])
@pytest.mark.parametrize("words", ["(memory: 32 GB)", "(memory: note)", "(memory: Ana, 13 October 2026)"])
def test_words_of_a_user_are_quoted_also_if_they_look_like_a_source(words: str, title: str) -> None:
    text = f"The new laptop {words} is on the desk in room 4."
    assert quoted("How much memory does the laptop have?", text, title) == [text]


@pytest.mark.parametrize(
    "source",
    [
        "Ana, 13 October 2026",
        "Ana (she/her), 13 October 2026",
        "13 October 2026",
        "fact since 02 March 2026",
        *KINDS,
    ],
)
def test_the_source_that_an_answer_names_is_not_quoted(source: str) -> None:
    text = f"Tim lives in Rome (memory: {source})"
    assert quoted("Where does Tim live?", text, ANSWER) == ["Tim lives in Rome"]
    assert quoted("Where does Tim live?", text, "assistant") == ["Tim lives in Rome"]


def test_of_an_answer_only_sources_are_left_out() -> None:
    text = "The new laptop (memory: 32 GB) was bought by Ana (in Leipzig, 13 October 2026)."
    assert quoted("How much memory does the laptop have?", text, ANSWER) == [text]
    files = "The laptop has 32 GB. (memory: laptops.md) The laptop is blue. (memory: laptops (new).md)"
    assert quoted("How much does the laptop have?", files, ANSWER)[0] == "The laptop has 32 GB."
    assert quoted("Is the laptop blue?", files, ANSWER)[0] == "The laptop is blue."


@pytest.mark.parametrize(
    "part", [" (memory: ", ". (memory: (a) b, 13", " (memory: a (memory: b)", " (memory: ("]
)
def test_sources_without_an_end_take_no_more_than_the_length_of_the_text(part: str) -> None:
    grows_in_proportion(lambda text: quoted("Where?", text, ANSWER), lambda n: part * n, 2_000)


class Likes(Embedder):
    """An embedder for which texts that contain one word are as similar as can be to any question."""

    model, dim, max_tokens, calibration = "likes", 2, 512, Calibration()

    def __init__(self, word: str, *, fails: bool = False) -> None:
        self.word, self.fails = word, fails
        self.read: list[str] = []

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if self.fails:
            raise EmbedderUnavailable("away")
        self.read += texts if task == "document" else []
        rows = [[1.0, 0.0] if task == "query" or self.word in text else [0.0, 1.0] for text in texts]
        return Embedded(np.array(rows, np.float32), len(texts))

    def split(self, text: str) -> list[Span]:
        return [Span(0, len(text))]


TEXT = "The pump costs little. One pays 30 euros. It is blue."
ASKED = "What is the price of the pump?"


def first(embedder: Embedder | None, question: str = ASKED) -> str:
    return asyncio.run(best(question, [Source(number=1, text=TEXT, title="")], embedder))[0].text


def test_the_sentence_that_is_most_similar_is_quoted_first() -> None:
    assert first(None) == "The pump costs little."
    assert first(Likes("euros")) == "One pays 30 euros."


def test_a_provider_is_not_asked_nor_a_model_that_does_not_cover_the_language() -> None:
    provider, english = Likes("euros"), Likes("euros")
    provider.remote, english.languages = True, frozenset({"en"})
    assert first(provider) == "The pump costs little."
    assert first(english) == "One pays 30 euros."
    assert first(english, "сколько стоит pump") == "The pump costs little."
    assert provider.read == []


def test_words_decide_while_the_embedder_is_away() -> None:
    assert first(Likes("euros", fails=True)) == "The pump costs little."


def test_few_sentences_of_many_are_embedded() -> None:
    embedder = Likes("99.")
    text = " ".join(f"The pump has part {number}." for number in range(200))
    asyncio.run(best(ASKED, [Source(number=1, text=text, title="")], embedder))
    assert len(embedder.read) == MAX_EMBEDDED
