"""Questions as query embeddings, at the tenant's cost; those that several searches share go to the model once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memoranda.errors import EmbedderUnavailable, SpendingLimit
from memoranda.providers.embeddings.base import Embedder, QueryEmbedding
from memoranda.store.usage import SEARCH, Cost, CostTracker
from memoranda.text.analysis import language_in


def _covered(embedder: Embedder, text: str) -> bool:
    """Return False if the text is in a language that the model was not trained on."""
    return embedder.languages is None or language_in(text) in {"", *embedder.languages}


async def embed_questions(
    costs: CostTracker,
    embedder: Embedder,
    texts: Sequence[str],
    tenant: str,
    purpose: str = SEARCH,
    *,
    below: str = "",
) -> tuple[list[QueryEmbedding] | None, list[str]]:
    """Return the query embeddings (n), at the tenant's cost, as one operation, and what degrades the search. They are
    None if the model is unavailable, or, with `spending`, if the tenant has reached its limit. The model reads `below`
    after each text."""
    try:
        read = [text + below for text in texts]
        embedded = await costs.embed(embedder, read, "query", tenant=tenant, purpose=purpose, operations=1)
    except EmbedderUnavailable:
        return None, []
    except SpendingLimit:
        return None, ["spending"]
    return [
        QueryEmbedding(vector, embedder.model, tokens, _covered(embedder, text))
        for text, vector, tokens in zip(texts, embedded.vectors, embedded.tokens_of_each, strict=True)
    ], []


class Questions:
    """Embeds the questions of searches that belong together. A text is embedded at the cost of its first search; each
    search counts as an operation. The model reads `below` after each text; keyword search does not."""

    def __init__(self, costs: CostTracker, embedder: Embedder, tenant: str, below: str = "") -> None:
        self.below = below
        self._costs, self._embedder, self._tenant = costs, embedder, tenant
        self._asked: dict[tuple[str, ...], asyncio.Task[tuple[list[QueryEmbedding] | None, list[str]]]] = {}

    async def embedded(self, texts: Sequence[str]) -> tuple[list[QueryEmbedding] | None, list[str]]:
        """Return the query embeddings (n) of one search and what degrades it, see `embed_questions`."""
        key = tuple(texts)
        if key in self._asked:
            self._costs.note(self._tenant, SEARCH, Cost(operations=1))
        else:
            embedding = embed_questions(self._costs, self._embedder, texts, self._tenant, below=self.below)
            self._asked[key] = asyncio.ensure_future(embedding)
        return await asyncio.shield(self._asked[key])

    async def end(self) -> None:
        """Cancel the embeddings that are still pending."""
        for task in self._asked.values():
            task.cancel()
        await asyncio.gather(*self._asked.values(), return_exceptions=True)
