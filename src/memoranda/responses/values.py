"""Values of the responses package: requests, responses, summaries, items and what is read out of them, and the text of
a compacted conversation, packed into a string that a client carries and sends again."""

from __future__ import annotations

import base64
import binascii
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, TypedDict

import msgspec
from msgspec import Meta

from memoranda.errors import InvalidInput
from memoranda.store.ids import new_id
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
    what is new in it and the answer go into the message log, each message once a day however often it is sent.
    `unplaced` says that it names no session or channel, and those of its memory options were chosen for it. With
    `forgets` the model is offered `memory_forget` beside the tools of the request. `options` go to the model's server
    as they are."""

    observed: bool = True
    unplaced: bool = False
    forgets: bool = False
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
    """`answered_by`, `degraded`, `memory`, `history`, `conversation_summary`: see `docs/concepts/responses.md`."""

    @property
    def output_text(self) -> str:
        """The text of all messages in `output`; empty if there is none."""
        messages = (item for item in self.output if item["type"] == "message")
        return "".join(
            part["text"] for item in messages for part in item["content"] if part["type"] == "output_text"
        )


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


CALLS = ("function_call", "custom_tool_call")
OUTPUTS = ("function_call_output", "custom_tool_call_output")
"""The calls that the client answers, and its answers."""


def message(role: str, content: list[Item], status: str = "completed") -> Item:
    """A new message."""
    return {"id": new_id("msg_"), "type": "message", "status": status, "role": role, "content": content}


def text_of(item: Item) -> str:
    """The text of a message, its parts in a row; "" where there is none."""
    parts = item.get("content") or []
    if isinstance(parts, str):
        return parts
    return "".join(part.get("text") or part.get("refusal") or "" for part in parts)


def last_question(items: Sequence[Item], past: Sequence[Item] = ()) -> str:
    """What the user asked last; "" when nothing. If `items` has no message of the user, as when it only answers a call,
    it is the last question of the `past`."""
    messages = [item for item in items if item["type"] == "message" and item["role"] == "user"]
    for item in reversed(messages):
        if question := text_of(item).strip():
            return question
    return last_question(past) if past and not messages else ""


def paired(items: Sequence[Item]) -> dict[int, int]:
    """The place of each call's output by the place of the call. Models may give one id to calls of two turns: the first
    output of an id answers its first call, and so on."""
    outputs: dict[str, list[int]] = {}
    for place, item in enumerate(items):
        if item["type"] in OUTPUTS:
            outputs.setdefault(item["call_id"], []).append(place)
    pairs: dict[int, int] = {}
    for place, item in enumerate(items):
        if item["type"] in CALLS and (places := outputs.get(item["call_id"])):
            pairs[place] = places.pop(0)
    return pairs


def broken_off(item: Item) -> bool:
    """Return True for a call that the model did not finish: it cannot be answered, and is not sent to models."""
    return item["type"] in CALLS and item.get("status") == "incomplete"


def output_text(item: Mapping[str, Any]) -> str:
    """What a function gave back, as text; parts that are no text are named."""
    output = item.get("output")
    if isinstance(output, str):
        return output
    return "\n".join(part.get("text") or f"[{part['type']}]" for part in output or [])


PACKED_VERSION = "rc1."
MAX_PACKED_CHARS = 1 << 20
"""The most characters of a packed string, and bytes of the text in it, that are decoded."""
CHECKSUM_BYTES = 4
"""Bytes of the checksum that goes before the packed text."""
_PACKED = re.compile(rf'"encrypted_content"\s*:\s*"({re.escape(PACKED_VERSION)}[A-Za-z0-9_=-]+)"')


def compaction_item(text: str) -> Item:
    """The item that stands for the conversation that `text` summarizes."""
    return {"id": new_id("cmp_"), "type": "compaction", "encrypted_content": packed(text)}


def packed(text: str) -> str:
    """The text as `encrypted_content`."""
    raw = text.encode("utf-8", "replace")
    body = zlib.crc32(raw).to_bytes(CHECKSUM_BYTES, "big") + zlib.compress(raw, 9)
    return PACKED_VERSION + base64.urlsafe_b64encode(body).decode("ascii")


def unpack(content: Any, where: str = "encrypted_content") -> str:
    """The text that `packed` packed.

    Raises:
        InvalidInput: this server did not make the string, or it was changed.
    """
    if (
        not isinstance(content, str)
        or not content.startswith(PACKED_VERSION)
        or len(content) > MAX_PACKED_CHARS
    ):
        says = "is no compacted conversation of this server's; send the item as /v1/responses/compact gave it"
        raise InvalidInput(where, says)
    try:
        body = base64.b64decode(
            content.removeprefix(PACKED_VERSION).encode("ascii"), altchars=b"-_", validate=True
        )
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(body[CHECKSUM_BYTES:], MAX_PACKED_CHARS)
        if (
            not unpacking.eof
            or unpacking.unused_data
            or zlib.crc32(raw).to_bytes(CHECKSUM_BYTES, "big") != body[:CHECKSUM_BYTES]
        ):
            raise ValueError("the checksum is of another text")
        return raw.decode("utf-8")
    except (ValueError, binascii.Error, zlib.error) as exc:
        says = "is damaged; send the item as /v1/responses/compact gave it"
        raise InvalidInput(where, says) from exc


def packed_in(*texts: str | None) -> list[str]:
    """Return the texts that are packed in the compaction items of JSON texts."""
    contents = (match for text in texts if text for match in _PACKED.findall(text))
    return [unpacked({"encrypted_content": content}) for content in contents]


def unpacked(item: Item) -> str:
    """The text of a compaction item that was checked before; "" if it can no longer be read."""
    try:
        return unpack(item.get("encrypted_content"))
    except InvalidInput:
        return ""


TEXTS = "_texts"
"""The private key of a message under which the texts of its files stand, by the place of the part."""
