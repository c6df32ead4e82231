"""CrewAI: `MemorandaStorage`, where a crew's memory is stored, and `MemorandaEmbedder`, which embeds for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from datetime import UTC, datetime
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from memoranda.integrations.frameworks import require

require("crewai.memory.storage.backend", "crewai")

from crewai.memory.types import MemoryRecord, ScopeInfo  # noqa: E402 - says first what is missing

from memoranda.app.blocking import BlockingMemories  # noqa: E402
from memoranda.app.memoranda import Memoranda  # noqa: E402
from memoranda.errors import InvalidInput  # noqa: E402
from memoranda.integrations import entries  # noqa: E402
from memoranda.integrations.entries import Entries  # noqa: E402
from memoranda.integrations.products import Product, memories_of  # noqa: E402
from memoranda.memories.memories import Memories  # noqa: E402
from memoranda.types import MAX_LIMIT, Memory  # noqa: E402

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
OWN = "crewai."
"""Begins the metadata keys that are not the record's."""
ID, SCOPE, WITHIN, CATEGORIES, IMPORTANCE, ACCESSED, SOURCE, PRIVATE = (
    f"{OWN}{name}"
    for name in ("id", "scope", "within", "categories", "importance", "accessed", "source", "private")
)
ROOT = "/"
BATCH = 256
"""Texts that are embedded by one request."""
SHORT = 250
"""Characters of a record whose vector is taken over: a longer one may need several windows, which the product makes."""


class MemorandaEmbedder:
    """Embeds with the model that a product is configured with: the `embedder` of a `Memory` whose storage is a
    `MemorandaStorage`. Vectors have unit length. A text longer than the model's input is embedded by its beginning.
    CrewAI asks for texts and questions alike, so that questions are embedded as texts are.

    Raises:
        InvalidInput: the product belongs to an event loop.
        EmbedderUnavailable: when it is called: the model does not answer.
    """

    def __init__(self, product: Product) -> None:
        self._memories = _blocking(product)

    def __call__(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), BATCH):
            vectors += self._vectors(texts[start : start + BATCH])
        return vectors

    def _vectors(self, texts: list[str]) -> list[list[float]]:
        try:
            vectors: list[list[float]] = self._memories.embed(texts).vectors.tolist()
        except InvalidInput:
            if len(texts) > 1:
                return [vector for text in texts for vector in self._vectors([text])]
            if len(texts[0]) < 2:
                raise
            return self._vectors([texts[0][: len(texts[0]) // 2]])
        return vectors


def _in_thread(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """Return a method that runs another one, or what a subclass has in its place, in a worker thread."""

    @wraps(method)
    async def awaited(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[P, T] = getattr(self, method.__name__)
        return await asyncio.to_thread(bound, *args, **kwargs)

    return awaited


class MemorandaStorage:
    """A `StorageBackend` in a folder or on a server of Memoranda.

    A record is a memory of kind `item`, which other searches of the product see only if they name that kind; `name`
    keeps several storages in one tenant apart. The vector of a new record must be of the product's model
    (`MemorandaEmbedder`); records that are longer than `SHORT`, have no vector, or get another text are embedded by the
    product. A scope has its own records and those of the scopes below it. Times are in UTC, without a zone, as CrewAI
    has them. The async methods run in worker threads.

    Raises:
        InvalidInput: the product belongs to an event loop, which CrewAI would block while it waits.
    """

    def __init__(self, product: Product, *, name: str = "crewai") -> None:
        self._entries = Entries(_blocking(product), name)
        self._name = name

    # --- writing -----------------------------------------------------------------------------------

    def save(self, records: list[MemoryRecord]) -> None:
        """Writes records; one with the id of a record that is there replaces it.

        Raises:
            InvalidInput: a record has no text, or its metadata is wrong; all others are written.
            DimensionMismatch: the vector of a new record is not of the product's model; all others are written.
        """
        drafts = list({record.id: self._draft(record) for record in records}.values())
        if self._refusal(drafts) is not None:
            errors = [error for draft in drafts if (error := self._refusal([draft])) is not None]
            if errors:
                raise errors[0]

    def update(self, record: MemoryRecord) -> None:
        """As `save` of one record."""
        self.save([record])

    def touch_records(self, record_ids: list[str]) -> None:
        """Sets `last_accessed` of records to now."""
        for start in range(0, len(record_ids), entries.PAGE):
            some = record_ids[start : start + entries.PAGE]
            self._entries.memories.count_access([self._id(id_) for id_ in some])

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Deletes the records that meet every condition given, all records without one; returns their number."""
        if record_ids is None:
            memories = list(self._listed(_filters(scope_prefix, categories, metadata_filter)))
        else:
            found = (self._entries.get(self._id(id_)) for id_ in dict.fromkeys(record_ids))
            memories = [memory for memory in found if memory is not None and _is_in(memory, scope_prefix)]
        meeting = [
            memory
            for memory in memories
            if (not categories or not {*categories}.isdisjoint(memory.metadata[CATEGORIES]))
            and (older_than is None or memory.occurred_at < _utc(older_than))
            and _has(memory, metadata_filter)
        ]
        return sum(self._entries.delete(memory.id) for memory in meeting)

    def reset(self, scope_prefix: str | None = None) -> None:
        """Deletes the records of a scope, all of them without one."""
        self.delete(scope_prefix)

    def _refusal(self, drafts: Sequence[dict[str, Any]]) -> InvalidInput | None:
        """Write entries; return the error if one is refused."""
        try:
            self._entries.put(drafts, "metadata")
        except InvalidInput as exc:
            return exc
        return None

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
        these values in their metadata. Their score, 0..1, is `min_score` or more.

        Raises:
            DimensionMismatch: the vector is not of the product's model.
        """
        if limit < 1:
            return []
        found = self._entries.memories.search(
            "vector",
            mode="dense",
            embedding=np.array(query_embedding, np.float32),
            limit=MAX_LIMIT if metadata_filter else min(limit, MAX_LIMIT),
            threshold=0.0,
            recency="off",
            model_rerank=0,
            **self._selection(_filters(scope_prefix, categories, metadata_filter)),
        ).results
        scored = [
            (_record(hit.memory), hit.score)
            for hit in found
            if _has(hit.memory, metadata_filter) and hit.score >= min_score
        ]
        return scored[:limit]

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

    asave = _in_thread(save)
    asearch = _in_thread(search)
    adelete = _in_thread(delete)

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
        if record.embedding and any(record.embedding) and len(record.content) <= SHORT:
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
    """Conditions for the records of a scope, of one of the categories, and, as far as filters can say it, with these
    values in their metadata; see `_has`."""
    chosen: list[dict[str, Any]] = []
    if scope is not None and _path(scope) != ROOT:
        chosen.append({"type": "eq", "key": WITHIN, "value": _path(scope)})
    if categories:
        chosen.append({"type": "in", "key": CATEGORIES, "value": list(categories)})
    for key, value in (metadata or {}).items():
        if entries.is_attribute(key, OWN) and isinstance(value, str | int | float):
            chosen.append({"type": "eq", "key": key, "value": value})
    return chosen


def _has(memory: Memory, metadata: dict[str, Any] | None) -> bool:
    """Return True if the record of a memory has these values in its metadata."""
    if not metadata:
        return True
    value = entries.value_of(memory, OWN)
    return all(value.get(key) == part for key, part in metadata.items())


def _is_in(memory: Memory, scope: str | None) -> bool:
    """Return True if the record of a memory is in a scope."""
    return scope is None or _path(scope) == ROOT or _path(scope) in memory.metadata[WITHIN]


def _blocking(product: Product) -> BlockingMemories:
    if isinstance(product, Memoranda | Memories):
        raise InvalidInput(
            "product", "belongs to an event loop, which CrewAI blocks; use memoranda.open(...) or Client(url)"
        )
    return memories_of(product)


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
