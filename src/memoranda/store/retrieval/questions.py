"""Questions that several searches share: each text goes to the model once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memoranda.providers.embeddings.base import Embedder, QueryEmbedding
from memoranda.store.usage import SEARCH, Cost, Ledger


class Questions:
    """Embeds the questions of searches that belong together. A text is embedded at the cost of its first search; each
    search counts as an operation. The model reads `below` after each text; keyword search does not."""

    def __init__(self, ledger: Ledger, embedder: Embedder, tenant: str, below: str = "") -> None:
        self.below = below
        self._ledger, self._embedder, self._tenant = ledger, embedder, tenant
        self._asked: dict[tuple[str, ...], asyncio.Task[tuple[list[QueryEmbedding] | None, list[str]]]] = {}

    async def embedded(self, texts: Sequence[str]) -> tuple[list[QueryEmbedding] | None, list[str]]:
        """Return the query embeddings (n) of one search and what degrades it, see `Ledger.questions`."""
        key = tuple(texts)
        if key in self._asked:
            self._ledger.note(self._tenant, SEARCH, Cost(operations=1))
        else:
            embedding = self._ledger.questions(self._embedder, texts, self._tenant, below=self.below)
            self._asked[key] = asyncio.ensure_future(embedding)
        return await asyncio.shield(self._asked[key])

    async def end(self) -> None:
        """Cancel the embeddings that are still pending."""
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
