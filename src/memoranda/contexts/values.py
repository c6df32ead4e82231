"""Values of contexts: queries, pieces, citations. No behaviour, no I/O."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, TypedDict, get_args

import msgspec
from msgspec import Meta

from memoranda.types import (
    Diversity,
    EvidenceLevel,
    Explanation,
    Hierarchy,
    Kind,
    MaybeId,
    PlainFilters,
    Question,
    Reranked,
    Scopes,
    SearchMode,
    Selection,
    Threshold,
    Weights,
)
from memoranda.validation.constraints import BLANK, Constraint, NotBoth

PartName = Literal["system", "documents", "memories", "sessions", "summary", "recent", "question"]
Speaking = Literal["user", "assistant", "system"]
PARTS: tuple[PartName, ...] = get_args(PartName)
OriginClass = Literal["user", "assistant", "tool", "document", "import", "member"]
"""The class of a memory for one user."""
Few = Annotated[int, Meta(ge=0, le=50)]
Budgets = Annotated[
    dict[str, Annotated[int, Meta(extra_json_schema={"minimum": 0})]],
    Meta(
        max_length=16,
        extra_json_schema={
            "propertyNames": {"enum": list(PARTS)},
        },
    ),
]
CONVERSATION = ("session_id", "channel_id", "user_id", "agent_id")


class RecentMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A message as a chat model takes it. `id` is that of the message, where the log has it; `name` who said it."""

    role: Speaking
    content: str
    id: str | None = None
    name: str | None = None


class ContextQuery(Selection, kw_only=True, forbid_unknown_fields=True):
    """A question, and what its context is made of: at most `budget` tokens, of which a part has at most
    `budgets[part]`.

    `recent` is what was said last, `summary` a running summary; where they are None and a session or channel is named,
    they are read from the log: the last `sessions.recent_messages` of the session, or of the channel's open one.

    The fields of a selection are about memories. With `scopes` or `hierarchy` these are searched; else the ids say
    where the conversation is, and those scopes and global are. `limit` memories (None: as many as fit, 10 to 45),
    `passages` chunks of `stores` and `sessions` summaries (None: `sessions.max_retrieved`) are looked for.
    `threshold` and `passage_threshold` are floors on the similarity. `diversity` 0 to 1 trades relevance for variety
    among memories (MMR). `neighbours` messages of its session are included on either side of a message, at most
    `neighbour_tokens` of them. With `merge` memories and summaries are ranked together where both are found;
    `rerank`, `recency`, `times`, `enrich`, `hyde` and `model_rerank` are those of a search. With `distinct`,
    of results that say nearly the same, only the best is included, and no memory that a chunk covers. With `marks`
    memories and summaries carry a number to be cited by. `exclude` names memories that are left out because the
    prompt has them already, and with them facts that rest on these alone."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        NotBoth("hierarchy", "scopes", "names the scopes itself; leave `scopes` out"),
        *(
            NotBoth(
                name,
                named,
                f"says where the conversation is and goes without `{named}`; name it there",
                empty=BLANK,
            )
            for named in ("scopes", "hierarchy")
            for name in CONVERSATION
        ),
    )
    scopes: Scopes | None = None
    query: Question
    budget: Annotated[int, Meta(ge=1, le=1_000_000)] = 2_000
    budgets: Budgets = msgspec.field(default_factory=dict)
    stores: Annotated[list[str], Meta(max_length=100)] = msgspec.field(default_factory=list)
    system: str | None = None
    recent: Annotated[list[RecentMessage], Meta(max_length=1_000)] | None = None
    summary: str | None = None
    session_id: MaybeId | None = None
    channel_id: MaybeId | None = None
    user_id: MaybeId | None = None
    agent_id: MaybeId | None = None
    hierarchy: Hierarchy | None = None
    weights: Weights | None = None
    mode: SearchMode = "hybrid"
    limit: Annotated[int, Meta(ge=0, le=200)] | None = None
    passages: Few = 5
    sessions: Few | None = None
    threshold: Threshold | None = None
    passage_threshold: Threshold | None = None
    passage_filters: PlainFilters | None = None
    rerank: Literal["auto", "people", "assistant", "plain", "sessions", "off"] | None = None
    recency: Literal["off", "decay", "boost"] | None = None
    times: bool | None = None
    enrich: bool | None = None
    hyde: bool | None = None
    model_rerank: Reranked | None = None
    merge: bool = False
    distinct: bool = True
    diversity: Diversity = 0.0
    neighbours: Annotated[int, Meta(ge=0, le=10)] = 0
    neighbour_tokens: Annotated[int, Meta(ge=0, le=10_000)] = 200
    marks: bool = True
    exclude: Annotated[list[str], Meta(max_length=10_000)] = msgspec.field(default_factory=list)
    explain: bool = False
    count_access: bool = False


class ContextFields(TypedDict, total=False):
    """The fields of `ContextQuery` beside the question, as keywords."""

    scopes: list[str] | None
    kinds: list[Kind] | None
    roles: list[str] | None
    tags: list[str] | None
    filters: dict[str, Any] | None
    source: str | None
    since: datetime | None
    until: datetime | None
    as_of: datetime | None
    include_archived: bool
    budget: int
    budgets: dict[str, int]
    stores: list[str]
    system: str | None
    recent: list[RecentMessage] | list[dict[str, Any]] | None
    summary: str | None
    session_id: str | None
    channel_id: str | None
    user_id: str | None
    agent_id: str | None
    hierarchy: dict[str, str] | None
    weights: dict[str, float] | None
    mode: str
    limit: int | None
    passages: int
    sessions: int | None
    threshold: float | None
    passage_threshold: float | None
    passage_filters: dict[str, Any] | None
    rerank: str | None
    recency: str | None
    times: bool | None
    enrich: bool | None
    hyde: bool | None
    model_rerank: int | None
    merge: bool
    distinct: bool
    diversity: float
    neighbours: int
    neighbour_tokens: int
    marks: bool
    exclude: list[str]
    explain: bool
    count_access: bool


class Citation(msgspec.Struct, kw_only=True):
    """Where a piece is from. `mark` stands in the text: `Doc <file id>/Chunk <n>` for a chunk, `[n]` for memories and
    summaries that are marked. `origin` is what it is from, as the user of the context sees it (`member`: another
    person), `author` the user who wrote it. `ids` are all memories and messages in the piece; `started_at` and
    `ended_at` the window of a session, or of a message with its neighbours."""

    mark: str | None = None
    ids: list[str] = []
    kind: str | None = None
    source: str | None = None
    origin: OriginClass | None = None
    author: str | None = None
    session_id: str | None = None
    channel_id: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    vector_store_id: str | None = None
    file_id: str | None = None
    filename: str | None = None
    chunk_index: int | None = None
    page: int | None = None
    last_page: int | None = None


class ContextPiece(msgspec.Struct, kw_only=True):
    """A text in the context, in the order of the text. `score` decided what was kept of its part, `scores` are its
    parts; `cut` says that this is the beginning of it only. `kind` is a memory's, `chunk`, `message`, or the name of a
    part that the caller gave."""

    part: PartName
    id: str
    kind: str
    text: str
    tokens: int
    cut: bool = False
    score: float = 0.0
    scores: dict[str, float] = {}
    citation: Citation | None = None
    explanation: Explanation | None = None


class LeftOut(msgspec.Struct, kw_only=True):
    """A result, or a given part, that is not in the context. `why`: `budget`; `floor`, it is not relevant, its
    similarity is below the threshold, or it is about something else and would stand before a better result of a later
    part; `duplicate`, `of` says the same; `covered`, the chunk `of` says it; `present`, it is in the recent messages,
    or excluded, or a fact that rests on excluded messages alone."""

    part: PartName
    id: str
    kind: str
    why: Literal["budget", "floor", "duplicate", "covered", "present"]
    of: str | None = None
    score: float = 0.0


class ContextPart(msgspec.Struct, kw_only=True):
    """One part as it stands in the text, with its heading, and its tokens."""

    text: str
    tokens: int


class ChatMessage(msgspec.Struct, kw_only=True):
    """A message of the prompt, in the shape of chat completions."""

    role: Speaking
    content: str


class Context(msgspec.Struct, kw_only=True, tag_field="object", tag="context"):
    """A prompt for a question. `text` is all of it, in `tokens` tokens; `messages` is the same for a chat model: the
    rules, the context, what was said, the question. `query` is what was searched for by its meaning.
    `sessions_retrieved` is how many summaries of sessions were found for it. `evidence` and `evidence_probability` say
    whether the memories, or the documents, in the context answer, as those of `SearchResult` do; where it is `none`,
    `text` and `messages` say so if that fits into the budget, `parts` do not. `degraded` names what could not answer
    in full (`memory` and `documents`: not at all)."""

    query: str
    text: str
    tokens: int
    messages: list[ChatMessage]
    parts: dict[PartName, ContextPart]
    pieces: list[ContextPiece]
    left_out: list[LeftOut]
    sessions_retrieved: int
    evidence: EvidenceLevel
    evidence_probability: float
    degraded: list[str]
    query_time: float
