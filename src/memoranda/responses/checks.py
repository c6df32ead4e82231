"""Checks of a request for a response: ranges, and fields that exclude each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memoranda.errors import InvalidInput
from memoranda.filters import check_unicode
from memoranda.responses.declared import flat
from memoranda.responses.items import check_json
from memoranda.responses.values import (
    FORMATS,
    MAX_KEY,
    MAX_METADATA,
    MAX_VALUE,
    ConversationRef,
    MemoryUse,
    ResponseRequest,
)
from memoranda.validation import checked

MAX_TOOL_BYTES = 1 << 20
"""Of all tools of a request: each event that shows the response repeats them."""


def check(request: ResponseRequest) -> None:
    """Refuses a request that makes no sense in itself.

    Raises:
        InvalidInput: names the field and the fix.
    """
    if request.background and request.store is False:
        raise InvalidInput("background", "needs `store`: what runs in the background is fetched later")
    for name in request.__struct_fields__:
        if name != "input":  # whose items are checked one by one
            check_json(getattr(request, name), name)
    checked(msgspec.structs.replace(request, input=request.input and "text"))
    if len(msgspec.json.encode(request.tools)) > MAX_TOOL_BYTES:
        raise InvalidInput("tools", f"are more than {MAX_TOOL_BYTES} bytes of JSON together")
    for i, tool in enumerate(request.tools or []):
        if not isinstance(tool.get("type"), str):
            raise InvalidInput(f"tools[{i}].type", "must be a text, as in `function` or `file_search`")
    check_metadata(request.metadata)
    response_format(request.text)


def flattened(request: ResponseRequest) -> ResponseRequest:
    """Return the request with functions that are nested as chat completions have them in the form of responses:
    `{"type": "function", "function": {"name": ...}}` is `{"type": "function", "name": ...}`."""
    choice = request.tool_choice
    return msgspec.structs.replace(
        request,
        tools=request.tools and [flat(tool) for tool in request.tools],
        tool_choice=flat(choice) if isinstance(choice, dict) else choice,
    )


def check_metadata(metadata: Mapping[str, str] | None) -> None:
    """Refuses more than 16 pairs, keys over 64 and values over 512 characters.

    Raises:
        InvalidInput: names the key.
    """
    if metadata is None:
        return
    if len(metadata) > MAX_METADATA:
        raise InvalidInput("metadata", f"has {len(metadata)} keys; at most {MAX_METADATA}")
    for key, value in metadata.items():
        if len(key) > MAX_KEY:
            raise InvalidInput("metadata", f"the key {key[:20]!r}... is longer than {MAX_KEY} characters")
        if len(value) > MAX_VALUE:
            raise InvalidInput(f"metadata.{key}", f"is longer than {MAX_VALUE} characters")
        check_unicode(key, "metadata")
        check_unicode(value, f"metadata.{key}")


def response_format(text: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The format of the answer in the shape of chat completions; None for plain text.

    Raises:
        InvalidInput: the format is unknown, or has no schema.
    """
    asked = (text or {}).get("format") or {"type": "text"}
    kind = asked.get("type") if isinstance(asked, dict) else None
    if kind not in FORMATS:
        raise InvalidInput("text.format.type", f"must be one of {', '.join(FORMATS)}")
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": kind}
    if not isinstance(asked.get("schema"), dict) or not isinstance(asked.get("name"), str):
        raise InvalidInput("text.format.schema", "a json_schema needs a `name` and a `schema`")
    schema = {
        key: asked[key] for key in ("name", "description", "schema", "strict") if asked.get(key) is not None
    }
    return {"type": kind, "json_schema": schema}


def conversation_of(request: ResponseRequest) -> str | None:
    """The id of the conversation that is asked for."""
    named = request.conversation
    return named.id if isinstance(named, ConversationRef) else named


def memory_of(request: ResponseRequest) -> MemoryUse:
    """The memory options of a request; a bare true or false sets `retrieval`."""
    options = request.memory
    return MemoryUse(retrieval=options) if isinstance(options, bool) or options is None else options
