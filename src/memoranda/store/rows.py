"""A memory as a row, as a value, as filter attributes and as searched text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.clock import ZONE, local, moment
from memoranda.storage.sql.base import Connection
from memoranda.store.ids import nameable
from memoranda.store.origins import BY, CONFIRMED, READ, origin_of
from memoranda.text.stored import compact_json
from memoranda.types import MAX_ID_CHARS, UNNAMED, Memory

CHUNK = "chunk"
"""The kind of a row that is a chunk of a document in a vector store: no memory, only searches in stores return it."""

ITEM = "item"
"""The kind of a memory that is an entry of a key-value store: its id is its identity, whatever its text, and only
selections that name the kind include it."""

CONTEXT = "context_refs"
"""The metadata key of a fact under which its context is, see `context_of`."""

QUOTES = "quotes"
"""The metadata key of a fact under which the words are in which it ended others."""

LEFT = "left_apart"
"""The metadata key of the first fact of a group that consolidation left as it is: what identifies the group."""

RESERVED = frozenset({"changes", "consolidates", "told_until", "undone", "apart", CONTEXT, QUOTES, LEFT})
"""The metadata keys of a fact that say what became of it, see `facts.versions`. Other metadata in their place leaves
them."""

PINNED = "$pinned"
"""The metadata key of a pinned memory, which no caller can write."""

TEXT_SEPARATOR = "\x1e"
"""The ASCII record separator, between the texts of an item: each has a vector of its own."""


class Record(NamedTuple):
    """One row of `memories`, in the order of `COLUMNS`. Times are microseconds since 1970."""

    tenant_id: str
    seq: int
    rev: int
    id: str
    kind: str
    content: str
    content_hash: str
    dedup_key: str
    user_id: str | None
    agent_id: str | None
    channel_id: str | None
    session_id: str | None
    role: str | None
    source: str | None
    tags: str
    metadata: str
    importance: int
    confidence: float
    access_count: int
    last_accessed_at: int | None
    valid_from: int | None
    invalid_at: int | None
    superseded_by: str | None
    archived_at: int | None
    source_refs: str
    dated: int
    occurred_at: int
    created_at: int
    updated_at: int
    header: str | None = None


COLUMNS = ", ".join(Record._fields)
EMPTY = Record(
    tenant_id="",
    seq=0,
    rev=0,
    id="",
    kind="",
    content="",
    content_hash="",
    dedup_key="",
    user_id=None,
    agent_id=None,
    channel_id=None,
    session_id=None,
    role=None,
    source=None,
    tags="[]",
    metadata="{}",
    importance=0,
    confidence=1.0,
    access_count=0,
    last_accessed_at=None,
    valid_from=None,
    invalid_at=None,
    superseded_by=None,
    archived_at=None,
    source_refs="[]",
    dated=0,
    occurred_at=0,
    created_at=0,
    updated_at=0,
)
"""A row to be filled in: the values of what is left out."""


def _maybe(value: int | None) -> datetime | None:
    return None if value is None else moment(value)


def scope_ids(row: Record) -> tuple[str | None, ...]:
    """Return the ids of the row's scope: user, agent, channel and session."""
    return row.user_id, row.agent_id, row.channel_id, row.session_id


Home = tuple[str | None, str | None, str | None, str | None]


def home_at(
    user_id: str | None, agent_id: str | None, channel_id: str | None, session_id: str | None
) -> Home:
    """Return the scope in which facts are versions of one another: a user and an agent, in every channel, else one
    agent, channel and session."""
    if user_id is not None:
        return user_id, agent_id, None, None
    return None, agent_id, channel_id, session_id


def home_of(row: Record) -> Home:
    """Return the home of a fact, see `home_at`."""
    return home_at(row.user_id, row.agent_id, row.channel_id, row.session_id)


def is_same(row: Record, other: Record) -> bool:
    """Return True if both have the same kind, text and scope."""
    return (row.kind, row.content_hash, scope_ids(row)) == (other.kind, other.content_hash, scope_ids(other))


def start_of(row: Record) -> int:
    """Return when a fact begins to be valid: its `valid_from`, else the time of its message. Microseconds."""
    return row.occurred_at if row.valid_from is None else row.valid_from


def scope_of(row: Record) -> str:
    """Return the narrowest scope of the row."""
    if row.session_id is not None:
        return "session"
    if row.user_id is not None:
        return "user"
    if row.agent_id is not None:
        return "agent"
    return "channel" if row.channel_id is not None else "global"


def to_memory(row: Record) -> Memory:
    """Return the row as the memory that callers receive. It occurred at the offset from UTC that was given."""
    metadata = {} if row.metadata == "{}" else msgspec.json.decode(row.metadata)
    stamp = {key: metadata.pop(key) for key in list(metadata) if key.startswith("$")} if metadata else {}
    zone, created, occurred = stamp.get(ZONE), moment(row.created_at), row.occurred_at
    said = created if occurred == row.created_at else moment(occurred)
    return Memory(
        id=row.id,
        kind=row.kind,  # type: ignore[arg-type]
        content=row.content,
        content_hash=row.content_hash,
        user_id=row.user_id,
        agent_id=row.agent_id,
        channel_id=row.channel_id,
        session_id=row.session_id,
        scope=scope_of(row),
        role=row.role,
        source=row.source,
        tags=[] if row.tags == "[]" else msgspec.json.decode(row.tags),
        metadata=metadata,
        importance=row.importance,
        confidence=row.confidence,
        access_count=row.access_count,
        last_accessed_at=_maybe(row.last_accessed_at),
        valid_from=_maybe(row.valid_from),
        invalid_at=_maybe(row.invalid_at),
        superseded_by=row.superseded_by,
        archived_at=_maybe(row.archived_at),
        source_refs=refs_of(row),
        origin=origin_of(stamp, row.kind, row.role),
        written_by=stamp.get(BY, []),
        read=stamp.get(READ, []),
        confirmed_at=_maybe(stamp.get(CONFIRMED)),
        pinned=PINNED in stamp,
        occurred_at=said if zone is None else local(said, zone),
        created_at=created,
        updated_at=created if row.updated_at == row.created_at else moment(row.updated_at),
    )


def pinned_row(row: Record, pin: bool) -> Record:
    """Return the row pinned, or not."""
    metadata = msgspec.json.decode(row.metadata)
    metadata.pop(PINNED, None)
    return row._replace(metadata=compact_json(metadata | ({PINNED: True} if pin else {})))


def refs_of(row: Record) -> list[str]:
    """Return the ids of the sources of the row."""
    return [] if row.source_refs == "[]" else list(msgspec.json.decode(row.source_refs))


def context_of(row: Record) -> list[str]:
    """Return the ids of messages that are no sources of a fact, and have words of it that its sources do not have."""
    if row.kind != "fact" or f'"{CONTEXT}"' not in row.metadata:
        return []
    refs = msgspec.json.decode(row.metadata).get(CONTEXT)
    refs = refs if isinstance(refs, list) else []
    return [ref for ref in refs if isinstance(ref, str) and 0 < len(ref) <= MAX_ID_CHARS]


def linked_to(row: Record) -> list[str]:
    """Return the ids of everything whose removal changes the row: its sources, and its context."""
    return list(dict.fromkeys([*refs_of(row), *context_of(row)]))


_SEEN = (
    ("$user_id", "user_id"),
    ("$agent_id", "agent_id"),
    ("$channel_id", "channel_id"),
    ("$session_id", "session_id"),
    ("$role", "role"),
    ("$source", "source"),
    ("$valid_from", "valid_from"),
    ("$invalid_at", "invalid_at"),
    ("$archived_at", "archived_at"),
)
_PLACES = [(key, Record._fields.index(name)) for key, name in _SEEN]


def attributes(row: Record) -> dict[str, Any]:
    """Return the filter attributes of a row: its own fields under `$`, then its top-level metadata. Fields that are
    None are left out: filters treat them the same, and indexes store a key less."""
    values: dict[str, Any] = {"$seq": row.seq, "$kind": row.kind, "$occurred_at": row.occurred_at}
    for key, place in _PLACES:
        if row[place] is not None:
            values[key] = row[place]
    if row.tags != "[]":
        values["$tags"] = msgspec.json.decode(row.tags)
    if row.metadata != "{}":
        values.update(msgspec.json.decode(row.metadata))
    return values


def speaker(row: Record) -> str | None:
    """Return the speaker of a message: metadata `speaker` or `name`, else the role; None for other kinds."""
    return speaker_of(row.metadata, row.role) if row.kind == "message" else None


def speaker_of(metadata: str, role: str | None) -> str | None:
    """Return the speaker of a message by its metadata (JSON) and role."""
    if metadata != "{}":
        fields = msgspec.json.decode(metadata)
        for key in ("speaker", "name"):
            if isinstance(fields.get(key), str) and fields[key]:
                return str(fields[key])
    return role


def memory_speaker(memory: Memory) -> str | None:
    """Return the speaker of a memory: metadata `speaker` or `name`, else the role."""
    for key in ("speaker", "name"):
        if isinstance(named := memory.metadata.get(key), str) and named:
            return named
    return memory.role


def speaker_name(memory: Memory) -> str | None:
    """Return the name of the speaker of a message; for a person without a name the user id, else the role."""
    speaker = memory_speaker(memory)
    unnamed = speaker == memory.role and (speaker or "user").lower() in UNNAMED
    return memory.user_id if unnamed and memory.user_id else speaker


def zone_of(metadata: str) -> Any:
    """Return the offset from UTC in the metadata (JSON) of a row; None without one."""
    return msgspec.json.decode(metadata).get(ZONE) if ZONE in metadata else None


def header(row: Record) -> str:
    """Return what embeddings and keyword search see before the content: `[08 May 2023] speaker: ` for a message, if the
    caller gave the date and the speaker is known; the row's own header for a chunk; nothing for other kinds."""
    if row.header is not None:
        return row.header
    date = ""
    if row.kind == "message" and row.dated:
        date = f"[{local(moment(row.occurred_at), zone_of(row.metadata)):%d %B %Y}] "
    who = speaker(row)
    return f"{date}{who}: " if who else date


def searched_text(row: Record) -> str:
    """Return the text that is embedded and searched by keywords: the row's header and content."""
    return header(row) + row.content


def fetch(connection: Connection, tenant: str, seqs: Iterable[int]) -> dict[int, Record]:
    """Return the existing rows of these seqs, by seq."""
    wanted = list(seqs)
    if not wanted:
        return {}
    few = len(wanted) <= 64
    places = ", ".join("?" * len(wanted)) if few else "SELECT value FROM {seqs ?} wanted"
    rows = connection.select(
        f"SELECT {COLUMNS} FROM memories WHERE tenant_id = ? AND seq IN ({places})",
        [tenant, *wanted] if few else [tenant, json.dumps(wanted)],
    )
    return {row[1]: Record._make(row) for row in rows}


def fetch_ids(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, Record]:
    """Return the existing rows of these ids, by id."""
    rows = connection.select(
        f"SELECT {', '.join('m.' + name for name in Record._fields)} FROM {{texts ?2}} wanted"
        " {join} memories m ON m.tenant_id = ?1 AND m.id = wanted.value",
        [tenant, json.dumps([id_ for id_ in ids if nameable(id_)])],
    )
    return {row[3]: Record._make(row) for row in rows}


def newer_than(connection: Connection, tenant: str, rev: int, after: int, limit: int) -> list[Record]:
    """Return rows changed after revision `rev`, by seq, beginning after seq `after`; at most `limit`.

    A row that never changed has its seq as its revision; only the others are in an index by revision.
    """
    rows = connection.select(
        f"SELECT {COLUMNS} FROM memories WHERE tenant_id = ?1 AND seq > ?3 AND (seq > ?2 OR seq IN ("
        "SELECT seq FROM memories WHERE tenant_id = ?1 AND rev <> seq AND rev > ?2)) ORDER BY seq LIMIT ?4",
        [tenant, rev, after, limit],
    )
    return [Record._make(row) for row in rows]


class Part(msgspec.Struct):
    """One window of a text and its vector: characters [start, stop) of the content. `tokens` are the codes of its token
    vectors; None until they are made, empty if there are none to make."""

    start: int
    stop: int
    text: str
    text_hash: str
    vector: NDArray[np.float32] | None = None
    tokens: bytes | None = None


class Draft(msgspec.Struct):
    """A row before it is written (seq and rev are 0), the vectors that `model` made for it, and the ids of the facts
    that it `replaces`."""

    row: Record
    named: bool
    parts: list[Part] = msgspec.field(default_factory=list)
    model: str = ""
    replaces: tuple[str, ...] = ()

    @property
    def embedded(self) -> bool:
        """True if every window has its vector."""
        return bool(self.parts) and all(part.vector is not None for part in self.parts)
