"""The JSON of a chat completion, whole or in chunks, parsed tolerantly. No I/O."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from memoranda.providers.chat.base import TokenUsage


class Function(msgspec.Struct):
    """The function of a tool call."""

    name: str | None = None
    arguments: Any = None


class CallPart(msgspec.Struct):
    """A tool call, or more of one."""

    index: Any = None
    id: Any = None
    function: Function | None = None
    extra_content: Any = None


class MessageDelta(msgspec.Struct):
    """A message, or more of one."""

    content: str | list[Any] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    thinking: Any = None
    refusal: str | None = None
    tool_calls: list[CallPart] | None = None
    function_call: Function | None = None


class Choice(msgspec.Struct):
    """One answer of several; only the first is read."""

    delta: MessageDelta | None = None
    message: MessageDelta | None = None
    finish_reason: str | None = None
    logprobs: dict[str, Any] | None = None


class Chunk(msgspec.Struct):
    """A chunk of a stream, or a whole answer."""

    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    model: str | None = None
    error: Any = None
    x_groq: dict[str, Any] | None = None
    detail: Any = None
    message: Any = None


_DECODER = msgspec.json.Decoder(Chunk)


def decoded(data: bytes) -> Chunk:
    """Return the chunk in `data`, or in a list; invalid UTF-8 and halves of surrogate pairs are tolerated.

    Raises:
        ValueError: it is no JSON, or has another shape.
    """
    try:
        return _DECODER.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        document = json.loads(data.decode("utf-8", "replace"))
        return msgspec.convert(document[0] if isinstance(document, list) and document else document, Chunk)
    except RecursionError as exc:
        raise ValueError("it is nested too deeply") from exc


def counted(chunk: Chunk) -> TokenUsage | None:
    """Return the token usage in a chunk, None if it has none."""
    fields = chunk.usage or (chunk.x_groq or {}).get("usage")
    if not isinstance(fields, dict):
        return None
    usage = TokenUsage(
        input=_number(fields, "prompt_tokens", "input_tokens"),
        output=_number(fields, "completion_tokens", "output_tokens"),
        cached=_number(_part(fields, "prompt_tokens_details"), "cached_tokens")
        or _number(fields, "prompt_cache_hit_tokens"),
        reasoning=_number(_part(fields, "completion_tokens_details"), "reasoning_tokens"),
    )
    return usage if usage.input or usage.output else None


def text_of(content: Any) -> tuple[str, str]:
    """Return the text and the reasoning in a content that is text, a list of parts, a part, or None."""
    if isinstance(content, str):
        return content, ""
    if isinstance(content, dict):
        content = [content]
    text, thought = "", ""
    for part in content if isinstance(content, list) else []:
        if isinstance(part, str):
            text += part
        elif isinstance(part, dict) and (inner := part.get("thinking") or part.get("reasoning")):
            thought += "".join(text_of(inner))
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            text += part["text"]
    return text, thought


def _part(fields: dict[str, Any], name: str) -> dict[str, Any]:
    part = fields.get(name)
    return part if isinstance(part, dict) else {}


def _number(fields: dict[str, Any], *names: str) -> int:
    """Return the first of these fields that is a whole number, else 0."""
    values = (fields.get(name) for name in names)
    whole = (int(value) for value in values if isinstance(value, int | float) and float(value).is_integer())
    return max(0, next(whole, 0))
