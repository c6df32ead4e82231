"""Embedders that compute in this process: off the event loop, queries before bulk work."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import shake_256

import numpy as np

from memoranda.errors import EmbedderUnavailable
from memoranda.providers.embeddings.base import Embedded, Embedder, Task, Vectors


class ThreadedEmbedder(Embedder):
    """An embedder whose `compute` runs on threads of its own: `threads` for documents and as many for
    questions, so that a question never queues behind a bulk job. Bulk jobs take turns, slice by slice."""

    slice_chars: int
    """Characters of text in one slice: about 50 ms of work."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lanes = {task: ThreadPoolExecutor(threads, f"embed-{task}") for task in ("document", "query")}
        self._closed = False

    @abstractmethod
    def compute(self, texts: Sequence[str], task: Task) -> Embedded:
        """Return one unit vector per text, in the calling thread. Called from several threads at once."""

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if self._closed:
            raise EmbedderUnavailable(f"the embedder {self.model} is closed")
        loop = asyncio.get_running_loop()
        done: list[Embedded] = []
        pending: deque[asyncio.Future[Embedded]] = deque()
        try:
            for piece in slices(texts, self.slice_chars):
                pending.append(loop.run_in_executor(self._lanes[task], self.compute, piece, task))
                if len(pending) > self._threads:
                    done.append(await pending.popleft())
            while pending:
                done.append(await pending.popleft())
        finally:
            for left in pending:
                left.cancel()
        vectors = [np.empty((0, self.dim), np.float32), *(part.vectors for part in done)]
        of_tokens = [some for part in done for some in part.token_vectors or ()]
        tokens = sum(part.tokens for part in done)
        return Embedded(np.concatenate(vectors), tokens, token_vectors=of_tokens if self.token_dim else None)

    async def load(self) -> None:
        await self.embed(["a"], "query")

    def close(self) -> None:
        self._closed = True
        for lane in self._lanes.values():
            lane.shutdown(wait=True, cancel_futures=True)


def slices(texts: Sequence[str], chars: int) -> Iterator[Sequence[str]]:
    """Yield the texts in runs of at most `chars` characters together; a longer text is a run of its own."""
    start = size = 0
    for i, text in enumerate(texts):
        if i > start and size + len(text) > chars:
            yield texts[start:i]
            start, size = i, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]


def unit(vector: Vectors, text: str) -> Vectors:
    """Return the vector (dim,) at length 1; for a zero vector, a direction that only this text has.

    That direction's signs are the bits of SHAKE-256 of the text, so that two texts without a known word
    are alike only when they are the same.
    """
    length = np.linalg.norm(vector)
    if length > 0:
        return vector / length
    dim = len(vector)
    digest = shake_256(text.encode("utf-8", "surrogatepass")).digest(-(-dim // 8))
    bits = np.unpackbits(np.frombuffer(digest, np.uint8), count=dim).astype(np.float32)
    return (2 * bits - 1) / np.float32(np.sqrt(dim))
