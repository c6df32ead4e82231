"""The tools that a model is offered, their names, and which it must or may call."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from memoranda.errors import InvalidInput
from memoranda.responses.declared import flat, in_namespace, place_of
from memoranda.responses.steps import ToolCall, ToolNames
from memoranda.responses.tools.base import Tool, Turn
from memoranda.responses.values import MAX_TOOLS
from memoranda.validation import convert

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
Offer = dict[str, Any]
"""A tool as chat completions have it."""


class Function(msgspec.Struct):
    """A function of the client, as it is declared."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Format(msgspec.Struct):
    """What a custom tool's input must be like."""

    definition: str | None = None


class Custom(msgspec.Struct):
    """A tool of the client that takes a text, as it is declared."""

    name: str
    description: str | None = None
    format: Format | None = None


class Choice(msgspec.Struct):
    """A choice that names tools."""

    type: str
    name: str | None = None
    server_label: str | None = None
    namespace: str | None = None
    mode: Literal["auto", "required"] | None = None
    tools: list[dict[str, Any]] | None = None


class Offers(msgspec.Struct, frozen=True):
    """What a model may call: `here` runs here, by the name that is offered; `functions` are the client's. `custom` are
    those of them that take a text instead of arguments, `namespaced` those that are declared in a namespace: its name
    and theirs."""

    here: Mapping[str, Tool] = msgspec.field(default_factory=dict)
    functions: Mapping[str, Offer] = msgspec.field(default_factory=dict)
    custom: frozenset[str] = frozenset()
    namespaced: Mapping[str, tuple[str, str]] = msgspec.field(default_factory=dict)

    def known(self, calls: Iterable[ToolCall], turn: Turn) -> ToolNames:
        """The names, and which calls must be approved, for `steps.next_step`."""
        here = ((call, self.here.get(call.name)) for call in calls)
        asking = [call.id for call, tool in here if tool is not None and tool.asks(call.arguments, turn)]
        return ToolNames(self.here.keys(), asking, self.functions.keys())

    @property
    def names(self) -> dict[tuple[str, str], str]:
        """The offered name of each tool that runs here, by the label of its server ("" for none) and its own; and of
        each function in a namespace, by `place_of` that and its own."""
        here = {(getattr(tool, "server_label", ""), tool.name): name for name, tool in self.here.items()}
        return here | {(place_of(space), own): name for name, (space, own) in self.namespaced.items()}

    def shapes(self, only: Iterable[str] | None = None, *, here: bool = True) -> list[Offer]:
        """The tools as they are sent; `only` some, or without those that run here."""
        tools = dict(self.functions)
        if here:
            tools |= {name: tool.offered(name) for name, tool in self.here.items()}
        named = tools.keys() if only is None else set(only)
        return [offer for name, offer in tools.items() if name in named]


def offers(declared: Sequence[Mapping[str, Any]], here: Sequence[Tool]) -> Offers:
    """The client's functions among the declared tools, and the tools that run here under names that clash with none.

    Raises:
        InvalidInput: a function has no usable name, or two have the same.
    """
    if len(declared) > MAX_TOOLS:
        raise InvalidInput("tools", f"holds {len(declared)} tools; at most {MAX_TOOLS} are offered")
    functions: dict[str, Offer] = {}
    custom, namespaced = set[str](), dict[str, tuple[str, str]]()
    for where, space, tool in _client_tools(declared):
        own = _name(tool, where)
        name = own if space is None else in_namespace(space, own)
        if name in functions:
            raise InvalidInput(f"{where}.name", f"{name!r} is there twice")
        convert(tool, Function if tool["type"] == "function" else Custom, where)
        functions[name] = (_function if tool["type"] == "function" else _custom)({**tool, "name": name})
        if tool["type"] == "custom":
            custom.add(name)
        if space is not None:
            namespaced[name] = space, own
    if len(functions) > MAX_TOOLS:
        raise InvalidInput("tools", f"has {len(functions)} functions; at most {MAX_TOOLS} are offered")
    return Offers(_named(here, functions), functions, frozenset(custom), namespaced)


def _client_tools(
    declared: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, str | None, Mapping[str, Any]]]:
    """The functions and custom tools, each with its place in the request and its namespace."""
    for i, tool in enumerate(declared):
        if tool.get("type") in ("function", "custom"):
            yield f"tools[{i}]", None, tool
        elif tool.get("type") == "namespace":
            space = _name(tool, f"tools[{i}]")
            inside = tool.get("tools")
            if not isinstance(inside, list):
                raise InvalidInput(f"tools[{i}].tools", "must be a list of functions and custom tools")
            for j, nested in enumerate(inside):
                where = f"tools[{i}].tools[{j}]"
                if not isinstance(nested, dict) or nested.get("type") not in ("function", "custom"):
                    raise InvalidInput(f"{where}.type", "must be function or custom")
                yield where, space, flat(nested)


def _name(tool: Mapping[str, Any], where: str) -> str:
    name = tool.get("name")
    if not isinstance(name, str) or not name or _NOT_IN_NAMES.search(name):
        raise InvalidInput(f"{where}.name", "must be letters, digits, _ and - alone")
    return name


def _named(here: Sequence[Tool], taken: Mapping[str, Offer]) -> dict[str, Tool]:
    named: dict[str, Tool] = {}
    for tool in here:
        base = _NOT_IN_NAMES.sub("_", tool.name)[:48] or "tool"
        name, count = base, 1
        while name in taken or name in named:
            count += 1
            name = f"{base}_{count}"
        named[name] = tool
    return named


def _function(tool: Mapping[str, Any]) -> Offer:
    function = {key: tool[key] for key in ("name", "description", "strict") if tool.get(key) is not None}
    function["parameters"] = tool.get("parameters") or {"type": "object", "properties": {}}
    return {"type": "function", "function": function}


def _custom(tool: Mapping[str, Any]) -> Offer:
    """A tool that takes a text: chat completions have only functions, so it is one with one argument."""
    form = tool.get("format") or {}
    says = [tool.get("description") or "", form.get("definition") or ""]
    parameters = {
        "type": "object",
        "properties": {"input": {"type": "string", "description": "the whole input, as text"}},
        "required": ["input"],
    }
    described = "\n\n".join(part for part in says if part)
    function = {"name": tool["name"], "description": described, "parameters": parameters}
    return {"type": "function", "function": function}


def choice(asked: str | Mapping[str, Any] | None, offered: Offers) -> tuple[Any, list[str] | None]:
    """The `tool_choice` for the model, and the only names it is offered (None: all).

    Raises:
        InvalidInput: it names a tool that is not there.
    """
    if asked is None or isinstance(asked, str):
        if asked not in (None, "auto", "none", "required"):
            raise InvalidInput("tool_choice", "must be auto, none, required, or an object that names a tool")
        return asked, None
    convert(asked, Choice, "tool_choice")
    kind = asked.get("type")
    if kind == "allowed_tools":
        if len(asked.get("tools") or []) > MAX_TOOLS:
            raise InvalidInput("tool_choice.tools", f"must name at most {MAX_TOOLS} tools")
        named = [
            _chosen(tool, offered, f"tool_choice.tools[{i}]")
            for i, tool in enumerate(asked.get("tools") or [])
        ]
        return asked.get("mode") or "auto", [name for names in named for name in names]
    names = _chosen(asked, offered, "tool_choice")
    if len(names) == 1:
        return {"type": "function", "function": {"name": names[0]}}, None
    return "required", names


def _chosen(asked: Mapping[str, Any], offers: Offers, where: str) -> list[str]:
    """The offered names that a choice means."""
    kind, name = asked.get("type"), asked.get("name")
    convert(asked, Choice, where)
    if kind in ("function", "custom"):
        space = asked.get("namespace")
        name_offered = name if space is None else offers.names.get((place_of(str(space)), str(name)))
        names = [name_offered] if name_offered in offers.functions else []
    elif kind == "mcp":
        label = asked.get("server_label")
        names = [
            name_offered
            for name_offered, tool in offers.here.items()
            if getattr(tool, "server_label", None) == label and name in (None, tool.name)
        ]
    else:
        names = [name_offered for name_offered, tool in offers.here.items() if tool.name == kind]
    if not names:
        raise InvalidInput(where, f"names no tool of this request: {name or kind!r}")
    return [str(each) for each in names]
