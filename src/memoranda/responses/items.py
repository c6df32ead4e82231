"""Items as clients send them: checked, completed, and classified by whether a model can read them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memoranda.errors import InvalidInput
from memoranda.filters import check_unicode
from memoranda.responses.values import (
    CALLS,
    MAX_PACKED_CHARS,
    OUTPUTS,
    Item,
    broken_off,
    message,
    paired,
    unpack,
)
from memoranda.store.ids import new_id
from memoranda.validation import convert

MAX_ITEMS = 10_000
MAX_PARTS = 10_000
"""Parts of one message."""
ROLES = ("user", "assistant", "system", "developer")
PREFIXES: dict[str, str] = {
    "message": "msg_",
    "function_call": "fc_",
    "function_call_output": "fco_",
    "custom_tool_call": "ctc_",
    "custom_tool_call_output": "cto_",
    "reasoning": "rs_",
    "file_search_call": "fs_",
    "web_search_call": "ws_",
    "mcp_call": "mcp_",
    "mcp_list_tools": "mcpl_",
    "mcp_approval_request": "mcpr_",
    "mcp_approval_response": "mcpa_",
    "compaction": "cmp_",
    "item_reference": "",
}
"""The types that are sent to models, and the prefix of the ids of each."""
SILENT = frozenset(
    {
        "web_search_call", "computer_call", "computer_call_output", "image_generation_call", "code_interpreter_call",
        "local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call",
        "apply_patch_call_output", "tool_search_call", "tool_search_output", "additional_tools", "compaction_trigger",
        "program", "program_output", "compaction_summary",
    }
)  # fmt: skip
"""Types of the API that are stored and not sent to models."""
NEEDED: dict[str, tuple[str, ...]] = {
    "function_call": ("call_id", "name", "arguments"),
    "function_call_output": ("call_id",),
    "custom_tool_call": ("call_id", "name", "input"),
    "custom_tool_call_output": ("call_id",),
    "mcp_approval_response": ("approval_request_id",),
    "mcp_approval_request": ("id", "server_label", "name", "arguments"),
    "compaction": ("encrypted_content",),
    "item_reference": ("id",),
}
"""Texts that an item of a type must have."""
_CONTENT = {"content": {"type": ["string", "array"], "maxItems": MAX_PARTS}}
_KINDS = [
    {
        "properties": {"type": {"const": kind}, **{name: {"type": "string"} for name in names}},
        "required": ["type", *names],
    }
    for kind, names in NEEDED.items()
]
SentItem = Annotated[
    Item,
    Meta(
        extra_json_schema={
            "anyOf": [
                {
                    "properties": {"type": {"const": "message"}, "role": {"enum": list(ROLES)}, **_CONTENT},
                    "required": ["role", "content"],
                },
                *_KINDS,
                {
                    "properties": {"type": {"enum": sorted(({*PREFIXES} | SILENT) - {*NEEDED, "message"})}},
                    "required": ["type"],
                },
            ]
        }
    ),
]
"""An item as a client sends it, as far as its type says what it has."""


class FileSearchCall(msgspec.Struct):
    """What a search of an earlier response has, where it is sent back."""

    queries: list[str] | None = None
    results: list[dict[str, Any]] | None = None


class McpCall(msgspec.Struct):
    """What a call that ran here or on an MCP server has, where it is sent back."""

    name: str
    server_label: str
    arguments: str | None = None
    output: str | None = None
    error: dict[str, Any] | str | None = None


class McpTool(msgspec.Struct):
    """A tool in a list that is sent back."""

    name: str
    input_schema: dict[str, Any] | None = None
    description: str | None = None
    annotations: dict[str, Any] | None = None


class McpListTools(msgspec.Struct):
    """The tools of an MCP server, where they are sent back."""

    server_label: str
    tools: list[McpTool]
    error: Any = None


class Reasoning(msgspec.Struct):
    """Reasoning that is sent back; it is not sent to models."""

    summary: list[dict[str, Any]] | None = None
    content: list[dict[str, Any]] | None = None


class Part(msgspec.Struct):
    """What a part may have beside what its type needs."""

    text: str | None = None
    refusal: str | None = None
    annotations: list[dict[str, Any]] | None = None
    logprobs: list[dict[str, Any]] | None = None
    image_url: str | None = None
    detail: str | None = None
    file_id: str | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


SHAPES: dict[str, type[msgspec.Struct]] = {
    "file_search_call": FileSearchCall,
    "mcp_call": McpCall,
    "mcp_list_tools": McpListTools,
    "reasoning": Reasoning,
}
"""What else items of a type hold that is read again."""
INPUT_PARTS = ("input_text", "input_image", "input_file")
OUTPUT_PARTS = ("output_text", "refusal")
PARTS: dict[str, tuple[str, ...]] = {
    "input_text": ("text",),
    "output_text": ("text",),
    "text": ("text",),
    "refusal": ("refusal",),
    "input_image": (),
    "input_file": (),
    "summary_text": ("text",),
    "reasoning_text": ("text",),
}


def checked(raw: Any, where: str = "input") -> list[Item]:
    """Items out of an `input`: a text is one message of the user. Each has a type, an id and a status; contents are
    lists of parts.

    Raises:
        InvalidInput: names the place and the fix.
    """
    if isinstance(raw, str):
        return [message("user", [{"type": "input_text", "text": _text(raw, where)}])]
    if not isinstance(raw, list):
        raise InvalidInput(where, "must be a text or a list of items")
    if len(raw) > MAX_ITEMS:
        raise InvalidInput(where, f"holds {len(raw)} items; send at most {MAX_ITEMS}")
    items, chars_left = [], MAX_PACKED_CHARS
    for i, each in enumerate(raw):
        items.append(_item(each, f"{where}[{i}]"))
        if items[-1]["type"] == "compaction":
            at = f"{where}[{i}].encrypted_content"
            chars_left -= len(unpack(items[-1]["encrypted_content"], at))
            if chars_left < 0:
                raise InvalidInput(
                    at, f"is more than {MAX_PACKED_CHARS} characters with those before; leave some out"
                )
    return items


def check_calls(items: Sequence[Item], where: str = "input") -> None:
    """Refuses calls of functions without their outputs, and outputs without their calls: models reject them. An
    unfinished call needs no output.

    Raises:
        InvalidInput: names the call.
    """
    pairs = paired(items)
    answers = set(pairs.values())
    for place, item in enumerate(items):
        if item["type"] in OUTPUTS and place not in answers:
            call = item["call_id"]
            raise InvalidInput(where, f"No tool call found for function call output with call_id {call}.")
        if item["type"] in CALLS and place not in pairs and not broken_off(item):
            raise InvalidInput(where, f"No tool output found for function call {item['call_id']}.")


def _item(raw: Any, where: str) -> Item:
    if not isinstance(raw, dict):
        raise InvalidInput(where, "must be an object with a `type`")
    item = {key: value for key, value in raw.items() if not str(key).startswith("_")}
    check_json(item, where)
    kind = item.setdefault("type", "message")
    if not isinstance(kind, str) or (kind not in PREFIXES and kind not in SILENT):
        raise InvalidInput(f"{where}.type", f"{kind!r} is unknown; use one of {', '.join(PREFIXES)}")
    for key in NEEDED.get(kind, ()):
        item[key] = _text(item.get(key), f"{where}.{key}")
    if kind == "message":
        _check_message(item, where)
    elif kind.endswith("_call_output"):
        _check_output(item, where)
    elif kind == "mcp_approval_response" and not isinstance(item.get("approve"), bool):
        raise InvalidInput(f"{where}.approve", "must be true or false")
    elif kind in SHAPES:
        convert(item, SHAPES[kind], where)
        _fill(item)
    return _completed(item, where)


def check_json(value: Any, where: str) -> None:
    """Refuses what cannot be stored or sent.

    Raises:
        InvalidInput: it holds something that JSON does not have, or half of a surrogate pair.
    """
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError as exc:
        raise InvalidInput(
            where, f"holds a lone surrogate: {exc.object[exc.start - 20 : exc.start]!r}..."
        ) from exc
    except (TypeError, ValueError, OverflowError, RecursionError) as exc:
        raise InvalidInput(where, f"is no JSON: {exc}") from exc


def _fill(item: Item) -> None:
    """Gives an item that is sent back what clients may leave out."""
    kind = item["type"]
    if kind == "reasoning":
        item["summary"] = item.get("summary") or []
    elif kind == "file_search_call":
        item["queries"] = item.get("queries") or []
        item.setdefault("results", None)
    elif kind == "mcp_call":
        item["arguments"] = item.get("arguments") or "{}"
        item.setdefault("output", None)
        item.setdefault("error", None)


def _completed(item: Item, where: str) -> Item:
    kind = item["type"]
    id_ = item.get("id")
    if id_ is not None and (not isinstance(id_, str) or not 1 <= len(id_) <= 256):
        raise InvalidInput(f"{where}.id", "must be a text of 1 to 256 characters, or left out")
    if id_ is None or ("\0" in id_ and kind != "item_reference"):  # which is the key of no row
        item["id"] = new_id(PREFIXES.get(kind) or "item_")
    else:
        check_unicode(id_, f"{where}.id")
    if kind in (
        "message",
        "function_call",
        "function_call_output",
        "custom_tool_call",
        "custom_tool_call_output",
        "file_search_call",
        "mcp_call",
        "reasoning",
    ):
        item["status"] = item.get("status") or "completed"
    return item


def _check_message(item: Item, where: str) -> None:
    role = item.get("role")
    if role not in ROLES:
        raise InvalidInput(f"{where}.role", f"must be one of {', '.join(ROLES)}")
    own = "output_text" if role == "assistant" else "input_text"
    content = item.get("content")
    if isinstance(content, str):
        item["content"] = [_part({"type": own, "text": content}, role, f"{where}.content")]
    elif isinstance(content, list):
        if len(content) > MAX_PARTS:
            raise InvalidInput(f"{where}.content", f"holds {len(content)} parts; send at most {MAX_PARTS}")
        item["content"] = [
            _part(
                {"type": own, "text": part} if isinstance(part, str) else part, role, f"{where}.content[{i}]"
            )
            for i, part in enumerate(content)
        ]
    else:
        raise InvalidInput(f"{where}.content", "must be a text or a list of parts")


def _part(raw: Any, role: str, where: str) -> Item:
    if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
        raise InvalidInput(where, "must be an object with a `type`")
    part = {key: value for key, value in raw.items() if value is not None}
    kind = part["type"]
    if kind not in PARTS:
        known = OUTPUT_PARTS if role == "assistant" else INPUT_PARTS
        raise InvalidInput(f"{where}.type", f"{kind!r} is not taken; use {', '.join(known)}")
    for key in PARTS[kind]:
        part[key] = _text(part.get(key), f"{where}.{key}")
    convert(part, Part, where)
    if kind == "output_text":
        part["annotations"] = part.get("annotations") or []
        part["logprobs"] = part.get("logprobs") or []
    elif kind == "input_image":
        _check_image(part, where)
    elif kind == "input_file":
        _check_file(part, where)
    return part


def _check_image(part: Item, where: str) -> None:
    part.setdefault("detail", "auto")
    if not isinstance(part.get("image_url") or part.get("file_id"), str):
        raise InvalidInput(f"{where}.image_url", "give the image's URL (or data URL) here, or its `file_id`")


def _check_file(part: Item, where: str) -> None:
    if isinstance(part.get("file_id") or part.get("file_data"), str):
        return
    if part.get("file_url"):
        says = "is not fetched by this server; upload the file and give its `file_id`, or send `file_data`"
        raise InvalidInput(f"{where}.file_url", says)
    raise InvalidInput(
        f"{where}.file_id", "give the id of an uploaded file here, or its bytes in `file_data`"
    )


def _check_output(item: Item, where: str) -> None:
    output = item.get("output")
    if isinstance(output, list):
        item["output"] = [_part(part, "user", f"{where}.output[{i}]") for i, part in enumerate(output)]
    elif not isinstance(output, str):
        if output is None:
            raise InvalidInput(f"{where}.output", "must be a text, or a list of parts")
        item["output"] = json.dumps(output, ensure_ascii=False)
    else:
        check_unicode(output, f"{where}.output")


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput(where, "must be a text")
    check_unicode(value, where)
    return value
