"""CrewAI: `MemorandaStorage`, where a crew's memory is stored, and `MemorandaEmbedder`, which embeds for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from memoranda.integrations.frameworks import require

require("crewai.memory.storage.backend", "crewai")

from crewai.memory.types import MemoryRecord, ScopeInfo  # noqa: E402 - says first what is missing

from memoranda.clock import micros  # noqa: E402
from memoranda.integrations import entries  # noqa: E402
from memoranda.integrations.entries import Entries  # noqa: E402
from memoranda.integrations.products import Product, memories_of  # noqa: E402
from memoranda.types import Memory  # noqa: E402

OWN = "crewai."
"""Begins the metadata keys that are not the record's."""
ID, SCOPE, WITHIN, CATEGORIES, IMPORTANCE, ACCESSED, SOURCE, PRIVATE = (
    f"{OWN}{name}"
    for name in ("id", "scope", "within", "categories", "importance", "accessed", "source", "private")
)
ROOT = "/"


class MemorandaEmbedder:
    """Embeds with the model that a product is configured with: the `embedder` of a `Memory` whose storage is a
    `MemorandaStorage`. Vectors have unit length.

    Raises:
        InvalidInput: a text is longer than the model's input.
        EmbedderUnavailable: the model does not answer.
    """

    def __init__(self, product: Product) -> None:
        self._memories = memories_of(product)

    def __call__(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._memories.embed(texts).vectors.tolist()
        return vectors


class MemorandaStorage:
    """A `StorageBackend` in a folder or on a server of Memoranda.

    A record is a memory of kind `item`, which other searches of the product see only if they name that kind; `name`
    keeps several storages in one tenant apart. Vectors that come with new records must be of the product's model
    (`MemorandaEmbedder`); records without one, and those that are replaced, are embedded by it. A scope has its own
    records and those of the scopes below it. Times are in UTC, without a zone, as CrewAI has them. The async methods
    run in worker threads.
    """

    def __init__(self, product: Product, *, name: str = "crewai") -> None:
        self._entries = Entries(memories_of(product), name)
        self._name = name

    # --- writing -----------------------------------------------------------------------------------

    def save(self, records: list[MemoryRecord]) -> None:
        """Writes records; one with the id of a record that is there replaces it.

        Raises:
            InvalidInput: a record has no text, or its metadata is wrong; others may be written.
            DimensionMismatch: a vector is not of the product's model.
        """
        drafts = {record.id: self._draft(record) for record in records}
        if drafts:
            self._entries.put(list(drafts.values()), "metadata")

    def update(self, record: MemoryRecord) -> None:
        """Replaces the record of that id. Errors as `save`."""
        self.save([record])

    def touch_records(self, record_ids: list[str]) -> None:
        """Sets `last_accessed` of records to now."""
        if record_ids:
            self._entries.memories.count_access([self._id(id_) for id_ in record_ids])

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Deletes the records that meet every condition given, all records without one; returns their number."""
        chosen = _filters(scope_prefix, categories, metadata_filter)
        if record_ids is not None:
            chosen.append({"type": "in", "key": ID, "value": list(record_ids)})
        if older_than is not None:
            chosen.append({"type": "lt", "key": "$occurred_at", "value": micros(_utc(older_than))})
        deleted = [self._entries.delete(memory.id) for memory in list(self._listed(chosen))]
        return sum(deleted)

    def reset(self, scope_prefix: str | None = None) -> None:
        """Deletes the records of a scope, all of them without one."""
        self.delete(scope_prefix)

    # --- reading -----------------------------------------------------------------------------------

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """The `limit` best records for a vector of the product's model, in a scope, of one of the categories and with
        these values in their metadata. Their score is the calibrated similarity, 0..1, from `min_score` on.

        Raises:
            DimensionMismatch: the vector is not of the product's model.
        """
        found = self._entries.memories.search(
            "vector",
            mode="dense",
            embedding=np.array(query_embedding, np.float32),
            limit=limit,
            threshold=0.0,
            **self._selection(_filters(scope_prefix, categories, metadata_filter)),
        ).results
        scored = [(_record(hit.memory), hit.similarity or 0.0) for hit in found]
        return [(record, score) for record, score in scored if score >= min_score]

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """The record of that id; None if there is none."""
        memory = self._entries.get(self._id(record_id))
        return None if memory is None else _record(memory)

    def list_records(
        self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0
    ) -> list[MemoryRecord]:
        """The records of a scope, last created first, `limit` of them after the first `offset`; none if one of the two
        is negative. Reads all records of the scope."""
        if limit < 1 or offset < 0:
            return []
        memories = sorted(self._within(scope_prefix), key=lambda memory: memory.occurred_at, reverse=True)
        return [_record(memory) for memory in memories[offset : offset + limit]]

    def count(self, scope_prefix: str | None = None) -> int:
        """The number of records in a scope."""
        return self._entries.memories.count(**self._selection(_filters(scope_prefix)))

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """What a scope has: the number of its records, their categories and times, and the scopes directly below it.
        Reads all records of the scope."""
        memories = list(self._within(scope))
        times = [_naive(memory.occurred_at) for memory in memories]
        return ScopeInfo(
            path=_path(scope),
            record_count=len(memories),
            categories=sorted(_categories(memories)),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=_children(_path(scope), memories),
        )

    def list_scopes(self, parent: str = ROOT) -> list[str]:
        """The scopes directly below a scope. Reads all records of the scope."""
        return _children(_path(parent), list(self._within(parent)))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """The number of records in a scope by category. Reads all records of the scope."""
        return dict(_categories(self._within(scope_prefix)))

    # --- in worker threads -------------------------------------------------------------------------

    async def asave(self, records: list[MemoryRecord]) -> None:
        """`save`, awaited."""
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """`search`, awaited."""
        asked = (query_embedding, scope_prefix, categories, metadata_filter, limit, min_score)
        return await asyncio.to_thread(self.search, *asked)

    async def adelete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """`delete`, awaited."""
        asked = (scope_prefix, categories, record_ids, older_than, metadata_filter)
        return await asyncio.to_thread(self.delete, *asked)

    # --- memories ----------------------------------------------------------------------------------

    def _within(self, scope: str | None) -> Iterator[Memory]:
        return self._listed(_filters(scope))

    def _listed(self, chosen: Sequence[dict[str, Any]]) -> Iterator[Memory]:
        return self._entries.listed(entries.PAGE, **self._selection(chosen))

    def _selection(self, chosen: Sequence[dict[str, Any]]) -> dict[str, Any]:
        filters = {"filters": {"type": "and", "filters": list(chosen)}} if chosen else {}
        return {**self._entries.selection, **filters}

    def _id(self, id_: str) -> str:
        return entries.id_of(self._name, id_)

    def _draft(self, record: MemoryRecord) -> dict[str, Any]:
        scope = _path(record.scope)
        own = {
            "id": record.id,
            "scope": scope,
            "within": _lineage(scope),
            "categories": record.categories,
            "importance": record.importance,
            "accessed": _utc(record.last_accessed).isoformat(),
            "source": record.source,
            "private": record.private,
        }
        draft = {
            "id": self._id(record.id),
            "content": record.content,
            "occurred_at": _utc(record.created_at),
            "metadata": entries.metadata_of(record.metadata, own, OWN),
        }
        if record.embedding and any(record.embedding):
            draft["embedding"] = np.array(record.embedding, np.float32)
        return draft


def _record(memory: Memory) -> MemoryRecord:
    own = memory.metadata
    accessed = datetime.fromisoformat(own[ACCESSED])
    return MemoryRecord(
        id=own[ID],
        content=memory.content,
        scope=own[SCOPE],
        categories=own[CATEGORIES],
        metadata=entries.value_of(memory, OWN),
        importance=own[IMPORTANCE],
        created_at=_naive(memory.occurred_at),
        last_accessed=_naive(max(accessed, memory.last_accessed_at or accessed)),
        source=own[SOURCE],
        private=own[PRIVATE],
    )


def _filters(
    scope: str | None,
    categories: Sequence[str] | None = None,
    metadata: dict[str, Any] | None = None,
) -> list[dict[str, Any]]:
    """Conditions for the records of a scope, of one of the categories, with these values in their metadata."""
    chosen: list[dict[str, Any]] = []
    if scope is not None and _path(scope) != ROOT:
        chosen.append({"type": "eq", "key": WITHIN, "value": _path(scope)})
    if categories:
        chosen.append({"type": "in", "key": CATEGORIES, "value": list(categories)})
    chosen += [{"type": "eq", "key": key, "value": value} for key, value in (metadata or {}).items()]
    return chosen


def _path(scope: str) -> str:
    """A scope as `/a/b`, the root as `/`."""
    return ROOT + "/".join(name for name in scope.split("/") if name)


def _lineage(scope: str) -> list[str]:
    """The scopes that a record of a scope is in, but for the root: `/a`, `/a/b`."""
    names = scope.split("/")[1:]
    return [ROOT + "/".join(names[: n + 1]) for n in range(len(names))] if scope != ROOT else []


def _children(parent: str, memories: Sequence[Memory]) -> list[str]:
    """The scopes of memories directly below `parent`."""
    depth = len(_lineage(parent))
    return sorted({within[depth] for memory in memories if len(within := memory.metadata[WITHIN]) > depth})


def _categories(memories: Iterator[Memory] | Sequence[Memory]) -> Counter[str]:
    return Counter(name for memory in memories for name in memory.metadata[CATEGORIES])


def _utc(moment: datetime) -> datetime:
    """A time of CrewAI, in UTC if it has no zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _naive(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(tzinfo=None)
