"""Search results for retrievers: memories, or passages of the files in vector stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from memoranda.client.remote import Remote
from memoranda.integrations.products import Product, knowledge_of, memories_of
from memoranda.knowledge.passages import distinct, search_limit
from memoranda.knowledge.values import MAX_RESULTS, Passage
from memoranda.types import MAX_LIMIT, Hit

PLACES = (
    "kind", "user_id", "agent_id", "channel_id", "session_id", "role", "source", "tags", "occurred_at",
)  # fmt: skip
"""Fields of a memory that its result has as metadata, where they are set."""


class Retrieved(NamedTuple):
    """One memory or passage. `metadata` has its fields, with `score` and `similarity`."""

    id: str
    text: str
    score: float
    metadata: dict[str, Any]


class Search:
    """Searches the memories of a product, or the files in `stores`, its vector stores.

    Raises:
        InvalidInput: it is no product, or one without vector stores.
    """

    def __init__(self, product: Product, stores: Sequence[str] | None, fields: Mapping[str, Any]) -> None:
        self._memories = memories_of(product) if stores is None else None
        self._knowledge = None if stores is None else knowledge_of(product)
        self._stores = list(stores or [])
        self._fields = fields

    def run(self, query: str, limit: int) -> list[Retrieved]:
        """The best results for a text, best first."""
        if self._memories is not None:
            hits = self._memories.search(query, limit=limit, **self._fields).results
            return [_of_memory(hit) for hit in hits]
        assert self._knowledge is not None
        most = MAX_RESULTS if isinstance(self._knowledge.inner, Remote) else MAX_LIMIT
        wanted = search_limit(limit, self._stores, most)
        passages = self._knowledge.stores.search(self._stores, query, limit=wanted, **self._fields).data
        return [_of_passage(passage) for passage in distinct(passages)[:limit]]


def _of_memory(hit: Hit) -> Retrieved:
    fields = msgspec.to_builtins(hit.memory)
    known = {name: fields[name] for name in PLACES if fields[name]}
    scores = {"score": hit.score, "similarity": hit.similarity}
    return Retrieved(hit.memory.id, hit.memory.content, hit.score, {**hit.memory.metadata, **known, **scores})


def _of_passage(passage: Passage) -> Retrieved:
    fields = msgspec.to_builtins(passage)
    content, id_, attributes = fields.pop("text"), fields.pop("chunk_id"), fields.pop("attributes")
    known = {name: value for name, value in fields.items() if value is not None}
    return Retrieved(id_, content, passage.score, {**attributes, **known})
