"""Conversion of a chat completion request to a response request: messages as items, and renamed fields."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from memoranda.errors import InvalidInput
from memoranda.responses.tools.forget import FORGET
from memoranda.responses.truncation import ContextTooLong
from memoranda.responses.values import Exchange, Item, MemoryUse, ResponseRequest
from memoranda.server import wire_chat as wire
from memoranda.text.hashing import digest
from memoranda.types import Subject

SAME = (
    "model", "stream", "parallel_tool_calls", "temperature", "top_p", "presence_penalty", "frequency_penalty",
    "top_logprobs", "service_tier", "prompt_cache_key", "safety_identifier", "user", "agent", "agent_id",
    "variables",
)  # fmt: skip
"""Fields that a response has under the same names."""
OPTIONS = ("stop", "seed", "logit_bias")
"""Fields that only chat completions have: they go to the model's server as they are."""
CHANNEL = "chat"
"""The channel of memories without a named user, on a server without keys."""
LOGPROBS = "message.output_text.logprobs"
_PLACE = re.compile(r"input\[(\d+)\]")


class ChatRequest(msgspec.Struct, frozen=True):
    """A chat completion request in the terms of the responses engine. `places` are the indexes of the messages that
    the items come from."""

    request: ResponseRequest
    exchange: Exchange
    places: Sequence[int]
    body: wire.ChatBody

    def renamed(self, exc: BaseException) -> BaseException:
        """Return the error with the field as the caller of chat completions wrote it."""
        if type(exc) not in (InvalidInput, ContextTooLong):
            return exc
        assert isinstance(exc, InvalidInput)
        says = str(exc).removeprefix(f"{exc.field}: ")
        return type(exc)(self._field(exc.field), says)

    def _field(self, field: str) -> str:
        if place := _PLACE.match(field):
            return f"messages[{self.places[int(place[1])]}]{field[place.end() :]}"
        limit = "max_tokens" if self.body.max_completion_tokens is None else "max_completion_tokens"
        names = {
            "input": "messages",
            "instructions": "messages",
            "max_output_tokens": limit,
            "text.format.type": "response_format.type",
            "text.format.schema": "response_format.json_schema",
        }
        return names.get(field, field)


def asked(body: wire.ChatBody, subject: Subject, session: str | None, alone: bool) -> ChatRequest:
    """Convert a request for the engine. `session` is the session that a header names; `alone` means that the server
    has no keys, so that all requests without a user come from one person.

    Raises:
        InvalidInput: names the field and the fix.
    """
    _refuse(body)
    instructions, first = _instructions(body.messages)
    items, places = _items(body.messages, first)
    use = _memory(body, subject, session, alone)
    request = ResponseRequest(
        **{name: getattr(body, name) for name in SAME},
        input=items,
        instructions=instructions,
        store=False,
        include=[LOGPROBS] if body.logprobs else None,
        tools=body.tools,
        tool_choice=_choice(body.tool_choice),
        max_output_tokens=body.max_tokens
        if body.max_completion_tokens is None
        else body.max_completion_tokens,
        text=_text(body),
        reasoning=None if body.reasoning_effort is None else {"effort": body.reasoning_effort},
        memory=use,
    )
    options = {name: value for name in OPTIONS if (value := getattr(body, name)) is not None}
    observed = body.store is not False and body.memory is not False
    named = body.memory if isinstance(body.memory, MemoryUse) else MemoryUse()
    unplaced = session is named.session_id is named.channel_id is None
    exchange = Exchange(observed=observed, unplaced=unplaced, forgets=_forgets(body), options=options)
    return ChatRequest(request, exchange, places, body)


def _forgets(body: wire.ChatBody) -> bool:
    """Return True if the model is offered `memory_forget`, which the request does not declare: where it may choose its
    tools itself, in free text, and no agent says which it has."""
    declared = any(str(tool.get("type")).endswith(FORGET) for tool in body.tools or ())
    free = body.tool_choice in (None, "auto") and body.response_format is None
    return free and not declared and not (body.agent or body.agent_id)


def _refuse(body: wire.ChatBody) -> None:
    """Refuses fields of chat completions that this server does not support."""
    if body.n not in (None, 1):
        raise InvalidInput("n", "must be 1: one answer is made; send the request several times for more")
    for name in ("functions", "function_call"):
        if getattr(body, name) is not None:
            raise InvalidInput(name, "is not taken; use `tools` and `tool_choice`")
    for i, kind in enumerate(body.modalities or ()):
        if kind != "text":
            raise InvalidInput(f"modalities[{i}]", f"must be text; {kind!r} is not answered")
    for i, tool in enumerate(body.tools or ()):
        if tool.get("type") in ("custom", "namespace"):
            says = "must be function, or a tool that runs here; others of the client need /v1/responses"
            raise InvalidInput(f"tools[{i}].type", says)


# --- messages --------------------------------------------------------------------------------------


def _instructions(messages: Sequence[wire.ChatMessage]) -> tuple[str | None, int]:
    """The system messages at the beginning as one text (None: there are none), and where the others begin."""
    first = next((i for i, message in enumerate(messages) if not _is_system(message)), len(messages))
    system = messages[:first]
    texts = [_system_text(message, f"messages[{i}].content") for i, message in enumerate(system)]
    return "\n\n".join(text for text in texts if text) or None, first


def _is_system(message: wire.ChatMessage) -> bool:
    return message.role in ("system", "developer")


def _system_text(message: wire.ChatMessage, where: str) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = message.content or []
    for i, part in enumerate(parts):
        if part.get("type") != "text" or not isinstance(part.get("text"), str):
            raise InvalidInput(f"{where}[{i}].type", "must be text, with a `text`, in a system message")
    return "\n\n".join(part["text"] for part in parts)


def _items(messages: Sequence[wire.ChatMessage], first: int) -> tuple[list[Item], list[int]]:
    """The messages from `first` on as items, and for each the index of its message."""
    items: list[Item] = []
    places: list[int] = []
    for i, message in enumerate(messages[first:], first):
        converted = _of_message(message, f"messages[{i}]")
        items += converted
        places += [i] * len(converted)
    return items, places


def _of_message(message: wire.ChatMessage, where: str) -> list[Item]:
    if message.role == "tool":
        if not message.tool_call_id:
            raise InvalidInput(f"{where}.tool_call_id", "is required: the id of the call that is answered")
        output = _content(message, where)
        return [{"type": "function_call_output", "call_id": message.tool_call_id, "output": output}]
    if message.role != "assistant":
        return [{"type": "message", "role": message.role, "content": _content(message, where)}]
    content = _content(message, where)
    if message.refusal:
        content = [*(content or []), {"type": "refusal", "refusal": message.refusal}]
    items = [{"type": "message", "role": "assistant", "content": content}] if content else []
    return [*items, *(_of_call(call) for call in message.tool_calls or ())]


def _of_call(call: wire.ChatToolCall) -> Item:
    called = call.function
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": called.name,
        "arguments": called.arguments,
    }


def _content(message: wire.ChatMessage, where: str) -> Any:
    """The content of a message as that of an item: a list of parts, for a tool also a text."""
    kind = "output_text" if message.role == "assistant" else "input_text"
    if isinstance(message.content, str):
        if message.role == "tool":
            return message.content
        return [{"type": kind, "text": message.content}] if message.content or kind == "input_text" else []
    if message.content is None and message.role != "assistant":
        raise InvalidInput(f"{where}.content", "must be a text or a list of parts")
    parts = message.content or []
    return [_part(part, kind, f"{where}.content[{i}]") for i, part in enumerate(parts)]


def _part(part: dict[str, Any], kind: str, where: str) -> Item:
    given = part.get("type")
    if given == "text":
        return {"type": kind, "text": part.get("text")}
    if given == "refusal" and kind == "output_text":
        return {"type": "refusal", "refusal": part.get("refusal")}
    if given not in ("image_url", "file") or kind == "output_text":
        known = "text, refusal" if kind == "output_text" else "text, image_url, file"
        raise InvalidInput(f"{where}.type", f"{given!r} is not taken; use {known}")
    value = part.get(str(given))
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}.{given}", "must be an object")
    if given == "file":
        return {
            "type": "input_file",
            **{key: value.get(key) for key in ("file_id", "file_data", "filename")},
        }
    return {"type": "input_image", "image_url": value.get("url"), "detail": value.get("detail")}


# --- other fields ----------------------------------------------------------------------------------


def _choice(choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    """The choice of a tool; allowed tools are not nested in a response."""
    allowed = choice.get("allowed_tools") if isinstance(choice, dict) else None
    if not isinstance(allowed, dict):
        return choice
    tools = allowed.get("tools")
    names = [
        {"type": "function", "name": tool["function"].get("name")}
        if isinstance(tool, dict) and isinstance(tool.get("function"), dict)
        else tool
        for tool in (tools if isinstance(tools, list) else [])
    ]
    return {"type": "allowed_tools", "mode": allowed.get("mode"), "tools": names}


def _text(body: wire.ChatBody) -> dict[str, Any] | None:
    """The form of the answer. A schema is not nested in a response."""
    form = body.response_format
    options: dict[str, Any] = {}
    if form is not None:
        schema = form.get("json_schema")
        options["format"] = {**schema, "type": form.get("type")} if isinstance(schema, dict) else form
    if body.verbosity is not None:
        options["verbosity"] = body.verbosity
    return options or None


def _memory(body: wire.ChatBody, subject: Subject, session: str | None, alone: bool) -> MemoryUse:
    """The memory options: their user, session and channel."""
    use = body.memory if isinstance(body.memory, MemoryUse) else MemoryUse()
    if isinstance(body.memory, bool):
        use = MemoryUse(retrieval=body.memory)
    user = use.user_id
    if user is None and subject.user_id is None:
        user = body.user or None
    known = user or subject.user_id
    channel = use.channel_id
    if channel is None and known is None and alone:
        channel = CHANNEL
    session_id = use.session_id or session
    if session_id is None and (known is not None or channel is not None):
        session_id = _session(body, [known or "", channel or "", body.agent or body.agent_id or ""])
    return msgspec.structs.replace(use, user_id=user, session_id=session_id, channel_id=channel)


def _session(body: wire.ChatBody, around: Sequence[str]) -> str | None:
    """The session of a conversation that names none: a digest of its scope and of its first user message. None without
    a user message."""
    first = next((message.content for message in body.messages if message.role == "user"), None)
    if not first:
        return None
    if not isinstance(first, str):
        first = "\n".join(str(part.get("text") or part.get("type")) for part in first)
    return f"chat_{digest(*around, first)}"
