"""An embedder that remembers the questions it was asked, and counts its work."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task, Vectors


@dataclass(slots=True)
class Work:
    """What an embedder has done since it was opened.

    `texts` counts those the model read and `tokens` what they cost; `seconds` is wall time spent waiting
    for it, summed over calls; `cache_hits` are questions answered without the model.
    """

    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cache_hits: int = 0


class CachedEmbedder(Embedder):
    """The embedder given, with an LRU cache of `size` questions before it. Documents pass through: their
    vectors are kept with their rows. `Embedded.tokens` counts what was paid for this time."""

    def __init__(self, inner: Embedder, size: int) -> None:
        if size < 0:
            raise ConfigError("embedder.cache_size", f"is {size}; use 0 or more")
        self.inner = inner
        self.model = inner.model
        self.dim = inner.dim
        self.max_tokens = inner.max_tokens
        self.calibration = inner.calibration
        self.dense_weight = inner.dense_weight
        self.remote = inner.remote
        self.work = Work()
        self._size = size
        self._known: OrderedDict[str, Vectors] = OrderedDict()

    async def load(self) -> None:
        await self.inner.load()

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if task == "document" or not self._size:
            return await self._paid(texts, task)
        held = self._known
        known = {text: vector for text in texts if (vector := held.get(text)) is not None}
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        paid = await self._paid(missing, task)
        known.update(zip(missing, paid.vectors, strict=True))
        self.work.cache_hits += len(texts) - len(missing)
        self._remember(held, known)
        vectors = np.array([known[text] for text in texts], np.float32).reshape(len(texts), self.dim)
        return Embedded(vectors, paid.tokens, len(missing))

    async def _paid(self, texts: Sequence[str], task: Task) -> Embedded:
        began = time.perf_counter()
        embedded = await self.inner.embed(texts, task)
        self.work.seconds += time.perf_counter() - began
        self.work.texts += len(texts)
        self.work.tokens += embedded.tokens
        return embedded

    def _remember(self, held: OrderedDict[str, Vectors], vectors: dict[str, Vectors]) -> None:
        for text, vector in vectors.items():
            held[text] = vector
            held.move_to_end(text)
        while len(held) > self._size:
            held.popitem(last=False)

    def forget(self) -> None:
        """Lets go of all questions: their words are kept nowhere. From any thread; what is being asked is not kept."""
        self._known = OrderedDict()

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)

    def usage(self) -> dict[str, int]:
        return self.inner.usage()

    def close(self) -> None:
        self._known.clear()
        self.inner.close()
