"""The MCP servers of one response: listed before the first call, called for approved requests, closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from memoranda.config.sections import Responses as Settings
from memoranda.errors import InvalidInput
from memoranda.responses.events import Telling
from memoranda.responses.loop import Loop
from memoranda.responses.steps import ToolCall
from memoranda.responses.tools.base import Tool
from memoranda.responses.tools.mcp import approved, checked, listed, origin
from memoranda.responses.values import Item
from memoranda.store.ids import new_id

MCP = "mcp"
ORIGIN = "_origin"
"""The private key of a tool list for the `origin` digest of the server that it was listed from."""


class Servers:
    """The servers among the tools that a request declares. `tools` are theirs, once they are listed.

    Raises:
        InvalidInput: a declaration is wrong, or names a host that may not be called.
    """

    def __init__(self, declared: Sequence[Mapping[str, Any]], settings: Settings, open_to_all: bool) -> None:
        self._declared = {i: dict(tool) for i, tool in enumerate(declared) if tool.get("type") == MCP}
        self._settings = settings
        self._open_to_all = open_to_all
        self.tools: list[Tool] = []
        self.degraded: set[str] = set()
        """`mcp` if a server did not list its tools: it cannot be reached, or gives no usable answer."""
        labels: set[str] = set()
        for i, tool in self._declared.items():
            label = checked(tool, settings, open_to_all, f"tools[{i}]").server_label
            if label in labels:
                raise InvalidInput(
                    f"tools[{i}].server_label", f"{label!r} is there twice; give each server its own"
                )
            labels.add(label)

    async def __aenter__(self) -> Servers:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for tool in self.tools:
            await tool.close()

    async def list(self, telling: Telling, past: Sequence[Item]) -> None:
        """Lists all servers concurrently; those that were listed before in this conversation are not asked again. A
        list that a client sent, or that came from another server with the same label, is ignored."""
        known = {
            (item["server_label"], item.get(ORIGIN)): item
            for item in past
            if item["type"] == "mcp_list_tools"
        }
        await asyncio.gather(*(self._list(i, tool, known, telling) for i, tool in self._declared.items()))

    async def _list(
        self,
        place: int,
        declared: dict[str, Any],
        known: Mapping[tuple[str, str | None], Item],
        telling: Telling,
    ) -> None:
        origin_digest = origin(declared)
        cached = known.get((declared["server_label"], origin_digest))
        item: Item | None = None
        if cached is None or cached.get("error"):
            item = {"id": new_id("mcpl_"), "type": "mcp_list_tools", "server_label": declared["server_label"]}
            item |= {"tools": [], ORIGIN: origin_digest}
            telling.begin(item)
            telling.stage(item, "in_progress")
        tool_list, tools = await listed(
            declared, cached, self._settings, self._open_to_all, f"tools[{place}]"
        )
        self.tools += tools
        if tool_list.get("error"):
            self.degraded.add(MCP)
        if item is not None:
            # Clients that check what they read take these fields as texts and objects, or left out.
            item["tools"] = [_without_none(tool) for tool in tool_list["tools"]]
            item |= _without_none({"error": tool_list["error"]})
            telling.stage(item, "failed" if tool_list["error"] else "completed")
            telling.end(item)

    async def answer(self, loop: Loop, items: Sequence[Item]) -> None:
        """Makes the calls that have been approved."""
        for id_, (request, approve) in approved(items).items():
            if approve:
                call = ToolCall(new_id("call_"), request["name"], request["arguments"])
                await loop.run_calls([(call, self._tool(request))], id_)

    def _tool(self, request: Item) -> Tool | None:
        for tool in self.tools:
            label = getattr(tool, "server_label", None)
            if label == request["server_label"] and tool.name == request["name"]:
                return tool
        return None


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
