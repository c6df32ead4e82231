"""The tables of an archive: what a row of each is, which rows are the same, and which rows belong to which.

Columns and keys are those of the schema. A number that orders rows (`seq`, `rev`) is another one in every database, so
an archive has none. The order of its lines is the order of the rows, and where a row refers to another by number, the
archive has the id.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any

import msgspec

from memoranda.storage.sql.schema import Column, schema

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


SCHEDULED = frozenset(("due_at", "next_try_at", "facts_next_try_at"))
"""Columns whose moments may be beyond the year 9999; all others that end in `_at` are moments."""
PLACES = ("user_id", "agent_id", "channel_id")
"""Columns that another scope replaces."""


class Table(msgspec.Struct, frozen=True, dict=True):
    """A table and its lines in an archive.

    `what` is one row of it in a report. Lines have the columns of the schema, but for `without`, and `references`: SQL
    expressions of fields that stand for numbers, which the restore resolves. Columns of texts that are JSON are
    `objects` and `arrays`, if their default does not say so. `marks` distinguish a row from another one that has the
    same key by chance. A row is restored only if the rows of its `parents` (column: table) are there and its `groups`
    were not refused. `scopes` are the columns that another scope replaces. Of `marks` and `scopes` a table has some or
    none.
    """

    name: str
    what: str
    objects: tuple[str, ...] = ()
    arrays: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    marks: tuple[str, ...] = ("created_at",)
    where: str = ""
    references: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    parents: Mapping[str, str] = msgspec.field(default_factory=dict)
    groups: Mapping[str, str] = msgspec.field(default_factory=dict)
    scopes: tuple[str, ...] = ("user_id",)

    @cached_property
    def _schema(self) -> Mapping[str, Column]:
        return schema()[self.name]

    @cached_property
    def columns(self) -> dict[str, str]:
        """The kinds of the columns that are stored as they are, by name."""
        left_out = {"tenant_id", "seq", *self.without}
        return {
            name: self._kind(name, column) for name, column in self._schema.items() if name not in left_out
        }

    def _kind(self, name: str, column: Column) -> str:
        if column.type == "INTEGER":
            kind = "time" if name.endswith("_at") and name not in SCHEDULED else "int"
        elif name in self.objects or column.default == "'{}'":
            kind = "object"
        else:
            kind = "array" if name in self.arrays or column.default == "'[]'" else "text"
        return f"{kind}?" if column.nullable else kind

    @cached_property
    def _primary(self) -> tuple[str, ...]:
        keys = sorted((column.key, name) for name, column in self._schema.items() if column.key)
        return tuple(name for _, name in keys if name != "tenant_id")

    @cached_property
    def key(self) -> tuple[str, ...]:
        """The columns that identify a row within its tenant, in every database."""
        return tuple("id" if name == "seq" and "id" in self._schema else name for name in self._primary)

    @cached_property
    def order(self) -> tuple[str, ...]:
        """The columns by which rows are ordered."""
        return ("seq",) if self.numbered and "seq" not in self._primary else self._primary

    @cached_property
    def numbered(self) -> bool:
        """True if a restored row gets a `seq`."""
        return "seq" in self._schema and "seq" not in self.key

    @cached_property
    def same(self) -> tuple[str, ...]:
        """The columns of `marks`."""
        return tuple(name for name in self.marks if name in self._schema)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The columns of `scopes`."""
        return tuple(name for name in self.scopes if name in self._schema)

    @cached_property
    def fields(self) -> dict[str, str]:
        """The kinds of all fields of a line, by name."""
        return {**self.columns, **{name: kind for name, (kind, _) in self.references.items()}}

    @cached_property
    def decoder(self) -> msgspec.json.Decoder[Any]:
        """A decoder of lines; unknown fields, missing ones and ones of another type are errors. A column that was added
        to its table later may be missing: then it has its default."""
        fields: list[Any] = []
        for name, kind in self.fields.items():
            type_, column = KINDS[kind.removesuffix("?")], self._schema.get(name)
            if kind.endswith("?"):
                fields.append((name, type_ | None, None))
            elif column is not None and column.added and column.default is not None:
                fields.append((name, type_, _default(type_, column.default)))
            else:
                fields.append((name, type_))
        line_type = msgspec.defstruct(f"{self.name}_line", fields, kw_only=True, forbid_unknown_fields=True)
        return msgspec.json.Decoder(line_type)

    def sql_type(self, name: str) -> str:
        """The type of a column in every database: `TEXT` or `BIGINT`."""
        return "BIGINT" if self._schema[name].type == "INTEGER" else "TEXT"


def _default(type_: Any, sql: str) -> Any:
    text = sql.strip("'")
    return type_(text.encode()) if type_ is msgspec.Raw else text if type_ is str else int(text)


OWNED = ("user_id", "created_at")
FILES = Table("files", "file", marks=("sha256", "user_id"))
STORES = Table(
    "vector_stores", "vector store", objects=("metadata", "chunking"), without=("model", "dim"), marks=OWNED
)
WRITERS = Table("store_writers", "writer of a vector store", parents={"store_id": "vector_stores"})
BATCHES = Table("file_batches", "file batch", parents={"store_id": "vector_stores"})
ATTACHED = Table(
    "store_files",
    "file in a vector store",
    objects=("attributes", "chunking"),
    without=("writing",),
    parents={"store_id": "vector_stores", "file_id": "files"},
)
AGENTS = Table("agents", "agent profile", objects=("body",), marks=OWNED)
CONVERSATIONS = Table("conversations", "conversation", objects=("metadata", "summary"), marks=OWNED)
ITEMS = Table(
    "conversation_items",
    "conversation item",
    objects=("item",),
    parents={"conversation_id": "conversations"},
)
RESPONSES = Table(
    "responses",
    "response",
    objects=("body", "summary"),
    arrays=("input", "output"),
    marks=OWNED,
    where="t.status NOT IN ('queued', 'in_progress')",
)
EVENTS = Table(
    "response_events",
    "run of response events",
    parents={"response_id": "responses"},
    where="EXISTS (SELECT 1 FROM responses r WHERE r.tenant_id = t.tenant_id AND r.id = t.response_id"
    " AND r.status NOT IN ('queued', 'in_progress'))",
)
MESSAGES = Table(
    "messages",
    "message",
    objects=("metadata",),
    groups={"session_id": "sessions"},
    scopes=PLACES,
)
SESSIONS = Table(
    "sessions",
    "session",
    without=("rev", "facts_seq", "facts_rev", "summary_rev"),
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
    scopes=PLACES,
)
ROLLUPS = Table("rollups", "weekly summary")
SWITCHES = Table("switches", "switch")
ASK_STORES = Table(
    "ask_stores", "store of a user's documents", marks=("store_id",), parents={"store_id": "vector_stores"}
)
ASK_SESSIONS = Table("ask_sessions", "session of questions", marks=OWNED, groups={"id": "sessions"})
QUERIES = Table(
    "query_log",
    "logged question",
    arrays=("sources", "memories"),
    groups={"session_id": "ask_sessions"},
)


def _of_query(column: str) -> tuple[str, str]:
    """Return SQL for the question that a column has the number of: that it exists, and its id."""
    queries = f"FROM query_log q WHERE q.tenant_id = t.tenant_id AND q.seq = t.{column})"
    return f"EXISTS (SELECT 1 {queries}", f"(SELECT q.id {queries}"


ASK_MEMORIES = Table(
    "ask_memories",
    "memory of a question",
    where=_of_query("seq")[0],
    references={"query_id": ("text", _of_query("seq")[1])},
)
ASK_SUMMARIES = Table(
    "ask_summaries",
    "summary of questions",
    without=("through",),
    groups={"session_id": "ask_sessions"},
    where=_of_query("through")[0],
    references={"query_id": ("text", _of_query("through")[1])},
)
MEMORY_STORES = Table("memory_stores", "memory store", objects=("metadata",), marks=OWNED)
STORE_MEMORIES = Table("store_memories", "memory in a store", parents={"store_id": "memory_stores"})
MEMORY_VERSIONS = Table(
    "memory_versions",
    "version of a memory in a store",
    parents={"store_id": "memory_stores", "memory_id": "store_memories"},
    where="EXISTS (SELECT 1 FROM store_memories m WHERE m.tenant_id = t.tenant_id AND m.id = t.memory_id)",
)
FORGOTTEN = Table("forgotten", "tombstone")
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
