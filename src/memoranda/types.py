"""The values of every interface: memories, searches, hits, receipts. No behaviour, no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

Kind = Literal[
    "message", "document", "note", "fact", "qa_turn", "summary", "session_summary", "rollup", "item"
]
EvidenceLevel = Literal["strong", "weak", "none"]
Role = Literal["admin", "service", "member", "reader"]
MAX_ID_CHARS = 256
MAX_LIMIT = 1_000
"""Results of one search, and how deep each side is looked into where the first candidates are too few."""
NO_NUL = r"^[^\x00]*$"
SOME_TEXT = r"^\s*[^\s\x00][^\x00]*$"
SCOPE = r"^(global|all|(session|user|agent|channel):[\s\S]+)$"
ANY_SCOPE = r"^(session|user|agent|channel)$|" + SCOPE
ISO_8601 = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?([Zz]|[+-]\d{2}:?\d{2})?)?$"
PLACES = ("session", "user", "agent", "channel")
CONFIGURED = "x-configured"
"""The key of a schema under which limits stand that the configuration sets, by the keyword that they belong to."""


def configured(**keys: str) -> dict[str, Any]:
    """The part of a schema that says which configuration keys set a limit: `maxItems="limits.max_tags"`."""
    return {CONFIGURED: keys}


def says(sentence: str) -> dict[str, str]:
    """What an error says of a value that breaks the limits of its type, where limits alone would not explain them."""
    return {"says": sentence}


def some_text(most: int) -> Meta:
    """The limits of a text of at most `most` characters that is not blank."""
    sentence = f"must hold some text, at most {most} characters, without NUL"
    return Meta(max_length=most, pattern=SOME_TEXT, extra=says(sentence))


def any_text(most: int) -> Meta:
    """The limits of a text of at most `most` characters, which may be empty."""
    return Meta(
        max_length=most, pattern=NO_NUL, extra=says(f"must be at most {most} characters, without NUL")
    )


# The types of fields. msgspec checks their limits where a value is read, and the OpenAPI document shows them. A text
# that may be a list or an object instead has its pattern in `extra_json_schema` alone, and is checked where it is used:
# msgspec 0.22 frees a pattern in such a union as if it were a type, and the interpreter crashes.

Id = Annotated[
    str,
    Meta(
        pattern=rf"^[^\x00]{{1,{MAX_ID_CHARS}}}$",
        extra=says(f"must be 1 to {MAX_ID_CHARS} characters, without NUL"),
        extra_json_schema={"minLength": 1, "maxLength": MAX_ID_CHARS},
    ),
]
MaybeId = Annotated[
    str,
    Meta(
        pattern=rf"^[^\x00]{{0,{MAX_ID_CHARS}}}$",
        extra=says(f"must be at most {MAX_ID_CHARS} characters, without NUL"),
        extra_json_schema={"maxLength": MAX_ID_CHARS},
    ),
]
"""An id, or an empty text, which is as if left out."""
Content = Annotated[
    str,
    Meta(
        pattern=SOME_TEXT,
        extra=says("must hold some text, without NUL characters"),
        extra_json_schema=configured(maxLength="limits.max_content_bytes"),
    ),
]
Question = Annotated[
    str,
    Meta(
        pattern=r"\S",
        extra=says("must hold some text"),
        extra_json_schema=configured(maxLength="limits.max_query_chars"),
    ),
]
Scope = Annotated[
    str,
    Meta(pattern=SCOPE, extra=says("must be session:ID, user:ID, agent:ID, channel:ID, global or all")),
]
Name = Annotated[
    str, Meta(pattern=r"[\s\S]", extra=says("must not be empty"), extra_json_schema={"minLength": 1})
]
Moment = Annotated[
    datetime,
    Meta(
        description="A date and time in ISO 8601; without a zone it is UTC. A date alone is its midnight in UTC, and"
        " its end as an upper bound (`until`, `as_of`).",
        examples=["2026-05-01T09:30:00Z", "2026-05-01"],
        extra_json_schema={"pattern": ISO_8601},
    ),
]
Words = Annotated[
    str,
    Meta(
        extra_json_schema={"maxLength": 1_000},
        pattern=r"[^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]",
        extra=says("must be words, 1000 characters at most"),
    ),
]
"""Words to look for: some letter or digit."""
Importance = Annotated[int, Meta(ge=-1_000, le=1_000)]
Share = Annotated[float, Meta(ge=0, le=1)]
Threshold = Annotated[
    float,
    Meta(ge=0, le=1, extra=says("must be between 0 and 1; leave it out for the default, 0 is no floor")),
]
Diversity = Annotated[float, Meta(ge=0, le=1, extra=says("must be between 0 and 1; 0 is off"))]
Reranked = Annotated[int, Meta(ge=0, le=50)]
Limit = Annotated[int, Meta(ge=1, le=MAX_LIMIT)]
Rate = Annotated[float, Meta(gt=0, le=1_000_000)]
"""Rows per second."""
Order = Literal["asc", "desc"]
Tags = Annotated[list[Id], Meta(max_length=1_000, extra_json_schema=configured(maxItems="limits.max_tags"))]
AllTags = Annotated[list[Name], Meta(max_length=1_000)]
Refs = Annotated[list[Id], Meta(max_length=1_000)]
Scopes = Annotated[list[Scope], Meta(min_length=1, max_length=1_000)]
AnyScope = Annotated[
    str,
    Meta(
        pattern=ANY_SCOPE,
        extra=says(
            "must be session, user, agent or channel, each with an id (session:ID) or without one, or global, or all"
        ),
    ),
]
AnyScopes = Annotated[list[AnyScope], Meta(min_length=1, max_length=1_000)]
Kinds = Annotated[list[Kind], Meta(max_length=64)]
Metadata = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            "propertyNames": {"pattern": "^[^$]"},
            "description": "Keys are not empty and do not begin with $; as JSON at most `limits.max_metadata_bytes`.",
        }
    ),
]
Hierarchy = Annotated[
    dict[str, Annotated[str, Meta(extra_json_schema={"minLength": 1})]],
    Meta(
        max_length=8,
        extra_json_schema={
            "propertyNames": {"enum": [*PLACES, *(f"{place}_id" for place in PLACES)]},
        },
    ),
]
Weights = Annotated[
    dict[str, Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 100})]],
    Meta(
        max_length=16,
        extra_json_schema={
            "propertyNames": {"enum": ["dense", "words", *PLACES, "global"]},
        },
    ),
]
FILTER_KEYS = ("$user_id", "$agent_id", "$channel_id", "$session_id", "$tags", "$occurred_at")
"""Keys of filters beside those of metadata."""
MAX_VALUES = 10_000
"""Values of one condition of a filter."""


def _conditions(own: Sequence[str]) -> dict[str, Any]:
    also = "".join(f"|^\\{key}$" for key in own)
    values = {"type": ["string", "number", "boolean", "null", "array"], "maxItems": MAX_VALUES}
    return {
        "propertyNames": {"pattern": f"^[^$]{also}"},
        "additionalProperties": values,
        "maxProperties": 1_000,
    }


Filters = Annotated[dict[str, Any], Meta(extra_json_schema=_conditions(FILTER_KEYS))]
PlainFilters = Annotated[dict[str, Any], Meta(extra_json_schema=_conditions(()))]
"""Filters on metadata alone."""
KINDS: tuple[str, ...] = get_args(Kind)
DEFAULT_KINDS = tuple(kind for kind in KINDS if kind != "item")
"""The kinds that a selection without `kinds` means: entries of key-value stores are found only by their kind."""
ROLES: tuple[str, ...] = get_args(Role)
MACHINES = frozenset({"agent", "ai", "assistant", "bot", "developer", "function", "model", "system", "tool"})
"""Roles of messages that no person wrote, in lower case, also where a message belongs to a user."""
UNNAMED = frozenset({"user", "human", "person", "customer", "member"})
"""Roles of persons that are not names."""
SCOPE_FIELDS: tuple[str, ...] = ("session_id", "user_id", "agent_id", "channel_id")


Origin = Literal["user", "assistant", "tool", "document", "import"]
"""What a text is from: a person, a model's answer, a tool that a model called, a document, another system."""


class Through(msgspec.Struct, frozen=True, kw_only=True):
    """What writes for a subject: the class of what it writes (None: as its role says), the response, import or tool
    that does (`by`), and what that had `read` before: ids of files, `user:X` for memories of others, `tool:X` for
    results of tools. What is `quarantined` is archived at once, until a person confirms it."""

    origin: Origin | None = None
    by: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    quarantined: bool = False


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asking, inside which tenant.

    `admin` sees all of the tenant. `service` names the scopes it works in, any but `all`. `member` and
    `reader` see the rows whose `user_id` is their own or null; a reader writes nothing.
    """

    tenant_id: str = "default"
    user_id: str | None = None
    role: Role = "admin"
    key: str | None = None
    """The name of the key that it comes with."""
    time_zone: str | None = None
    """Where it is, such as `Europe/Berlin`: for days without a zone, and times in UTC."""
    through: Through | None = None
    """What writes for it, if not the subject itself."""


class NewMemory(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A memory as it is handed in. Only `content` is required."""

    content: Content
    id: Id | None = None
    kind: Kind = "note"
    user_id: Id | None | msgspec.UnsetType = msgspec.UNSET
    agent_id: Id | None = None
    channel_id: Id | None = None
    session_id: Id | None = None
    role: Id | None = None
    source: Id | None = None
    tags: Tags = []
    metadata: Metadata = {}
    importance: Importance = 0
    confidence: Share = 1.0
    valid_from: Moment | None = None
    invalid_at: Moment | None = None
    source_refs: Refs = []
    occurred_at: Moment | None = None
    replaces: Refs = []
    """Of a fact, the ids of facts in whose place it holds: they end where it begins."""
    embedding: Any = None
    """A vector of the configured model, (dim,) floats; when absent the text is embedded."""


class Memory(msgspec.Struct, kw_only=True, tag_field="object", tag="memory"):
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
    origin: Origin = "user"
    written_by: list[str] = []
    """Who wrote it, beside its own user: `user:X`, `key:X`, the id of a response, `import:X`, `tool:X`."""
    read: list[str] = []
    """What a tool that wrote it had read before: ids of files, `user:X`, `tool:X`."""
    confirmed_at: datetime | None = None
    """When a person confirmed it, of a fact."""
    pinned: bool = False
    """A pinned memory neither decays nor is archived by itself."""
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

    content: Content | msgspec.UnsetType = msgspec.UNSET
    kind: Kind | msgspec.UnsetType = msgspec.UNSET
    role: Id | None | msgspec.UnsetType = msgspec.UNSET
    source: Id | None | msgspec.UnsetType = msgspec.UNSET
    tags: Tags | msgspec.UnsetType = msgspec.UNSET
    metadata: Metadata | msgspec.UnsetType = msgspec.UNSET
    importance: Importance | msgspec.UnsetType = msgspec.UNSET
    confidence: Share | msgspec.UnsetType = msgspec.UNSET
    valid_from: Moment | None | msgspec.UnsetType = msgspec.UNSET
    invalid_at: Moment | None | msgspec.UnsetType = msgspec.UNSET
    source_refs: Refs | msgspec.UnsetType = msgspec.UNSET
    occurred_at: Moment | msgspec.UnsetType = msgspec.UNSET
    archived: bool | msgspec.UnsetType = msgspec.UNSET


class Selection(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Which memories: the part of a question that search, list, count, forget and export share."""

    scopes: AnyScopes | None = None
    """`session:X`, `channel:X`, `agent:X`, `user:X`, `global`, `all`; a memory in any of them is meant. Listings,
    counts and exports also take `session`, ... without an id."""
    kinds: Kinds | None = None
    roles: AllTags | None = None
    """`user`, `assistant`, `tool`, ...: who said it, of messages; a memory in any of these roles is meant."""
    tags: AllTags | None = None
    """Every tag named must be on the memory."""
    filters: Filters | None = None
    """Metadata conditions, see `filters.parse`."""
    source: Id | None = None
    since: Moment | None = None
    until: Moment | None = None
    """`since` <= occurred_at < `until`; a day as a bound is included."""
    as_of: Moment | None = None
    """Only what was valid at that moment, superseded rows of the past included; of a day, at its end."""
    include_archived: bool = False


class Forget(Selection, kw_only=True, forbid_unknown_fields=True):
    """What to forget."""

    scopes: Scopes | None = None
    text: Words | None = None
    """What holds these words in this order, whatever their case: its text, tags, metadata, file name, ..."""


SearchMode = Literal["hybrid", "dense", "keyword", "words"]
"""The searches that answer: vector search (`dense`), keyword search, or both. `words` is what `keyword` was called, and
is accepted for one release."""


def as_keyword(mode: SearchMode) -> SearchMode:
    """Return `keyword` for its former name `words`, and any other mode as it is."""
    return "keyword" if mode == "words" else mode


class Query(Selection, kw_only=True, forbid_unknown_fields=True):
    """A search. The defaults return the ten best of what the subject may see."""

    scopes: Scopes | None = None
    query: Question
    limit: Limit = 10
    threshold: Threshold | None = None
    """Floor on the calibrated dense similarity, 0..1; None asks for the configured default, 0 is no floor."""
    mode: SearchMode = "hybrid"
    embedding: Any = None
    """The query's vector of the configured model, (dim,) floats; when absent the text is embedded."""
    hierarchy: Hierarchy | None = None
    """`{"session": "s1", "user": "u1", ...}`: searches each scope and global, and weighs them."""
    weights: Weights | None = None
    """Overrides of the fusion weights `dense` and `words`, and of scope weights by scope name."""
    rerank: Literal["auto", "people", "assistant", "plain", "sessions", "off"] | None = None
    """The second stage of ranking: by the style of a conversation, which `auto` takes from its speakers; `sessions`
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
    model_rerank: Reranked | None = None
    """How many of the first hits the language model puts in order; 0 is none."""
    explain: bool = False
    highlights: bool = False
    """Gives each hit the snippets of its text that match."""
    count_access: bool = False
    """Counts this as a use: access_count rises and last_accessed_at moves on every hit."""

    def __post_init__(self) -> None:
        self.mode = as_keyword(self.mode)


class Highlight(msgspec.Struct, kw_only=True, frozen=True):
    """A matching snippet: characters [start, end) of the content."""

    text: str
    start: int
    end: int


class Explanation(msgspec.Struct, kw_only=True):
    """Every part of a hit's score. A part that was not computed is None.

    `added` are the terms of a sum, `formula` says how the score is made of them, and `factors` are what it was
    multiplied with (`decay`, `boost`, `kind`, `newer`). `preset` names the weights of the terms: the style of the
    messages, or of the text; None where only similarity and keyword score count. `fused` is by what candidates were
    chosen, scope weight included, and `rank_before` the rank by it without scope weights. `model_rank` is the place
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


class Hit(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.search_result"):
    """A memory found. `relevance` is the probability that it is relevant to the question, 0..1; None where that is not
    known: with a model whose similarities are not measured, and with `rerank="sessions"`. `score`, by which hits are
    ordered, is that times what the search prefers (weights of scopes, what is in use, what is newer), 1 at most.
    `similarity` is the calibrated dense similarity, 0..1; None when the dense side did not answer. `highlights` and
    `explanation` are there if the query asks for them."""

    memory: Memory
    score: float
    similarity: float | None
    relevance: float | None = None
    highlights: list[Highlight] = []
    explanation: Explanation | None = None


class SearchResult(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.search_results"):
    """The hits, best first. `evidence_probability`, in 0..1, says how likely the answer is among the first ten, and
    `evidence` what that amounts to: `none` below .25, `strong` from .6. `searched` is how many memories there were to
    compare with the question; None: `search.candidates` (50) or more, or vector search did not answer. `query_time`
    is in seconds. `degraded` names the sides that could not answer in full (`embedding`, `index`, `words`), and what
    was to help and failed (`hyde`, `model_rerank`); empty means a complete answer."""

    results: list[Hit]
    total_count: int
    query_time: float
    searched: int | None = None
    evidence: EvidenceLevel = "none"
    evidence_probability: float = 0.0
    degraded: list[str] = []


class Page(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """One page of a listing. `after=last_id` asks for the next one."""

    data: list[Memory]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Receipt(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.receipt"):
    """What was forgotten. `tombstone` is the id of the record that stays: id, time, counts, no text."""

    tombstone: str
    memories: int
    vectors: int
    erased_at: datetime
    note: str
    counts: dict[str, int] = {}
    """What was erased, by kind: `memories`, `vectors`, `messages`, `responses`, `files`, ...; only what there was."""


MOST_EXAMPLES = 100
"""The most memories of a kind in the preview of `forget`."""


class KindPreview(msgspec.Struct, kw_only=True):
    """The memories of one kind that would be forgotten: how many, how many of them archived or superseded, and the
    first of those that the subject may see."""

    kind: str
    count: int = 0
    ended: int = 0
    examples: list[Memory] = []


class ForgetPreview(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.forget_preview"):
    """What would be forgotten: `counts` by kind, as a `Receipt` has them, but no `vectors` and no `jobs`; `kinds` are
    the memories, the most numerous kind first; `files` are the names of the first files."""

    counts: dict[str, int]
    kinds: list[KindPreview]
    files: list[str]


class Job(msgspec.Struct, kw_only=True, tag_field="object", tag="job"):
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
