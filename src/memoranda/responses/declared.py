"""The tools that an agent profile may declare: what each kind must have, and what of it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memoranda.config.sources import WebUrl
from memoranda.errors import InvalidInput
from memoranda.filters import parse
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json
from memoranda.types import Share, says
from memoranda.validation import convert

MAX_TOOLS = 128
MAX_TOOLS_BYTES = 256 << 10
MAX_STORES = 100
"""Vector stores of one file search."""
MASK = "***"
REDACTED = "<redacted>"
"""What stands for the path of a server's URL where that may be a secret."""
FILE_SEARCH = "file_search"
Tool = dict[str, Any]
EVERY_FIELD: Tool = {"description": None, "parameters": None, "strict": None}
"""Of a function, where it is not given."""
Label = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="letters, digits, _ and - alone, at most 64 of them",
        extra=says("must be 1 to 64 letters, digits, _ and -"),
    ),
]
StoreId = Annotated[str, Meta(min_length=1, max_length=256)]


class FunctionTool(msgspec.Struct, kw_only=True):
    """A function of the client's: its parameters are a JSON schema."""

    name: Label
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class CustomTool(msgspec.Struct, kw_only=True):
    """A tool of the client's that takes a text."""

    name: Label
    description: str | None = None
    format: dict[str, Any] | None = None


class Ranking(msgspec.Struct, kw_only=True):
    """How passages are ranked."""

    ranker: str | None = None
    score_threshold: Share | None = None
    hybrid_search: dict[str, Any] | None = None


class FileSearchTool(msgspec.Struct, kw_only=True):
    """A search in vector stores."""

    vector_store_ids: Annotated[list[StoreId], Meta(min_length=1, max_length=MAX_STORES)]
    max_num_results: Annotated[int, Meta(ge=1, le=50)] | None = None
    ranking_options: Ranking | None = None
    filters: dict[str, Any] | None = None


class McpTool(msgspec.Struct, kw_only=True):
    """The tools of a remote MCP server."""

    server_label: Label
    server_url: WebUrl
    server_description: str | None = None
    authorization: str | None = None
    headers: dict[str, str] | None = None
    allowed_tools: list[str] | dict[str, Any] | None = None
    require_approval: str | dict[str, Any] | None = None


class MemoryTool(msgspec.Struct, kw_only=True):
    """A look into memory, a note for it, or something to forget."""


KINDS: dict[str, type[msgspec.Struct]] = {
    "function": FunctionTool,
    "custom": CustomTool,
    FILE_SEARCH: FileSearchTool,
    "mcp": McpTool,
    "memory_search": MemoryTool,
    "memory_write": MemoryTool,
    "vector_memory_search": MemoryTool,
    "vector_memory_write": MemoryTool,
    "memory_forget": MemoryTool,
    "vector_memory_forget": MemoryTool,
}
"""What a tool of each type must look like; fields that are not named there go through as they are."""


def kind_of(tool: Mapping[str, Any]) -> tuple[Any, ...]:
    """What two tools have in common when one replaces the other: the type, and the name where there may be several."""
    type_ = tool.get("type")
    if type_ in ("function", "custom"):
        return ("function", tool.get("name"))
    if type_ == "mcp":
        return ("mcp", tool.get("server_label"))
    if isinstance(type_, str):
        return (type_.removeprefix("vector_"),)
    return (repr(type_),)


def check_tools(tools: Sequence[Tool], where: str = "tools") -> None:
    """Refuses tools that no agent can have.

    Raises:
        InvalidInput: names the tool by its place, the field and the fix.
    """
    seen: dict[tuple[Any, ...], int] = {}
    for i, tool in enumerate(tools):
        at = f"{where}[{i}]"
        _check(tool, at)
        first = seen.setdefault(kind_of(tool), i)
        if first != i:
            raise InvalidInput(at, f"is the same tool as {where}[{first}]; keep one of the two")
    try:
        size = len(compact_json(tools))
    except (UnicodeEncodeError, OverflowError, TypeError) as exc:
        raise InvalidInput(where, f"cannot be written as JSON: {exc}") from exc
    if size > MAX_TOOLS_BYTES:
        raise InvalidInput(where, f"are {size} bytes as JSON, at most {MAX_TOOLS_BYTES} are kept")


def _check(tool: Tool, at: str) -> None:
    type_ = tool.get("type")
    if not isinstance(type_, str) or type_ not in KINDS:
        raise InvalidInput(f"{at}.type", f"must be one of {', '.join(KINDS)}")
    declared = convert(tool, KINDS[type_], at)
    if isinstance(declared, FileSearchTool) and declared.filters is not None:
        parse(declared.filters, f"{at}.filters")
    if isinstance(declared, McpTool):
        secrets = {f"headers.{name}": value for name, value in (declared.headers or {}).items()}
        secrets |= {"authorization": declared.authorization or "", "server_url": declared.server_url}
        masks = (MASK, REDACTED)
        if hidden := next((name for name, value in secrets.items() if any(m in value for m in masks)), None):
            raise InvalidInput(
                f"{at}.{hidden}",
                "holds what stands for a secret that is not shown; send the secret itself, or leave `tools` out",
            )


def stores_of(tools: Iterable[Mapping[str, Any]]) -> list[str]:
    """The vector stores that the tools search, each once."""
    named = (id_ for tool in tools if tool.get("type") == FILE_SEARCH for id_ in tool["vector_store_ids"])
    return list(dict.fromkeys(named))


def repeated(tool: Tool) -> Tool:
    """A tool as a response repeats it: a function with every field that clients expect, an MCP server without its
    credentials."""
    if tool.get("type") == "mcp":
        return echoed(tool)
    return EVERY_FIELD | tool if tool.get("type") == "function" else tool


def without_secrets(tools: Iterable[Tool]) -> list[Tool]:
    """The tools as they may be shown: credentials of MCP servers read `***`, a path of their URL that may be a secret
    reads `<redacted>`."""
    return [_masked(tool) if tool.get("type") == "mcp" else tool for tool in tools]


def _masked(tool: Tool) -> Tool:
    hidden: Tool = {"server_url": echoed(tool)["server_url"]}
    if tool.get("authorization"):
        hidden["authorization"] = MASK
    if tool.get("headers"):
        hidden["headers"] = dict.fromkeys(tool["headers"], MASK)
    return {**tool, **hidden}


def flat(tool: Mapping[str, Any]) -> dict[str, Any]:
    """Return a tool, or the choice of one, with a function that is nested as in chat completions in the form of
    responses: `{"type": "function", "function": {"name": ...}}` is `{"type": "function", "name": ...}`."""
    nested = tool.get("function")
    if tool.get("type") != "function" or not isinstance(nested, dict) or "name" in tool:
        return dict(tool)
    return {**{key: value for key, value in tool.items() if key != "function"}, **nested, "type": "function"}


def echoed(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration as a response shows it: without headers, token, and what of the URL may be secret."""
    shown = {key: value for key, value in declared.items() if key != "authorization"}
    if "headers" in shown:
        shown["headers"] = None
    url = shown.get("server_url")
    if isinstance(url, str):
        shown["server_url"] = _shown_url(url)
    return shown


def _shown_url(url: str) -> str:
    scheme, _, rest = url.partition("://")
    netloc = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if rest[len(netloc) :] in PLAIN_PATHS and "@" not in netloc:
        return url
    return f"{scheme}://{netloc.rpartition('@')[2]}/<redacted>"


LONGEST_NAME = 64


def in_namespace(space: str, name: str) -> str:
    """Return the name under which a model is offered a function of a namespace, at most 64 characters."""
    whole = f"{space}__{name}"
    return whole if len(whole) <= LONGEST_NAME else f"{whole[: LONGEST_NAME - 9]}_{digest(whole)[:8]}"


def place_of(space: str) -> str:
    """Return what stands for a namespace where a label of a server would."""
    return f"namespace {space}"


PLAIN_PATHS = ("", "/", "/mcp", "/mcp/", "/sse", "/sse/")
"""Common paths of servers; any other path may be a secret, and is not shown."""
