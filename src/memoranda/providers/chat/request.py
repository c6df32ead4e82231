"""The request body of a chat completion for one kind of server. No I/O."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from memoranda.providers.chat.base import Ask, Message
from memoranda.providers.chat.quirks import Quirks
from memoranda.text.tokens import well_formed

Body = dict[str, Any]

TELL_SCHEMA = "told the schema"
"""Stands for a parameter: the schema is in the prompt, since the server does not accept `json_schema`."""
OTHER_MAX_TOKENS = "the other max_tokens"
"""Stands for a parameter: the bound on the answer is sent under its other name."""
UNSIGNED = "calls without a signature"
"""Stands for a parameter: calls in the history that the model did not sign are marked."""
_UNSIGNED = {"google": {"thought_signature": "skip_thought_signature_validator"}}
DROPPABLE = (
    "stream_options",
    "parallel_tool_calls",
    "response_format",
    "max_completion_tokens",
    "max_tokens",
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
    "reasoning_effort",
    "verbosity",
    "tool_choice",
    "service_tier",
    "prompt_cache_key",
    "safety_identifier",
    "user",
)
"""Parameters that are dropped for a retry if a refusal names them."""
_UNKNOWN = re.compile(
    r"(?i)unsupported|not supported|n.t support|not support|unknown|unrecogni[sz]ed|unexpected|not permitted|extra_?"
    r"(forbidden|fields|inputs)|not allowed|not (yet )?(available|implemented)|no such (parameter|field)"
)
_NAMES_ONE = {True: "max_tokens", False: "max_completion_tokens"}


def body_of(
    ask: Ask,
    model: str,
    quirks: Quirks,
    without: Collection[str] = (),
    extras: Mapping[str, Any] | None = None,
) -> Body:
    """Return the request for `ask`; `without` are the parameters that this model refused before, `extras` the extra
    content to send back with calls, by id."""
    signed = _signed(ask.messages, extras or {}, _UNSIGNED if UNSIGNED in without else None)
    body: Body = {"model": ask.model or model, "messages": _messages(signed, quirks)}
    body |= _tools(ask, quirks)
    body |= {name: value for name, value in _options(ask, quirks, without).items() if value is not None}
    body |= ask.extra
    _answer_format(ask, body, without)
    dropped = quirks.leaves_out | set(without)
    if "logprobs" in dropped:
        dropped |= {"top_logprobs"}
    return {name: value for name, value in body.items() if name not in dropped}


def encoded(body: Body) -> bytes:
    """Return the body as JSON, with U+FFFD for half of a surrogate pair."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError:
        return msgspec.json.encode(_well_formed(body))


def refused_parameter(body: Body, says: str, named: str, without: Collection[str]) -> str | None:
    """Return the parameter to leave out (or to send differently) after a refusal: the one that the server `named`, or
    that `says` calls unknown. None if there is none, or it was left out already."""
    if "thought_signature" in says and UNSIGNED not in without:
        return UNSIGNED
    if not _UNKNOWN.search(says):
        return None
    sent = [name for name in DROPPABLE if name in body]
    name = named if named in sent else next((name for name in sent if _mentions(name, says)), None)
    if name in ("max_tokens", "max_completion_tokens") and OTHER_MAX_TOKENS not in without:
        return OTHER_MAX_TOKENS
    if name == "response_format" and TELL_SCHEMA not in without and "json_schema" in body[name]:
        return TELL_SCHEMA
    return name


def _mentions(name: str, says: str) -> bool:
    if re.search(rf"(?<![a-z_]){name}(?![a-z_])", says):
        return True
    return name == "response_format" and ("json_schema" in says or "json_object" in says)


def _options(ask: Ask, quirks: Quirks, without: Collection[str]) -> Body:
    bound = quirks.max_tokens
    if OTHER_MAX_TOKENS in without:
        bound = _NAMES_ONE[bound == "max_completion_tokens"]
    return {
        bound: ask.max_tokens,
        "temperature": ask.temperature,
        "top_p": ask.top_p,
        "presence_penalty": ask.presence_penalty,
        "frequency_penalty": ask.frequency_penalty,
        "logprobs": True if ask.top_logprobs is not None else None,
        "top_logprobs": ask.top_logprobs,
        "reasoning_effort": ask.reasoning_effort,
        "verbosity": ask.verbosity,
        "stream": True if ask.stream else None,
        "stream_options": {"include_usage": True} if ask.stream else None,
    }


def _tools(ask: Ask, quirks: Quirks) -> Body:
    """Return tools and tool choice in the form that the server accepts."""
    tools, choice = ask.tools, ask.tool_choice
    if not tools or (choice == "none" and "tool_choice" in quirks.leaves_out):
        return {}
    if isinstance(choice, Mapping) and not quirks.named_tool:
        name = choice.get("function", {}).get("name")
        tools, choice = [tool for tool in tools if tool.get("function", {}).get("name") == name], "required"
    if choice == "required":
        choice = quirks.required
    fields: Body = {"tools": tools}
    if choice is not None:
        fields["tool_choice"] = choice
    if ask.parallel_tool_calls is not None:
        fields["parallel_tool_calls"] = ask.parallel_tool_calls
    return fields


def _answer_format(ask: Ask, body: Body, without: Collection[str]) -> None:
    """Set the wanted form of the answer. For a server without schemas it is in the prompt, and is not enforced."""
    wanted = ask.response_format
    if wanted is None or wanted.get("type") == "text":
        return
    in_prompt = TELL_SCHEMA in without
    body["response_format"] = {"type": "json_object"} if in_prompt else wanted
    if in_prompt or "response_format" in without:
        schema = wanted.get("json_schema", {}).get("schema")
        fits = f" that fits this JSON schema: {msgspec.json.encode(schema).decode()}" if schema else ""
        says = {"role": "system", "content": f"Answer with one JSON value{fits}. Write nothing else."}
        body["messages"] = _one_system([*body["messages"], says])


def _messages(messages: list[Message], quirks: Quirks) -> list[Message]:
    converted = messages
    if not quirks.developer:
        converted = [m | {"role": "system"} if m.get("role") == "developer" else m for m in converted]
    if quirks.one_system:
        converted = _one_system(converted)
    if quirks.call_id_chars:
        converted = _with_ids(converted, quirks.call_id_chars)
    return converted


def _signed(messages: list[Message], extras: Mapping[str, Any], otherwise: Any) -> list[Message]:
    """Return the messages with `extra_content` added to calls that have some, and `otherwise` to the others."""
    if not extras and otherwise is None:
        return messages
    signed = []
    for message in messages:
        if message.get("tool_calls"):
            pairs = [(call, extras.get(str(call.get("id")), otherwise)) for call in message["tool_calls"]]
            calls = [call | {"extra_content": extra} if extra else call for call, extra in pairs]
            message = message | {"tool_calls": calls}
        signed.append(message)
    return signed


def _one_system(messages: list[Message]) -> list[Message]:
    """Return the messages with all instructions in one message at the start."""
    instructions = [message for message in messages if message.get("role") == "system"]
    if not instructions or (len(instructions) == 1 and messages[0] is instructions[0]):
        return messages
    texts = [_text(message.get("content")) for message in instructions]
    head: Message = {"role": "system", "content": "\n\n".join(text for text in texts if text)}
    return [head, *(message for message in messages if message.get("role") != "system")]


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text") or "") for part in content)
    return content or ""


def _with_ids(messages: list[Message], size: int) -> list[Message]:
    """Return the messages with ids of calls as `size` letters and digits, the same for the same id."""
    converted = []
    for message in messages:
        if message.get("tool_calls"):
            calls = [call | {"id": _short(call.get("id"), size)} for call in message["tool_calls"]]
            message = message | {"tool_calls": calls}
        elif message.get("tool_call_id"):
            message = message | {"tool_call_id": _short(message["tool_call_id"], size)}
        converted.append(message)
    return converted


def _short(id: Any, size: int) -> str:
    given = str(id)
    if len(given) == size and given.isalnum() and given.isascii():
        return given
    return sha256(given.encode("utf-8", "replace")).hexdigest()[:size]


def _well_formed(value: Any) -> Any:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, Mapping):
        return {_well_formed(name): _well_formed(inner) for name, inner in value.items()}
    return [_well_formed(inner) for inner in value] if isinstance(value, list | tuple) else value
