"""The values that cross every door: memories, searches, hits, receipts. No behaviour, no I/O."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict, get_args

import msgspec
from msgspec import Meta

Kind = Literal[
    "message", "document", "note", "fact", "qa_turn", "summary", "session_summary", "rollup", "item"
]
EvidenceLevel = Literal["strong", "weak", "none"]
Role = Literal["admin", "service", "member", "reader"]
Tags = Annotated[list[str], Meta(max_length=1_000)]
Refs = Annotated[list[str], Meta(max_length=1_000)]
Scopes = Annotated[list[str], Meta(max_length=1_000)]
Kinds = Annotated[list[Kind], Meta(max_length=64)]
Hierarchy = Annotated[dict[str, str], Meta(max_length=8)]
Weights = Annotated[dict[str, float], Meta(max_length=16)]
KINDS: tuple[str, ...] = get_args(Kind)
DEFAULT_KINDS = tuple(kind for kind in KINDS if kind != "item")
"""The kinds that a selection without `kinds` means: entries of key-value stores are found only by their kind."""
ROLES: tuple[str, ...] = get_args(Role)
MACHINES = frozenset({"agent", "ai", "assistant", "bot", "developer", "function", "model", "system", "tool"})
"""Roles of messages that no person wrote, in lower case, also where a message belongs to a user."""
SCOPE_FIELDS: tuple[str, ...] = ("session_id", "user_id", "agent_id", "channel_id")


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking, inside which tenant.

    `admin` sees all of the tenant. `service` names the scopes it works in, any but `all`. `member` and
    `reader` see the rows whose `user_id` is their own or null; a reader writes nothing.
    """

    tenant_id: str = "default"
    user_id: str | None = None
    role: Role = "admin"


class NewMemory(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A memory as it is handed in. Only `content` is required."""

    content: str
    id: str | None = None
    kind: Kind = "note"
    user_id: str | None | msgspec.UnsetType = msgspec.UNSET
    agent_id: str | None = None
    channel_id: str | None = None
    session_id: str | None = None
    role: str | None = None
    source: str | None = None
    tags: Tags = []
    metadata: dict[str, Any] = {}
    importance: int = 0
    confidence: float = 1.0
    valid_from: datetime | None = None
    invalid_at: datetime | None = None
    source_refs: Refs = []
    occurred_at: datetime | None = None
    embedding: Any = None
    """A vector of the configured model, (dim,) floats; when absent the text is embedded."""


class Memory(msgspec.Struct, kw_only=True):
    """One remembered text with its provenance. The embedding is stored beside it and never leaves."""

    id: str
    kind: Kind
    content: str
    content_hash: str
    user_id: str | None = None
    agent_id: str | None = None
    channel_id: str | None = None
    session_id: str | None = None
    scope: str = "global"
    role: str | None = None
    source: str | None = None
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    importance: int = 0
    confidence: float = 1.0
    access_count: int = 0
    last_accessed_at: datetime | None = None
    valid_from: datetime | None = None
    invalid_at: datetime | None = None
    superseded_by: str | None = None
    archived_at: datetime | None = None
    source_refs: list[str] = []
    occurred_at: datetime
    created_at: datetime
    updated_at: datetime


class Added(msgspec.Struct, kw_only=True):
    """What one write came to. `created` is False when the same text was already there in the same scope:
    `memory` is then the row that was. `embedded` is False when its vector follows by a job."""

    memory: Memory
    created: bool
    embedded: bool


class Change(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """An update: fields that are left unset stay as they are."""

    content: str | msgspec.UnsetType = msgspec.UNSET
    kind: Kind | msgspec.UnsetType = msgspec.UNSET
    role: str | None | msgspec.UnsetType = msgspec.UNSET
    source: str | None | msgspec.UnsetType = msgspec.UNSET
    tags: Tags | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    importance: int | msgspec.UnsetType = msgspec.UNSET
    confidence: float | msgspec.UnsetType = msgspec.UNSET
    valid_from: datetime | None | msgspec.UnsetType = msgspec.UNSET
    invalid_at: datetime | None | msgspec.UnsetType = msgspec.UNSET
    source_refs: Refs | msgspec.UnsetType = msgspec.UNSET
    occurred_at: datetime | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET


class Selection(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which memories: the part of a question that search, list, count, forget and export share."""

    scopes: Scopes | None = None
    """`session:X`, `channel:X`, `agent:X`, `user:X`, `global`, `all`; a memory in any of them is meant."""
    kinds: Kinds | None = None
    tags: Tags | None = None
    """Every tag named must be on the memory."""
    filters: dict[str, Any] | None = None
    """Metadata conditions, see `filters.parse`."""
    source: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    """`since` <= occurred_at < `until`."""
    as_of: datetime | None = None
    """Only what was valid at that moment, superseded rows of the past included."""
    include_archived: bool = False


class Forget(Selection, kw_only=True, forbid_unknown_fields=True):
    """What to forget."""

    text: str | None = None
    """What holds these words in this order, whatever their case: its text, tags, metadata, file name, ..."""


class Query(Selection, kw_only=True, forbid_unknown_fields=True):
    """A search. The defaults return the ten best of what the subject may see."""

    query: str
    limit: int = 10
    threshold: float | None = None
    """Floor on the calibrated dense similarity, 0..1; None asks for the configured default, 0 is no floor."""
    mode: Literal["hybrid", "dense", "words"] = "hybrid"
    embedding: Any = None
    """The query's vector of the configured model, (dim,) floats; when absent the text is embedded."""
    hierarchy: Hierarchy | None = None
    """`{"session": "s1", "user": "u1", ...}`: searches each scope and global, and weighs them."""
    weights: Weights | None = None
    """Overrides of the fusion weights `dense` and `words`, and of scope weights by scope name."""
    rerank: Literal["auto", "people", "assistant", "plain", "sessions", "off"] | None = None
    """The second stage of ranking: by the style of a conversation, which `auto` tells by its speakers; `sessions`
    merges messages and session summaries; `off` leaves the fused order. None is the configured one, here and below.
    It goes with mode `hybrid`, and is off in the others."""
    recency: Literal["off", "decay", "boost"] | None = None
    """`decay` makes less of facts that were not used for long, `boost` more of what is important or new."""
    times: bool | None = None
    """Whether times that the query names ("last May"), seen from `as_of`, count for messages of that time."""
    enrich: bool | None = None
    """Whether the query is embedded under a header as messages have one, made of the time and person it names."""
    hyde: bool | None = None
    """Whether a search that is unsure is made again near a passage that the language model imagines."""
    model_rerank: Annotated[int, Meta(ge=0, le=50)] | None = None
    """How many of the first hits the language model puts in order; 0 is none."""
    explain: bool = False
    count_access: bool = False
    """Counts this as a use: access_count rises and last_accessed_at moves on every hit."""


class Highlight(msgspec.Struct, kw_only=True, frozen=True):
    """A matching snippet: characters [start, end) of the content."""

    text: str
    start: int
    end: int


class Explanation(msgspec.Struct, kw_only=True):
    """Every part of a hit's score. A part that was not computed is None.

    `fused` is the score of the first stage, scope weight included, and `rank_before` the rank by it without scope
    weights. `preset` names the second stage, if there was one: `added` is what it added to the first stage's score,
    part by part, and `factors` what it multiplied the sum with (`decay`, `boost`, `kind`). `model_rank` is the place
    that a language model gave it.
    """

    cosine: float | None = None
    similarity: float | None = None
    bm25: float | None = None
    dense_normalised: float | None = None
    words_normalised: float | None = None
    dense_rank: int | None = None
    words_rank: int | None = None
    weights: dict[str, float] = {}
    scope: str | None = None
    scope_weight: float = 1.0
    fused: float = 0.0
    preset: str | None = None
    added: dict[str, float] = {}
    factors: dict[str, float] = {}
    model_rank: int | None = None
    rank_before: int = 0
    rank_after: int = 0
    formula: str = ""


class Hit(msgspec.Struct, kw_only=True):
    """A memory found. `score` orders the hits of one search, 0..1; `similarity` is the calibrated dense
    similarity, 0..1, and means the same across searches (None when the dense side did not answer)."""

    memory: Memory
    score: float
    similarity: float | None
    highlights: list[Highlight] = []
    explanation: Explanation | None = None


class SearchResult(msgspec.Struct, kw_only=True):
    """The hits, best first. `evidence_probability`, in 0..1, says how likely the answer is among the first ten, and
    `evidence` what that amounts to: `none` below .25, `strong` from .6. `query_time` is in seconds. `degraded` names
    the sides that could not answer in full (`embedding`, `index`, `words`), and what was to help and failed (`hyde`,
    `model_rerank`); empty means a complete answer."""

    results: list[Hit]
    total_count: int
    query_time: float
    evidence: EvidenceLevel = "none"
    evidence_probability: float = 0.0
    degraded: list[str] = []


class Page(msgspec.Struct, kw_only=True):
    """One page of a listing. `after=last_id` asks for the next one."""

    data: list[Memory]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Receipt(msgspec.Struct, kw_only=True):
    """What was forgotten. `tombstone` is the id of the record that stays: id, time, counts, no text."""

    tombstone: str
    memories: int
    vectors: int
    erased_at: datetime
    note: str
    counts: dict[str, int] = {}
    """What was erased, by kind: `memories`, `vectors`, `messages`, `responses`, `files`, ...; only what there was."""


class NearDuplicate(msgspec.Struct, kw_only=True):
    """Two memories of one scope that say nearly the same. `reason` is `cosine` or `jaccard`."""

    first: str
    second: str
    cosine: float | None
    jaccard: float
    reason: str


class Job(msgspec.Struct, kw_only=True):
    """A piece of durable work. `done` and `total` count in the unit of the job (rows, mostly)."""

    id: str
    kind: str
    state: Literal["queued", "running", "completed", "failed", "cancelled"]
    done: int
    total: int | None
    attempts: int
    error: str | None
    result: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


class MemoryFields(TypedDict, total=False):
    """The optional fields of `types.NewMemory`, as keywords."""

    id: str
    kind: Kind
    user_id: str | None
    agent_id: str | None
    channel_id: str | None
    session_id: str | None
    role: str | None
    source: str | None
    tags: list[str]
    metadata: dict[str, Any]
    importance: int
    confidence: float
    valid_from: datetime | None
    invalid_at: datetime | None
    source_refs: list[str]
    occurred_at: datetime | None
    embedding: Any


class ChangeFields(TypedDict, total=False):
    """The fields of `types.Change`, as keywords."""

    content: str
    kind: Kind
    role: str | None
    source: str | None
    tags: list[str]
    metadata: dict[str, Any]
    importance: int
    confidence: float
    valid_from: datetime | None
    invalid_at: datetime | None
    source_refs: list[str]
    occurred_at: datetime
    archived: bool


class SelectionFields(TypedDict, total=False):
    """The fields of `types.Selection`, as keywords."""

    scopes: list[str] | None
    kinds: list[Kind] | None
    tags: list[str] | None
    filters: dict[str, Any] | None
    source: str | None
    since: datetime | None
    until: datetime | None
    as_of: datetime | None
    include_archived: bool


class ForgetFields(SelectionFields, total=False):
    """The fields of `types.Forget`, as keywords."""

    text: str | None


class SearchFields(SelectionFields, total=False):
    """The fields of `types.Query` beside the query, as keywords."""

    limit: int
    threshold: float | None
    mode: str
    embedding: Any
    hierarchy: dict[str, str] | None
    weights: dict[str, float] | None
    rerank: str | None
    recency: str | None
    times: bool | None
    enrich: bool | None
    hyde: bool | None
    model_rerank: int | None
    explain: bool
    count_access: bool
