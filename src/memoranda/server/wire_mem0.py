"""What mem0's clients send and read: bodies, query strings, answers and errors of its hosted and self-hosted API.

Unknown fields are ignored: clients of different versions send fields that change nothing here."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.filters import MAX_NODES
from memoranda.server.errors import ErrorEnvelope, Problem
from memoranda.server.mem0_filters import ENTITIES, LOGIC, TIMES
from memoranda.types import (
    ISO_8601,
    MAX_ID_CHARS,
    MAX_VALUES,
    NO_NUL,
    Content,
    Id,
    Metadata,
    Moment,
    Question,
    Tags,
    Threshold,
    says,
)
from memoranda.validation.constraints import Constraint, OneOf

ENTITY = {
    "type": "string", "minLength": 1, "maxLength": MAX_ID_CHARS, "pattern": NO_NUL, "not": {"const": "*"},
}  # fmt: skip
_COMPARED = {"type": ["string", "number", "boolean", "null", "array", "object"], "maxItems": MAX_VALUES}
CONDITIONS: dict[str, Any] = {
    **{word: {"type": ["object", "array"], "maxItems": MAX_NODES} for word in LOGIC},
    **dict.fromkeys((*ENTITIES, *TIMES, "categories"), _COMPARED),
    "metadata": {"type": "object", "minProperties": 1, "propertyNames": {"pattern": "^[^$]"}},
}
Day = Annotated[
    str,
    Meta(pattern=r"^\d{4}-\d{2}-\d{2}$", extra=says("must be a date such as 2027-01-31")),
]
SECONDS = Meta(extra_json_schema={"minimum": -62_135_596_800, "exclusiveMaximum": 253_402_300_800})
"""Seconds since 1970 in the years 1 to 9999."""
TimeText = Annotated[str, Meta(extra_json_schema={"pattern": ISO_8601})]
One = Annotated[Id, Meta(extra_json_schema={"not": {"const": "*"}})]
"""The name of one user, agent, ...: `*` stands for any where memories are looked for."""
EntityFilters = Annotated[
    dict[str, Any],
    Meta(extra_json_schema={"additionalProperties": False, "properties": dict.fromkeys(ENTITIES, ENTITY)}),
]
Mem0Filters = Annotated[
    dict[str, Any], Meta(extra_json_schema={"additionalProperties": False, "properties": CONDITIONS})
]
Unsupported = Annotated[None, Meta(extra=says("is not supported here; leave it out"))]
"""A field that would change what is stored or found: it may only be null."""
Format = Literal["v1.0", "v1.1"]
Categories = Annotated[list[str], Meta(max_length=1_000)]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
PageNumber = Annotated[int, Meta(ge=1, le=100_000)]
Field = Literal[
    "id", "memory", "hash", "user_id", "agent_id", "app_id", "run_id", "metadata", "categories", "created_at",
    "updated_at", "expiration_date", "score",
]  # fmt: skip


class Mem0Failure(ErrorEnvelope):
    """An error: what went wrong, and in `detail` its message, where mem0's clients look for it."""

    detail: str


def failure(status: int, error: Problem, exc: Exception) -> Mem0Failure:
    return Mem0Failure(error, error.message)


# --- what is asked ---------------------------------------------------------------------------------


class Entities(msgspec.Struct, kw_only=True):
    """Whose memories: of a user, an agent, an application, a run (which is a session)."""

    user_id: Id | None = None
    agent_id: Id | None = None
    app_id: Id | None = None
    run_id: Id | None = None


class Mem0Message(msgspec.Struct, kw_only=True):
    """Something that was said; `name` is the name of who said it."""

    content: Content
    role: Id = "user"
    name: Id | None = None


class Mem0AddBody(Entities, kw_only=True):
    """Messages to learn facts from, or texts to keep as they are (`infer: false`). `filters` may name the entities.

    `timestamp` is when it was said, in seconds since 1970; `expiration_date` (YYYY-MM-DD) is the first day on which the
    memories do not hold. The answer always comes when they are written, whatever `async_mode` says."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        OneOf((*ENTITIES, "filters"), "is required, or agent_id, app_id or run_id"),
    )
    user_id: One | None = None
    agent_id: One | None = None
    app_id: One | None = None
    run_id: One | None = None
    messages: Annotated[list[Mem0Message], Meta(min_length=1, max_length=10_000)]
    filters: EntityFilters | None = None
    metadata: Metadata = {}
    categories: Tags = []
    infer: bool = True
    timestamp: Annotated[int, SECONDS] | None = None
    expiration_date: Day | None = None
    async_mode: bool | None = None
    version: Literal["v2"] | None = None
    output_format: Literal["v1.1"] | None = None
    custom_instructions: Unsupported = None
    agent_custom_instructions: Unsupported = None
    custom_categories: Unsupported = None
    structured_data_schema: Unsupported = None
    immutable: Unsupported = None


class Mem0Selection(Entities, kw_only=True):
    """Which memories: `filters` with `AND`, `OR` and `NOT`, and any of these categories. Entities beside `filters` must
    match, too. Only memories that hold now are found: `show_expired` cannot be true, nor `latest_only` false."""

    filters: Mem0Filters | None = None
    categories: Categories | None = None
    show_expired: Annotated[bool, Meta(extra_json_schema={"const": False})] | None = None
    latest_only: Annotated[bool, Meta(extra_json_schema={"const": True})] | None = None


class Mem0ListBody(Mem0Selection, kw_only=True):
    """Memories that were made from `start_date` to `end_date`. The page is in the query string, or here."""

    start_date: Moment | None = None
    end_date: Moment | None = None
    page: PageNumber | None = None
    page_size: Limit | None = None


class Mem0PageQuery(msgspec.Struct, kw_only=True):
    """Which page, and how many memories are on one."""

    page: PageNumber | None = None
    page_size: Limit | None = None


class Mem0SearchBody(Mem0Selection, kw_only=True):
    """A search. `threshold` is a floor on the similarity, 0 to 1; without `rerank` the order is as the server is
    configured; `keyword_search: false` leaves keyword search out; `fields` are those to answer with. On the paths of
    earlier versions, the answer is a list unless `output_format` is `v1.1`."""

    query: Question
    top_k: Limit = 10
    threshold: Threshold | None = None
    rerank: bool | None = None
    keyword_search: bool = True
    fields: Annotated[list[Field], Meta(max_length=64)] | None = None
    output_format: Format | None = None
    reference_date: Unsupported = None
    metadata: Unsupported = None


class Mem0UpdateBody(msgspec.Struct, kw_only=True):
    """The fields to change; `metadata` takes the place of what was there, `timestamp` is a date, a date and time, or
    seconds since 1970; `expiration_date: null` lets a memory hold for good."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        OneOf(
            ("text", "metadata", "timestamp", "expiration_date"),
            "is required, or metadata, timestamp or expiration_date",
            empty=(),
        ),
    )
    text: Content | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    timestamp: Annotated[int, SECONDS] | Annotated[float, SECONDS] | TimeText | UnsetType = UNSET
    expiration_date: Day | None | UnsetType = UNSET


class Mem0BatchUpdate(Mem0UpdateBody, kw_only=True):
    """A memory to change."""

    memory_id: str


class Mem0BatchUpdateBody(msgspec.Struct, kw_only=True):
    """Memories to change, one after the other; none is changed when one of the ids is unknown."""

    memories: Annotated[list[Mem0BatchUpdate], Meta(min_length=1, max_length=1_000)]


class Mem0Named(msgspec.Struct, kw_only=True):
    """A memory by its id."""

    memory_id: str


class Mem0BatchDeleteBody(msgspec.Struct, kw_only=True):
    """Memories to delete; none is deleted when one of the ids is unknown."""

    memories: Annotated[list[Mem0Named], Meta(min_length=1, max_length=1_000)]


class Mem0DeleteQuery(Entities, kw_only=True, forbid_unknown_fields=True):
    """Whose memories to delete; a memory must belong to all that are named, `*` stands for any. Here an unknown
    parameter is refused, since it may be meant to delete fewer; those below change nothing."""

    filters: Unsupported = None
    source: str | None = None
    org_id: str | None = None
    org_name: str | None = None
    project_id: str | None = None
    project_name: str | None = None
    delete_linked: str | None = None
    output_format: str | None = None


class Mem0HomeQuery(Entities, kw_only=True):
    """Whose memories; a memory must belong to all that are named, `*` stands for any."""

    limit: Limit = 100


# --- answers ---------------------------------------------------------------------------------------


class Mem0Memory(msgspec.Struct, kw_only=True):
    """A memory as mem0's clients read it. `created_at` is when it was said; `score` is there in a search only."""

    id: str | UnsetType = UNSET
    memory: str | UnsetType = UNSET
    hash: str | UnsetType = UNSET
    user_id: str | None | UnsetType = UNSET
    agent_id: str | None | UnsetType = UNSET
    app_id: str | None | UnsetType = UNSET
    run_id: str | None | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET
    categories: list[str] | UnsetType = UNSET
    created_at: datetime | UnsetType = UNSET
    updated_at: datetime | UnsetType = UNSET
    expiration_date: str | None | UnsetType = UNSET
    score: float | UnsetType = UNSET


class Mem0EventData(msgspec.Struct, kw_only=True):
    """The text of the memory that an event is about."""

    memory: str


class Mem0Event(msgspec.Struct, kw_only=True):
    """What became of a memory: `ADD` is new; `DELETE` was superseded by a new one and is found no more; `NONE` was
    there already."""

    id: str
    event: Literal["ADD", "DELETE", "NONE"]
    memory: str
    data: Mem0EventData


class Mem0Added(msgspec.Struct, kw_only=True):
    """What was learned or kept; all of it is written. `event_id` names the request."""

    results: list[Mem0Event]
    event_id: str
    status: Literal["SUCCEEDED"] = "SUCCEEDED"


class Mem0Request(msgspec.Struct, kw_only=True):
    """A request to add, and what became of it. `PENDING`: facts are not extracted from its messages yet. `FAILED`: the
    last attempt failed, see `error`; there will be another one."""

    id: str
    status: Literal["PENDING", "SUCCEEDED", "FAILED"]
    results: list[Mem0Event]
    created_at: datetime
    updated_at: datetime
    error: str | None = None
    event_type: Literal["ADD"] = "ADD"


class Mem0Requests(msgspec.Struct, kw_only=True):
    """The latest requests to add, newest first."""

    count: int
    results: list[Mem0Request]


class Mem0Page(msgspec.Struct, kw_only=True):
    """A page of memories, newest first: how many there are in all, and the URLs of the next and the previous page."""

    count: int
    next: str | None
    previous: str | None
    results: list[Mem0Memory]


class Mem0Results(msgspec.Struct, kw_only=True):
    """Memories: of a search the best first, of a list the newest."""

    results: list[Mem0Memory]


class Mem0Version(msgspec.Struct, kw_only=True):
    """One step of a memory's history: `UPDATE` is a fact that took the place of `old_memory`."""

    id: str
    memory_id: str
    event: Literal["ADD", "UPDATE"]
    old_memory: str | None
    new_memory: str
    user_id: str | None
    metadata: dict[str, Any]
    created_at: datetime
    updated_at: datetime


class Mem0Entity(msgspec.Struct, kw_only=True):
    """A user, agent, application or run that has memories, and how many."""

    id: str
    name: str
    type: Literal["user", "agent", "app", "run"]
    total_memories: int


class Mem0Entities(msgspec.Struct, kw_only=True):
    """Everybody and everything that has memories."""

    count: int
    results: list[Mem0Entity]


class Mem0Said(msgspec.Struct, kw_only=True):
    """What was done."""

    message: str


class Mem0Pong(msgspec.Struct, kw_only=True):
    """The key is good. There are no organizations and projects here: clients that want their ids get the tenant's."""

    org_id: str
    project_id: str
    user_email: str | None = None
    status: Literal["ok"] = "ok"
