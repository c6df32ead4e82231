"""`/v1/memories/entries`: memories as entries of a vector memory, with descriptive fields nested in `metadata`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar, get_args

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.server.route import Call, Route, in_batch
from memoranda.store.selections import ONE_SCOPE, WITH_ID, ScopeName, named_scopes
from memoranda.types import (
    MAX_LIMIT,
    Content,
    Filters,
    Hit,
    Kind,
    MaybeId,
    Memory,
    Metadata,
    Moment,
    NewMemory,
    Query,
    Question,
    Tags,
    Threshold,
    configured,
)
from memoranda.validation.constraints import Constraint

NANOSECONDS = 1_000_000_000
FIELDS = {
    "role": "metadata.role",
    "source": "metadata.source",
    "tags": "metadata.tags",
    "metadata": "metadata.extra",
    "occurred_at": "created_at",
}
"""The names that fields of a memory have in an entry."""


class EntryMetadata(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What describes an entry. `source` is also its kind where it names one; `extra` is the memory's metadata."""

    source: MaybeId = ""
    role: MaybeId = ""
    tags: Tags | None = None
    extra: Metadata | None = None


class NewEntry(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An entry to remember. Empty texts are as if left out. `created_at` is when it was said; `updated_at` is
    ignored."""

    content: Content
    id: MaybeId = ""
    session_id: MaybeId = ""
    channel_id: MaybeId = ""
    agent_id: MaybeId = ""
    metadata: EntryMetadata = msgspec.field(default_factory=EntryMetadata)
    created_at: Moment | None = None
    updated_at: Moment | None = None


class EntriesBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Entries to remember together: all of them, or none when one is wrong."""

    entries: Annotated[
        list[NewEntry],
        Meta(min_length=1, max_length=100_000, extra_json_schema=configured(maxItems="limits.max_batch")),
    ]


class Entry(msgspec.Struct, kw_only=True):
    """A memory as an entry, without its embedding. Ids of scopes that it does not have are left out."""

    id: str
    session_id: str | UnsetType = UNSET
    channel_id: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET
    content: str
    metadata: EntryMetadata
    created_at: datetime
    updated_at: datetime


class EntryList(msgspec.Struct, kw_only=True):
    """Entries in the order in which they were sent, as they are kept."""

    entries: list[Entry]


class EntrySearchBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A search in one scope. Without `scope` or `limit` (empty, 0) the configured ones hold; `filters` are on what is
    in `extra`."""

    constraints: ClassVar[tuple[Constraint, ...]] = (*ONE_SCOPE, WITH_ID)
    query: Question
    scope: ScopeName = ""
    scope_id: str = ""
    limit: Annotated[int, Meta(ge=0, le=MAX_LIMIT)] = 0
    threshold: Threshold | None = None
    filters: Filters | None = None


class EntryHit(msgspec.Struct, kw_only=True):
    """An entry found, with its score in 0..1 and the snippets that match."""

    entry: Entry
    score: float
    highlights: list[str]


class EntryAnswer(msgspec.Struct, kw_only=True):
    """The entries found, best first; `query_time` in nanoseconds."""

    results: list[EntryHit]
    total_count: int
    query_time: int


async def create(call: Call[EntriesBody, None]) -> EntryList:
    with call.state.telemetry.upserting(), in_batch("entries", len(call.body.entries), fields=FIELDS):
        outcomes = await call.workspace.memories.add_many([memory_of(entry) for entry in call.body.entries])
    call.state.telemetry.added(outcomes)
    return EntryList(entries=[entry_of(outcome.memory) for outcome in outcomes])


async def search(call: Call[EntrySearchBody, None]) -> EntryAnswer:
    body = call.body
    query = Query(
        query=body.query,
        scopes=named_scopes(None, body.scope, body.scope_id),
        limit=body.limit or call.state.memoranda.config.search.default_limit,
        threshold=body.threshold,
        filters=body.filters or None,
        highlights=True,
    )
    result = await call.workspace.memories.search(query)
    call.state.telemetry.searched(len(result.results), result.query_time, result.degraded)
    return EntryAnswer(
        results=[_hit(hit) for hit in result.results],
        total_count=result.total_count,
        query_time=int(result.query_time * NANOSECONDS),
    )


def memory_of(new: NewEntry) -> NewMemory:
    """The memory that stores an entry."""
    metadata = new.metadata
    return NewMemory(
        content=new.content,
        id=new.id or None,
        kind=metadata.source if metadata.source in get_args(Kind) else "note",  # type: ignore[arg-type]
        session_id=new.session_id or None,
        channel_id=new.channel_id or None,
        agent_id=new.agent_id or None,
        role=metadata.role or None,
        source=metadata.source or None,
        tags=metadata.tags or [],
        metadata=metadata.extra or {},
        occurred_at=new.created_at,
    )


def entry_of(memory: Memory) -> Entry:
    """A memory as an entry."""
    return Entry(
        id=memory.id,
        session_id=memory.session_id or UNSET,
        channel_id=memory.channel_id or UNSET,
        agent_id=memory.agent_id or UNSET,
        content=memory.content,
        metadata=EntryMetadata(
            source=memory.source or memory.kind,
            role=memory.role or "",
            tags=memory.tags,
            extra=memory.metadata,
        ),
        created_at=memory.occurred_at,
        updated_at=memory.updated_at,
    )


def _hit(hit: Hit) -> EntryHit:
    return EntryHit(
        entry=entry_of(hit.memory),
        score=hit.score,
        highlights=[highlight.text for highlight in hit.highlights],
    )


AT = "/v1/memories/entries"
ROUTES = (
    Route("POST", AT, "Remember entries", create, "write", EntryList, EntriesBody, long=True),
    Route("POST", f"{AT}/search", "Search for entries", search, "read", EntryAnswer, EntrySearchBody),
)
