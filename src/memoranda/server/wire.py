"""What goes over the wire: bodies, query strings and answers. An answer is a library value with its `object`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.indexes.vector import INDEXES
from memoranda.memories.overviews import MOST_POINTS, Facets, NearDuplicate, Projection
from memoranda.store.selections import ONE_SCOPE, SCOPED, ScopeName, SelectionBody
from memoranda.store.validation import MOST_TEXTS
from memoranda.types import (
    MOST_EXAMPLES,
    Change,
    EvidenceLevel,
    Explanation,
    Highlight,
    Job,
    Limit,
    Memory,
    NewMemory,
    Query,
    Scopes,
    Words,
    configured,
    says,
)
from memoranda.validation.constraints import BLANK, Constraint, NotBoth, OneOf

Rate = Annotated[float, Meta(gt=0, le=1_000_000)]
Count = Annotated[int, Meta(ge=1, le=1_000)]
Vector = Annotated[
    list[float],
    Meta(
        max_length=65_536,
        extra_json_schema=configured(minItems="embedder.dimension", maxItems="embedder.dimension"),
    ),
]

Encoded = Annotated[
    str,
    Meta(
        extra_json_schema={
            "description": "float32 little-endian in base64",
            **configured(
                minLength="embedder.base64", maxLength="embedder.base64", pattern="embedder.alphabet"
            ),
        },
    ),
]
HIERARCHY = tuple(
    NotBoth("hierarchy", name, f"names the scopes itself; leave `{name}` out", empty=BLANK)
    for name in ("scopes", "scope")
)
ALONE = "goes without a selection: name ids, or say which memories are meant"
SELECTING = (
    "scopes", "scope", "kinds", "roles", "tags", "filters", "source", "since", "until", "as_of", "text",
)  # fmt: skip
"""The fields of a selection, without `include_archived`."""

# --- bodies and query strings ----------------------------------------------------------------------


class NewMemoryBody(NewMemory, kw_only=True, forbid_unknown_fields=True):
    """One memory to remember. `embedding` is a list of floats, or float32 little-endian bytes in base64."""

    embedding: Vector | Encoded | None = None


Place = Annotated[
    str,
    Meta(
        pattern=r"^(global|(session|user|agent|channel):[\s\S]+)$",
        extra=says("must be session:ID, user:ID, agent:ID, channel:ID or global"),
    ),
]
"""Where something is put."""


class BatchBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Memories to remember together: all of them, or none when one is wrong."""

    memories: Annotated[
        list[NewMemoryBody],
        Meta(min_length=1, max_length=100_000, extra_json_schema=configured(maxItems="limits.max_batch")),
    ]


class ExportedBody(BatchBody, kw_only=True, forbid_unknown_fields=True):
    """Memories of an export that was made then."""

    exported_at: datetime


class ChangeBody(Change, kw_only=True, forbid_unknown_fields=True):
    """The fields to change; what is left out stays as it is."""


class SearchBody(Query, kw_only=True, forbid_unknown_fields=True):
    """A search. `scope` with `scope_id` is another way to write `scopes` with one entry; `embedding` is the query's
    vector, as floats or in base64."""

    constraints: ClassVar[tuple[Constraint, ...]] = (*SCOPED, *HIERARCHY)

    embedding: Vector | Encoded | None = None
    limit: Limit | UnsetType = UNSET  # type: ignore[assignment]
    scope: ScopeName | None = None
    scope_id: str | None = None


class ListingQuery(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """A page of memories: lists are repeated parameters, `filters` is JSON."""

    limit: Count = 20
    after: str | None = None
    before: str | None = None
    order: Literal["asc", "desc"] = "desc"


class AccessBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The ids of memories that were used."""

    ids: Annotated[list[str], Meta(max_length=1_000)]


class ForgetBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """What to erase: these ids, or what the selection names."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        *SCOPED,
        *(NotBoth("ids", name, ALONE, empty=BLANK) for name in SELECTING),
        NotBoth("include_archived", "ids", "goes without `ids`", (True,)),
        OneOf((*SELECTING, "ids"), 'name what to forget: ids, scopes, a source, ...; everything is ["all"]'),
    )

    scopes: Scopes | None = None
    ids: Annotated[list[str], Meta(max_length=100_000)] | None = None
    text: Words | None = None


class ForgetPreviewBody(ForgetBody, kw_only=True, forbid_unknown_fields=True):
    """What would be erased, with so many memories of each kind as examples."""

    examples: Annotated[int, Meta(ge=1, le=MOST_EXAMPLES)] = 3


class ExportBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """What to carry out; with `vectors` each line has its embeddings, so that an import needs no model."""

    vectors: bool = False


class NearDuplicatesBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """Where to look for memories that say nearly the same, and after which one."""

    limit: Count = 100
    after: str | None = None


class FacetsBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """Which memories to count, the most values of each facet, and the time zone of the months."""

    limit: Count = 20
    time_zone: str = "UTC"


class ProjectionBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """Which memories to show as points of a plane, and the most points."""

    limit: Annotated[int, Meta(ge=1, le=MOST_POINTS)] = 10_000


class ImportQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """`scope` puts everything there (`session:X`, ..., `global`) instead of where it was; `include_forgotten` stores
    also what was forgotten after the export was made."""

    scope: Place | None = None
    include_forgotten: bool = False


class ReembedBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Without `everything`, only memories that miss their vector of the configured model."""

    everything: bool = False
    rows_per_second: Rate | None = None


IndexUrl = Annotated[
    str,
    Meta(
        pattern=f"^({'|'.join(INDEXES)}):",
        extra=says(f"must be the URL of a vector index: {', '.join(INDEXES)}"),
    ),
]


class MoveBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The URL of the vector index to move to."""

    to: IndexUrl


class CompactBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing to say."""


class JobsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """How many of the latest jobs."""

    limit: Count = 100


TextOrList = Annotated[str, Meta(extra_json_schema={"minLength": 1})]
"""A text where a list may stand, too."""
Token = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": 100_255})]
"""A token of cl100k_base, which is checked where it is decoded."""
NOT_MIXED = {
    "minItems": 1,
    "anyOf": [
        {"items": {"type": "integer"}},
        {"items": {"type": ["string", "array"], "maxItems": 8_192}, "maxItems": MOST_TEXTS},
    ],
}
Dimensions = Annotated[
    int, Meta(extra_json_schema=configured(minimum="embedder.dimension", maximum="embedder.dimension"))
]
"""Those of the configured model: no vector is shortened."""


class EmbeddingsBody(msgspec.Struct, kw_only=True):
    """Texts, or texts as cl100k tokens, to embed. Without `model` the configured one does.
    `input_type` is `query` for questions asked of documents."""

    input: (
        TextOrList
        | Annotated[
            list[TextOrList | Token | Annotated[list[Token], Meta(min_length=1, max_length=8_192)]],
            Meta(max_length=8_192, extra_json_schema=NOT_MIXED),
        ]
    )
    model: str | None = None
    dimensions: Dimensions | None = None
    encoding_format: Literal["float", "base64"] = "float"
    input_type: Literal["document", "query"] = "document"


# --- answers ---------------------------------------------------------------------------------------


class AddedMemory(Memory, kw_only=True):
    """A memory after a write. `created` is false when the text was there already; `embedded` is false when
    its vector follows."""

    created: bool
    embedded: bool


class AddedList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A batch, in the order it was sent; how many were new, and how many were there already."""

    data: list[AddedMemory]
    first_id: str | None
    last_id: str | None
    has_more: bool = False
    created: int
    present: int


class MemoryList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of memories; `after=last_id` asks for the next one."""

    data: list[Memory]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedMemory(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.deleted"):
    """The id that is gone."""

    id: str
    deleted: bool = True


class SearchHit(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.search_result"):
    """A memory found, with its scores in 0..1; the snippets that match, and how the score came about, if asked for."""

    memory: Memory
    score: float
    similarity: float | None
    highlights: list[Highlight]
    explanation: Explanation | None


class SearchAnswer(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.search_results"):
    """The hits, best first; `evidence_probability`, in 0..1, says how likely the answer is among the first ten, and
    `evidence` what that amounts to; `searched` is how many memories there were to compare with the question, null if
    many or not known; `query_time` in seconds; `degraded` names the sides that did not answer in full."""

    results: list[SearchHit]
    total_count: int
    query_time: float
    searched: int | None
    evidence: EvidenceLevel
    evidence_probability: float
    degraded: list[str]


class Forgotten(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.receipt"):
    """What was erased; `tombstone` is the id of the record that stays."""

    tombstone: str
    memories: int
    vectors: int
    erased_at: datetime
    note: str
    counts: dict[str, int]


class KindPreview(msgspec.Struct, kw_only=True):
    """The memories of one kind that would be erased; `ended` are archived or superseded ones."""

    kind: str
    count: int
    ended: int
    examples: list[Memory]


class ForgetPreview(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.forget_preview"):
    """The result of a preview: `counts` are those of the receipt, without `vectors` and `jobs`; `kinds` are memories by
    kind, the most numerous kind first; `files` are the names of files, at most `examples` of them."""

    counts: dict[str, int]
    kinds: list[KindPreview]
    files: list[str]


class MemoryCount(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.count"):
    """How many."""

    count: int


class MemoryStats(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.stats"):
    """Counts and sizes of the tenant; `embedder_note` says what `embedder: auto` has decided, if anything. `jobs`,
    `database`, `index` and `words` are about the whole folder, and null for all but an admin of tenant `default`."""

    memories: int
    characters: int
    by_kind: dict[str, int]
    chunks: int
    vectors: int
    indexed_vectors: int
    indexed_words: int
    unembedded: int
    behind: list[str]
    model: str
    embedder_note: str | None = None
    dimension: int
    jobs: dict[str, int] | None
    database: dict[str, Any] | None
    index: dict[str, Any] | None
    words: dict[str, Any] | None


class StatsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One scope: `session:X`, or `session` for any; `scope` and `scope_id` as in a selection."""

    constraints: ClassVar[tuple[Constraint, ...]] = ONE_SCOPE
    scope: ScopeName | None = None
    scope_id: str | None = None


class ScopeStats(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.scope_stats"):
    """Counts of one scope."""

    scope: str
    memories: int
    characters: int
    by_kind: dict[str, int]


class ForgottenSince(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.forgotten_since"):
    """The places, from 0, of the memories that were forgotten after their export was made, and are not stored again."""

    forgotten: list[int]


class ImportedMemories(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.import"):
    """What an import came to; `conflicts` are ids that already name another text, `forgotten` those of memories that
    were forgotten after the export was made: both are left alone."""

    read: int
    created: int
    present: int
    conflicts: list[str]
    forgotten: list[str]


class NearDuplicatePair(NearDuplicate, kw_only=True, tag_field="object", tag="memory.near_duplicate"):
    """Two memories of one scope that say nearly the same."""


class NearDuplicateList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """Pairs among the `compared` memories, most alike first; `after=last_id` asks for those of the next older ones."""

    data: list[NearDuplicatePair]
    compared: int
    last_id: str | None
    has_more: bool


class FacetsObject(Facets, kw_only=True, tag_field="object", tag="memory.facets"):
    """How many memories there are by kind, scope, source, tag and month."""


class ProjectionObject(Projection, kw_only=True, tag_field="object", tag="memory.projection"):
    """Memories as points of a plane, a column for each of their fields."""


class JobObject(Job, kw_only=True, tag_field="object", tag="job"):
    """A piece of durable work."""


class JobList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """The latest jobs, newest first."""

    data: list[JobObject]
    first_id: str | None
    last_id: str | None
    has_more: bool = False


class EmbeddingObject(msgspec.Struct, kw_only=True, tag_field="object", tag="embedding"):
    """One text's vector: floats, or float32 little-endian bytes in base64."""

    index: int
    embedding: list[float] | str


class Usage(msgspec.Struct, kw_only=True):
    """Tokens of the model that were read."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A vector for each text, in order."""

    data: list[EmbeddingObject]
    model: str
    usage: Usage


class ModelObject(msgspec.Struct, kw_only=True, tag_field="object", tag="model"):
    """A model this server answers with; `dimensions` are those of its embeddings, if it makes any."""

    id: str
    created: int = 0
    owned_by: str = "memoranda"
    dimensions: int | None = None
    max_input_tokens: int


class ModelList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """Every model."""

    data: list[ModelObject]


class Health(msgspec.Struct, kw_only=True, tag_field="object", tag="health"):
    """The process lives."""

    status: str = "ok"
    version: str
