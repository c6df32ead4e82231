"""What `/v1/chat/completions` takes and answers: OpenAI's chat completions, with `extensions`.

Unknown fields are ignored, as OpenAI's clients expect. Times are whole seconds since 1970."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.responses.values import (
    FORMATS,
    MAX_TOOLS,
    MemoryUse,
    OutputTokens,
    Penalty,
    Temperature,
    ToolChoice,
    TopLogprobs,
    Typed,
)
from memoranda.types import MaybeId, Share, says
from memoranda.validation.constraints import Constraint, Needs

ONE = Meta(ge=1, le=1, extra=says("must be 1: one answer is made; send the request several times for more"))
_PARTS = {"text": "string", "refusal": "string", "image_url": "object", "file": "object"}
Part = Annotated[
    dict[str, Any],
    Meta(
        extra_json_schema={
            "anyOf": [
                {"required": ["type", name], "properties": {"type": {"const": name}, name: {"type": kind}}}
                for name, kind in _PARTS.items()
            ]
        }
    ),
]
NotTaken = Annotated[
    Any, Meta(extra_json_schema={"type": "null", "description": "not taken: use `tools` and `tool_choice`"})
]
ResponseFormat = Annotated[
    dict[str, Any],
    Meta(extra_json_schema={"required": ["type"], "properties": {"type": {"enum": list(FORMATS)}}}),
]
FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]

# --- what is asked ---------------------------------------------------------------------------------


class CalledFunction(msgspec.Struct, kw_only=True):
    """A function with the arguments of one call, as JSON."""

    name: str
    arguments: str = ""


class ChatToolCall(msgspec.Struct, kw_only=True):
    """A call that the model made of a function of the client."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(msgspec.Struct, kw_only=True):
    """A message of the conversation. `tool_calls` are for `assistant` alone, `tool_call_id` for `tool`."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        Needs("role", "content", "is required", ("system", "developer", "user", "tool")),
        Needs("role", "tool_call_id", "is required: the id of the call that is answered", ("tool",)),
    )
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[Part], Meta(max_length=10_000)] | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[ChatToolCall], Meta(max_length=1_000)] | None = None
    tool_call_id: str | None = None


class ChatStreamOptions(msgspec.Struct, kw_only=True):
    """With `include_usage` the last chunk of a stream has the tokens of all of it, and no choices."""

    include_usage: bool | None = None


class ChatBody(msgspec.Struct, kw_only=True):
    """A conversation to be answered, with what bears on it from memory: the fields of chat completions, then ours
    (`agent` to `variables`)."""

    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=10_000)]
    model: str | None = None
    stream: bool | None = None
    stream_options: ChatStreamOptions | None = None
    tools: Annotated[list[Typed], Meta(max_length=MAX_TOOLS)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    max_completion_tokens: OutputTokens | None = None
    max_tokens: OutputTokens | None = None
    temperature: Temperature | None = None
    top_p: Share | None = None
    presence_penalty: Penalty | None = None
    frequency_penalty: Penalty | None = None
    logprobs: bool | None = None
    top_logprobs: TopLogprobs | None = None
    stop: str | Annotated[list[str], Meta(max_length=64)] | None = None
    seed: int | None = None
    logit_bias: Annotated[dict[str, float], Meta(max_length=1_024)] | None = None
    n: Annotated[int, ONE] | None = None
    modalities: Annotated[list[Literal["text"]], Meta(max_length=8)] | None = None
    functions: NotTaken = None
    function_call: NotTaken = None
    store: bool | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    safety_identifier: str | None = None
    user: MaybeId | None = None
    agent: str | None = None
    agent_id: str | None = None
    memory: MemoryUse | bool | None = None
    variables: Annotated[dict[str, str], Meta(max_length=64)] | None = None


# --- what is answered ------------------------------------------------------------------------------


class ChatLogprobs(msgspec.Struct, kw_only=True):
    """The log probabilities of the answer's tokens."""

    content: list[dict[str, Any]]
    refusal: list[dict[str, Any]] | None = None


class ChatAnswer(msgspec.Struct, kw_only=True):
    """The message of the assistant. `reasoning_content` is there where the model shows its reasoning."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None = None
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ChatToolCall] | UnsetType = UNSET


class ChatChoice(msgspec.Struct, kw_only=True):
    """The answer, of which there is one."""

    index: int = 0
    message: ChatAnswer
    logprobs: ChatLogprobs | None = None
    finish_reason: FinishReason


class PromptTokensDetails(msgspec.Struct, kw_only=True):
    """Parts of the prompt's tokens."""

    cached_tokens: int = 0


class CompletionTokensDetails(msgspec.Struct, kw_only=True):
    """Parts of the answer's tokens."""

    reasoning_tokens: int = 0


class ChatUsage(msgspec.Struct, kw_only=True):
    """Tokens of every model call of an answer together."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


class ChatCompletion(msgspec.Struct, kw_only=True, tag_field="object", tag="chat.completion"):
    """An answer. `extensions` are those of a response, with `citations` and `passages` where files were searched."""

    id: str
    created: int
    model: str
    choices: list[ChatChoice]
    usage: ChatUsage
    extensions: dict[str, Any]


class FunctionDelta(msgspec.Struct, kw_only=True):
    """More of a call: its name first, then pieces of its arguments."""

    name: str | UnsetType = UNSET
    arguments: str


class ToolCallDelta(msgspec.Struct, kw_only=True):
    """More of the call at `index`; the first of an index has `id` and `type`."""

    index: int
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: FunctionDelta


class ChatDelta(msgspec.Struct, kw_only=True):
    """What a chunk adds to the message."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType = UNSET
    refusal: str | UnsetType = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[ToolCallDelta] | UnsetType = UNSET


class ChunkChoice(msgspec.Struct, kw_only=True):
    """More of the answer."""

    index: int = 0
    delta: ChatDelta
    logprobs: ChatLogprobs | None = None
    finish_reason: FinishReason | None = None


class ChatChunk(msgspec.Struct, kw_only=True, tag_field="object", tag="chat.completion.chunk"):
    """One event of a streamed answer. `usage` is there, and null before the last chunk, where it was asked for."""

    id: str
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: ChatUsage | None | UnsetType = UNSET
    extensions: dict[str, Any] | UnsetType = UNSET
