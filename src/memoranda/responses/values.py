"""Values of the responses package: requests, responses, items and summaries."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypedDict

import msgspec
from msgspec import Meta

from memoranda.types import Id, Kinds, Share, says
from memoranda.validation.constraints import Constraint, NotBoth, OneOf

Item = dict[str, Any]
"""One item of a conversation, in the shape of the Responses API: `message`, `function_call`, `file_search_call`, ...
Keys that begin with `_` are private to the server, and `shown` removes them."""

OWN_LABEL = "memoranda"
"""The label of the server whose tools run in this process."""
QUOTING = "extractive"
"""What `answered_by` says where no language model answered, but quotes did."""
CHOICES = ("auto", "none", "required")
FORMATS = ("text", "json_object", "json_schema")
MAX_TOOLS = 512
MAX_METADATA, MAX_KEY, MAX_VALUE = 16, 64, 512
TYPED: dict[str, Any] = {"required": ["type"], "properties": {"type": {"type": "string"}}}
Typed = Annotated[dict[str, Any], Meta(extra_json_schema=TYPED)]
"""An object that says of which type it is."""
ToolChoice = Annotated[str, Meta(extra_json_schema={"enum": list(CHOICES)})] | Typed
_NAMED = {
    "required": ["name", "schema"],
    "properties": {"name": {"type": "string"}, "schema": {"type": "object"}},
}
_FORMAT = {
    "type": ["object", "null"],
    "required": ["type"],
    "properties": {"type": {"enum": list(FORMATS)}},
    "if": {"type": "object", "properties": {"type": {"const": "json_schema"}}},
    "then": _NAMED,
}
TextOptions = Annotated[dict[str, Any], Meta(extra_json_schema={"properties": {"format": _FORMAT}})]
Pairs = Annotated[
    dict[str, Annotated[str, Meta(extra_json_schema={"maxLength": MAX_VALUE})]],
    Meta(max_length=MAX_METADATA, extra_json_schema={"propertyNames": {"maxLength": MAX_KEY}}),
]
Temperature = Annotated[float, Meta(ge=0, le=2)]
Penalty = Annotated[float, Meta(ge=-2, le=2)]
TopLogprobs = Annotated[int, Meta(ge=0, le=20)]
OutputTokens = Annotated[int, Meta(ge=1, le=10_000_000)]
Status = Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
LIVE: frozenset[str] = frozenset({"queued", "in_progress"})


class MemoryUse(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a response takes from memory: `retrieval` on or off (None: as configured), for whom and where (None: the
    subject, the conversation), how much. `extraction` asks for facts to be taken
    out of what was said. What is said to an agent is remembered for that agent alone, with `share` for the user."""

    retrieval: bool | None = None
    extraction: bool | None = None
    share: bool | None = None
    user_id: Id | None = None
    session_id: Id | None = None
    channel_id: Id | None = None
    max_results: Annotated[int, Meta(ge=1, le=100)] | None = None
    min_score: Share | None = None
    kinds: Kinds | None = None


class ConversationRef(msgspec.Struct, kw_only=True):
    """A conversation by its id."""

    id: str


NoVersion = Annotated[
    str,
    Meta(pattern="^$", extra=says("names a version, but an agent profile has only one; leave it out")),
]


class PromptRef(msgspec.Struct, kw_only=True):
    """A stored prompt, as OpenAI's clients name one: here it is an agent profile, by its id or name, of which there is
    one version."""

    id: Id
    version: NoVersion | None = None
    variables: Annotated[dict[str, str], Meta(max_length=64)] | None = None


ONE_HISTORY = NotBoth(
    "previous_response_id",
    "conversation",
    "goes without `conversation`: the history comes from one of the two",
)


class ResponseRequest(msgspec.Struct, kw_only=True):
    """The body of `POST /v1/responses`: the fields of the Responses API, then ours (`agent` to `variables`). Fields
    that are not here are ignored, as are tools of types that are not known."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        ONE_HISTORY,
        OneOf(("input",), "is missing; give a text or a list of items", (None,)),
    )
    input: str | Annotated[list[Item], Meta(max_length=10_000)] | None = None
    model: str | None = None
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationRef | None = None
    store: bool | None = None
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    background: bool | None = None
    include: Annotated[list[str], Meta(max_length=64)] | None = None
    tools: Annotated[list[Typed], Meta(max_length=MAX_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Annotated[int, Meta(ge=1, le=1_000)] | None = None
    max_output_tokens: OutputTokens | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    top_logprobs: TopLogprobs | None = None
    text: TextOptions | None = None
    truncation: Literal["auto", "disabled"] | None = None
    reasoning: dict[str, Any] | None = None
    metadata: Pairs | None = None
    service_tier: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    user: str | None = None
    prompt: PromptRef | None = None
    agent: str | None = None
    agent_id: str | None = None
    memory: MemoryUse | bool | None = None
    variables: Annotated[dict[str, str], Meta(max_length=64)] | None = None


class RequestFields(TypedDict, total=False):
    """The fields of `ResponseRequest` as keywords."""

    input: str | list[Item] | None
    model: str | None
    instructions: str | None
    previous_response_id: str | None
    conversation: str | ConversationRef | None
    store: bool | None
    stream: bool | None
    stream_options: dict[str, Any] | None
    background: bool | None
    include: list[str] | None
    tools: list[dict[str, Any]] | None
    tool_choice: str | dict[str, Any] | None
    parallel_tool_calls: bool | None
    max_tool_calls: int | None
    max_output_tokens: int | None
    temperature: float | None
    top_p: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    top_logprobs: int | None
    text: dict[str, Any] | None
    truncation: str | None
    reasoning: dict[str, Any] | None
    metadata: dict[str, str] | None
    service_tier: str | None
    safety_identifier: str | None
    prompt_cache_key: str | None
    user: str | None
    prompt: PromptRef | dict[str, Any] | None
    agent: str | None
    agent_id: str | None
    memory: MemoryUse | bool | None
    variables: dict[str, str] | None


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """How a request is answered that brings its whole conversation and is not stored as a response. With `observed`,
    what is new in it and the answer go into the message log, each message once a day however often it is sent;
    `options` go to the model's server as they are."""

    observed: bool = True
    options: dict[str, Any] = {}


class InputTokensDetails(msgspec.Struct, kw_only=True):
    """Parts of the input tokens."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(msgspec.Struct, kw_only=True):
    """Parts of the output tokens."""

    reasoning_tokens: int = 0


class ResponseUsage(msgspec.Struct, kw_only=True):
    """Tokens of every model call of a response together."""

    input_tokens: int = 0
    input_tokens_details: InputTokensDetails = msgspec.field(default_factory=InputTokensDetails)
    output_tokens: int = 0
    output_tokens_details: OutputTokensDetails = msgspec.field(default_factory=OutputTokensDetails)
    total_tokens: int = 0


class Response(msgspec.Struct, kw_only=True):
    """A response as it is shown. Every field that strict clients look for is there, with the API's default."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Status
    completed_at: int | None = None
    background: bool = False
    error: dict[str, Any] | None = None
    incomplete_details: dict[str, Any] | None = None
    instructions: str | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    model: str
    output: list[Item] = []
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    conversation: dict[str, Any] | None = None
    prompt_cache_key: str | None = None
    reasoning: dict[str, Any] | None = None
    safety_identifier: str | None = None
    service_tier: str = "default"
    store: bool = True
    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    top_logprobs: int = 0
    text: dict[str, Any] = msgspec.field(default_factory=lambda: {"format": {"type": "text"}})
    tool_choice: str | dict[str, Any] = "auto"
    tools: list[dict[str, Any]] = []
    truncation: str = "disabled"
    usage: ResponseUsage = msgspec.field(default_factory=ResponseUsage)
    user: str | None | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, str] = {}
    agent_id: str | None = None
    extensions: dict[str, Any] = {}
    """`answered_by`, `degraded`, `memory`, `history`, `conversation_summary`: see `docs/responses.md`."""


class Summary(msgspec.Struct, kw_only=True):
    """A summary of a conversation's beginning. `summarized_up_to` is the last response it covers, or in a
    conversation the last item; `created_at` is Unix time in seconds; `by` is the model, or `extractive`."""

    summary: str
    summarized_up_to: str
    token_count: int
    created_at: int
    by: str = ""


def shown(item: Item) -> Item:
    """The item without its private keys."""
    if not any(key.startswith("_") for key in item):
        return item
    return {key: value for key, value in item.items() if not key.startswith("_")}
