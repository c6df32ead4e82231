"""An embedder with a cache of queries, and counts of its work."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence

import msgspec
import numpy as np

from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import (
    Embedded,
    Embedder,
    Task,
    TokenVectors,
    Vectors,
    WrappedEmbedder,
)

_Query = tuple[Vectors, TokenVectors | None]


class Work(msgspec.Struct):
    """Counts of an embedder since it was opened.

    `texts` counts the texts that the model read and `tokens` their tokens; `seconds` is the wall time of its calls,
    summed; `cache_hits` are queries answered from the cache.
    """

    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cache_hits: int = 0


class CachedEmbedder(WrappedEmbedder):
    """The given embedder behind an LRU cache of `size` queries. Documents are not cached: their vectors are stored with
    their rows. `Embedded.tokens` counts the tokens of this call only."""

    def __init__(self, inner: Embedder, size: int) -> None:
        if size < 0:
            raise ConfigError("embedder.cache_size", f"is {size}; use 0 or more")
        super().__init__(inner)
        self.work = Work()
        self._size = size
        self._known: OrderedDict[str, _Query] = OrderedDict()

    async def load(self) -> None:
        await self.inner.load()

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if task == "document" or not self._size:
            return await self._paid(texts, task)
        cache = self._known
        known = {text: query for text in texts if (query := cache.get(text)) is not None}
        missing = list(dict.fromkeys(text for text in texts if text not in known))
        paid = await self._paid(missing, task)
        known.update(zip(missing, zip(paid.vectors, paid.tokens_of_each, strict=True), strict=True))
        self.work.cache_hits += len(texts) - len(missing)
        self._remember(cache, known)
        vectors = np.array([known[text][0] for text in texts], np.float32).reshape(len(texts), self.dim)
        of_tokens = [tokens for text in texts if (tokens := known[text][1]) is not None]
        return Embedded(vectors, paid.tokens, len(missing), of_tokens if self.token_dim else None)

    async def _paid(self, texts: Sequence[str], task: Task) -> Embedded:
        began = time.perf_counter()
        embedded = await self.inner.embed(texts, task)
        self.work.seconds += time.perf_counter() - began
        self.work.texts += len(texts)
        self.work.tokens += embedded.tokens
        return embedded

    def _remember(self, cache: OrderedDict[str, _Query], queries: dict[str, _Query]) -> None:
        for text, query in queries.items():
            cache[text] = query
            cache.move_to_end(text)
        while len(cache) > self._size:
            cache.popitem(last=False)

    def forget(self) -> None:
        """Clear the cache. Callable from any thread; queries being embedded now are not cached."""
        self._known = OrderedDict()

    def usage(self) -> dict[str, int]:
        return self.inner.usage()

    def close(self) -> None:
        self._known.clear()
        self.inner.close()
