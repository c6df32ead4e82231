"""The tables of an archive: which columns each has, what identifies a row, and which rows belong to which.

A number that orders rows (`seq`, `rev`) is another one in every database, so an archive has none. The order of its
lines is the order of the rows, and where a row refers to another by number, the archive has the id.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec

Whole = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
Moment = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_300_799_999_999)]
"""Microseconds since 1970, in the years 1 to 9999."""
KINDS: dict[str, Any] = {
    "text": str,
    "int": Whole,
    "time": Moment,
    "object": msgspec.Raw,
    "array": msgspec.Raw,
}
"""Kinds of columns; a `?` behind one allows null. `object` and `array` are JSON."""


def _columns(text: str) -> dict[str, str]:
    return dict(column.split() for column in text.split(", "))


PLACES = ("user_id", "agent_id", "channel_id")
"""Columns that another scope replaces."""


class Table(msgspec.Struct, frozen=True, dict=True):
    """A table and its lines in an archive.

    `what` is one row of it in a report. `columns` are stored as they are; `references` are SQL expressions of fields
    that stand for numbers, which the restore resolves. `key` identifies a row within its tenant, `same` distinguishes a
    row from another one that has the same key by chance. A row is restored only if the rows of its `parents` (column:
    table) are there and its `groups` were not refused. `places` are the columns that another scope replaces.
    `numbered`: rows have a `seq`.
    """

    name: str
    what: str
    columns: Mapping[str, str]
    key: tuple[str, ...] = ("id",)
    order: tuple[str, ...] = ("seq",)
    same: tuple[str, ...] = ("created_at",)
    where: str = ""
    references: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    parents: Mapping[str, str] = msgspec.field(default_factory=dict)
    groups: Mapping[str, str] = msgspec.field(default_factory=dict)
    places: tuple[str, ...] = ("user_id",)
    numbered: bool = True

    @cached_property
    def fields(self) -> dict[str, str]:
        """The kinds of all fields of a line, by name."""
        return {**self.columns, **{name: kind for name, (kind, _) in self.references.items()}}

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Any]:
        """A decoder of lines; unknown fields, missing ones and ones of another type are errors."""
        fields: list[Any] = []
        for name, kind in self.fields.items():
            type_ = KINDS[kind.removesuffix("?")]
            fields.append((name, type_ | None, None) if kind.endswith("?") else (name, type_))
        line_type = msgspec.defstruct(f"{self.name}_line", fields, kw_only=True, forbid_unknown_fields=True)
        return msgspec.json.Decoder(line_type)


FILES = Table(
    "files",
    "file",
    _columns(
        "id text, filename text, bytes int, purpose text, media_type text?, sha256 text, user_id text?, created_at "
        "time, expires_at time?"
    ),
    same=("sha256", "user_id"),
)
STORES = Table(
    "vector_stores",
    "vector store",
    _columns(
        "id text, name text, description text?, metadata object, chunking object, user_id text?, sharing text, "
        "expires_days int?, expired int, created_at time, last_active_at time"
    ),
    same=("user_id", "created_at"),
)
WRITERS = Table(
    "store_writers",
    "writer of a vector store",
    _columns("store_id text, user_id text"),
    key=("store_id", "user_id"),
    order=("store_id", "user_id"),
    same=(),
    parents={"store_id": "vector_stores"},
    numbered=False,
)
BATCHES = Table(
    "file_batches",
    "file batch",
    _columns("id text, store_id text, cancelled int, created_at time"),
    order=("id",),
    parents={"store_id": "vector_stores"},
    places=(),
    numbered=False,
)
ATTACHED = Table(
    "store_files",
    "file in a vector store",
    _columns(
        "store_id text, file_id text, status text, error_code text?, error_message text?, attributes object, chunking "
        "object, batch_id text?, chunk_count int, usage_bytes int, title text?, notes array, created_at time"
    ),
    key=("store_id", "file_id"),
    parents={"store_id": "vector_stores", "file_id": "files"},
    places=(),
)
AGENTS = Table(
    "agents",
    "agent profile",
    _columns("id text, name text, user_id text?, body object, created_at time, updated_at time"),
    same=("user_id", "created_at"),
)
CONVERSATIONS = Table(
    "conversations",
    "conversation",
    _columns("id text, user_id text?, metadata object, summary object?, created_at time"),
    same=("user_id", "created_at"),
)
ITEMS = Table(
    "conversation_items",
    "conversation item",
    _columns("conversation_id text, id text, response_id text?, item object, created_at time"),
    key=("conversation_id", "id"),
    order=("conversation_id", "seq"),
    parents={"conversation_id": "conversations"},
    places=(),
)
RESPONSES = Table(
    "responses",
    "response",
    _columns(
        "id text, user_id text?, session_id text, previous_id text?, conversation_id text?, agent_id text?, status "
        "text, background int, body object, input array, output array, summary object?, summarized_to text?, "
        "created_at time"
    ),
    same=("user_id", "created_at"),
    where="t.status NOT IN ('queued', 'in_progress')",
)
EVENTS = Table(
    "response_events",
    "run of response events",
    _columns("response_id text, first int, last int, events text"),
    key=("response_id", "first"),
    order=("response_id", "first"),
    same=(),
    parents={"response_id": "responses"},
    places=(),
    where="EXISTS (SELECT 1 FROM responses r WHERE r.tenant_id = t.tenant_id AND r.id = t.response_id"
    " AND r.status NOT IN ('queued', 'in_progress'))",
    numbered=False,
)
MESSAGES = Table(
    "messages",
    "message",
    _columns(
        "id text, key text, session_id text, channel_id text?, user_id text?, agent_id text?, role text, speaker "
        "text?, content text, tokens int, metadata object, response_id text?, indexed int, extract int, occurred_at "
        "time, created_at time"
    ),
    groups={"session_id": "sessions"},
    places=PLACES,
)
SESSIONS = Table(
    "sessions",
    "session",
    _columns(
        "id text, named int, private int, channel_id text?, user_id text?, agent_id text?, metadata object, "
        "started_at time, ended_at time, last_seen_at time, due_at int, message_count int, participants array, users "
        "array, status text, summary text?, topics array, decisions array, open_questions array, action_items array, "
        "entities array, summary_id text?, summary_model text?, summary_version int?, summary_created_at time?, "
        "failure text?, pending int, attempts int, next_try_at int, extraction text, facts_failure text?, "
        "facts_attempts int, facts_next_try_at int, created_at time, updated_at time"
    ),
    references={
        "facts_upto": (
            "text?",
            "(SELECT m.id FROM messages m WHERE m.tenant_id = t.tenant_id AND m.session_id = t.id"
            " AND m.seq <= t.facts_seq ORDER BY m.seq DESC LIMIT 1)",
        ),
        "facts_current": ("int", "CASE WHEN t.facts_rev >= t.rev THEN 1 ELSE 0 END"),
        "summary_current": (
            "int?",
            "CASE WHEN t.summary_rev IS NULL THEN NULL WHEN t.summary_rev = t.rev THEN 1 ELSE 0 END",
        ),
    },
    places=PLACES,
)
ROLLUPS = Table(
    "rollups",
    "weekly summary",
    _columns(
        "channel_id text, owner text, week int, memory_id text?, version int, sessions int, stale int, due_at int, "
        "attempts int, failure text?, updated_at time"
    ),
    key=("channel_id", "owner", "week"),
    order=("channel_id", "owner", "week"),
    same=(),
    places=(),
    numbered=False,
)
SWITCHES = Table(
    "switches",
    "switch",
    _columns("channel_id text, name text, value int"),
    key=("channel_id", "name"),
    order=("channel_id", "name"),
    same=(),
    places=(),
    numbered=False,
)
ASK_STORES = Table(
    "ask_stores",
    "store of a user's documents",
    _columns("owner text, store_id text"),
    key=("owner",),
    order=("owner",),
    same=("store_id",),
    parents={"store_id": "vector_stores"},
    places=(),
    numbered=False,
)
ASK_SESSIONS = Table(
    "ask_sessions",
    "session of questions",
    _columns("id text, user_id text?, created_at time"),
    same=("user_id", "created_at"),
    groups={"id": "sessions"},
)
QUERIES = Table(
    "query_log",
    "logged question",
    _columns(
        "id text, session_id text, user_id text?, question text, answer text, sources array, memories array, status "
        "text, model text, latency_ms int, question_tokens int, answer_tokens int, document_tokens int, memory_tokens "
        "int, history_tokens int, created_at time, erased_at time?"
    ),
    groups={"session_id": "ask_sessions"},
)
ASK_MEMORIES = Table(
    "ask_memories",
    "memory of a question",
    _columns("memory_id text?"),
    key=("seq",),
    order=("seq",),
    same=(),
    places=(),
    numbered=False,
    references={
        "query_id": (
            "text",
            "(SELECT q.id FROM query_log q WHERE q.tenant_id = t.tenant_id AND q.seq = t.seq)",
        )
    },
    where="EXISTS (SELECT 1 FROM query_log q WHERE q.tenant_id = t.tenant_id AND q.seq = t.seq)",
)
ASK_SUMMARIES = Table(
    "ask_summaries",
    "summary of questions",
    _columns("session_id text, memory_id text"),
    key=("session_id", "through"),
    order=("session_id", "through"),
    same=(),
    places=(),
    numbered=False,
    groups={"session_id": "ask_sessions"},
    references={
        "query_id": (
            "text",
            "(SELECT q.id FROM query_log q WHERE q.tenant_id = t.tenant_id AND q.seq = t.through)",
        )
    },
    where="EXISTS (SELECT 1 FROM query_log q WHERE q.tenant_id = t.tenant_id AND q.seq = t.through)",
)
MEMORY_STORES = Table(
    "memory_stores",
    "memory store",
    _columns(
        "id text, name text, description text, metadata object, user_id text?, archived_at time?, created_at time, "
        "updated_at time"
    ),
    same=("user_id", "created_at"),
)
STORE_MEMORIES = Table(
    "store_memories",
    "memory in a store",
    _columns("id text, store_id text, path text?, version_id text, created_at time, updated_at time"),
    order=("id",),
    parents={"store_id": "memory_stores"},
    places=(),
    numbered=False,
)
MEMORY_VERSIONS = Table(
    "memory_versions",
    "version of a memory in a store",
    _columns(
        "id text, store_id text, memory_id text, operation text, written_by text?, created_at time, redacted_by text?, "
        "redacted_at time?, path text?, content_sha256 text?, content_bytes int?, content text?"
    ),
    parents={"store_id": "memory_stores", "memory_id": "store_memories"},
    places=(),
    where="EXISTS (SELECT 1 FROM store_memories m WHERE m.tenant_id = t.tenant_id AND m.id = t.memory_id)",
)
FORGOTTEN = Table(
    "forgotten",
    "tombstone",
    _columns("salt text, mark text, forgotten_at time"),
    key=("salt", "mark", "forgotten_at"),
    order=("salt", "mark", "forgotten_at"),
    same=(),
    places=(),
    numbered=False,
)
TABLES = (
    FORGOTTEN,
    FILES,
    STORES,
    WRITERS,
    BATCHES,
    ATTACHED,
    AGENTS,
    MEMORY_STORES,
    STORE_MEMORIES,
    MEMORY_VERSIONS,
    CONVERSATIONS,
    ITEMS,
    RESPONSES,
    EVENTS,
    MESSAGES,
    SESSIONS,
    ROLLUPS,
    SWITCHES,
    ASK_STORES,
    ASK_SESSIONS,
    QUERIES,
    ASK_MEMORIES,
    ASK_SUMMARIES,
)
"""In the order in which they are restored: `chunks` after `store_files`, `memories` after `sessions`."""
CHUNKS, MEMORIES = "chunks", "memories"
"""Members of an archive beside the tables: searchable rows with their vectors."""
LEFT_OUT = {
    "counters": "numbers of the database",
    "meta": "belongs to the database",
    "tenants": "made with the first row",
    "spaces": "belongs to the database",
    "unembedded": "derived from memories",
    "removals": "work of the indexes",
    "unsettled": "work of the indexes",
    "memory_sources": "derived from memories",
    "embeddings": "in memories and chunks",
    "jobs": "work that is under way",
    "left_places": "kept for an hour",
    "uploads": "files that are not complete",
    "upload_parts": "files that are not complete",
    "removing": "what is being deleted",
    "quotas": "set by the operator",
    "spending": "what this installation has spent",
    "tombstones": "receipts of this installation",
    "blobs": "in files/",
    "blob_pieces": "in files/",
}
"""Tables that an archive does not have, and why."""
