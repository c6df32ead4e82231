"""One embedding batch filled from several files: what waits while the model works goes together into its next batch."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from memoranda.errors import MemorandaError
from memoranda.providers.embeddings.base import Embedded, Embedder, Task, WrappedEmbedder

CAPACITY = 256
"""The most texts in a batch for the model, unless one file has more."""
IN_FLIGHT = 2
"""Concurrent batches, so that the model need not wait for the next one."""


class _Asked(msgspec.Struct):
    texts: Sequence[str]
    answer: asyncio.Future[Embedded]


class Filling(WrappedEmbedder):
    """An embedder whose callers share batches. Answers, order and errors are those of the wrapped embedder."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self._waiting: list[_Asked] = []
        self._running: set[asyncio.Task[None]] = set()

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if task != "document" or not texts:
            return await self.inner.embed(texts, task)
        asked = _Asked(texts, asyncio.get_running_loop().create_future())
        self._waiting.append(asked)
        self._begin()
        return await asked.answer

    def _begin(self) -> None:
        while self._waiting and len(self._running) < IN_FLIGHT:
            task = asyncio.create_task(self._answer(self._next()))
            self._running.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._begin()

    def _next(self) -> list[_Asked]:
        taken = [self._waiting.pop(0)]
        size = len(taken[0].texts)
        while self._waiting and size + len(self._waiting[0].texts) <= CAPACITY:
            size += len(self._waiting[0].texts)
            taken.append(self._waiting.pop(0))
        return taken

    async def _answer(self, together: list[_Asked]) -> None:
        wanted = [asked for asked in together if not asked.answer.cancelled()]
        try:
            embedded = await self._embedded([text for asked in wanted for text in asked.texts])
        except Exception as exc:
            await self._one_by_one(wanted, exc)
            return
        share, at = embedded.tokens / max(1, len(embedded.vectors)), 0
        for asked in wanted:
            own = slice(at, at + len(asked.texts))
            of_tokens = None if embedded.token_vectors is None else embedded.token_vectors[own]
            at += len(asked.texts)
            if not asked.answer.done():
                tokens = round(share * len(asked.texts))
                asked.answer.set_result(Embedded(embedded.vectors[own], tokens, token_vectors=of_tokens))

    async def _embedded(self, texts: Sequence[str]) -> Embedded:
        try:
            return await self.inner.embed(texts)
        except (Exception, asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            raise
        except BaseException as exc:  # native code that panics raises no Exception
            raise MemorandaError(f"the model failed: {exc}") from exc

    async def _one_by_one(self, wanted: list[_Asked], exc: Exception) -> None:
        """Embed a failed batch file by file: a refused text must not fail the files that shared its batch."""
        for asked in wanted:
            try:
                if len(wanted) == 1:
                    raise exc
                embedded = await self._embedded(asked.texts)
            except Exception as own:
                if not asked.answer.done():
                    asked.answer.set_exception(own)
            else:
                if not asked.answer.done():
                    asked.answer.set_result(embedded)
