"""The protocol: requests of clients, answered for the caller of each."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import mcp_types as wire
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from memoranda.mcp import prompts, resources
from memoranda.mcp.caller import Caller
from memoranda.mcp.sets import SETS

NAME = "memoranda"
INSTRUCTIONS = (
    "Memory and documents of this user that outlast the conversation. Recall before you answer what may depend on"
    " earlier conversations; remember what will matter later; cite documents that you use."
)
Asking = Callable[[Any], tuple[Caller, str]]
"""Returns the caller of a request, from its transport's own request, and the set of tools that it is offered."""


def create_server(asking: Asking) -> Server[Any]:
    """Create the server of tools, resources and prompts."""

    async def list_tools(ctx: Any, params: Any) -> wire.ListToolsResult:
        _, offered = asking(ctx.request)
        return wire.ListToolsResult(tools=[tool.definition for tool in SETS[offered].values()])

    async def call_tool(ctx: Any, params: wire.CallToolRequestParams) -> wire.CallToolResult:
        caller, offered = asking(ctx.request)
        tool = SETS[offered].get(params.name)
        if tool is None:
            known = ", ".join(SETS[offered])
            raise MCPError(wire.INVALID_PARAMS, f"no tool {params.name!r} is offered here; use {known}")
        return await tool.call(caller, params.arguments)

    async def list_resources(ctx: Any, params: Any) -> wire.ListResourcesResult:
        return wire.ListResourcesResult(resources=resources.RESOURCES)

    async def list_templates(ctx: Any, params: Any) -> wire.ListResourceTemplatesResult:
        return wire.ListResourceTemplatesResult(resource_templates=resources.TEMPLATES)

    async def read_resource(ctx: Any, params: wire.ReadResourceRequestParams) -> wire.ReadResourceResult:
        caller, _ = asking(ctx.request)
        text = await resources.read(caller, params.uri)
        content = wire.TextResourceContents(uri=params.uri, mime_type=resources.MARKDOWN, text=text)
        return wire.ReadResourceResult(contents=[content], cache_scope="private")

    async def list_prompts(ctx: Any, params: Any) -> wire.ListPromptsResult:
        return wire.ListPromptsResult(prompts=prompts.PROMPTS)

    async def get_prompt(ctx: Any, params: wire.GetPromptRequestParams) -> wire.GetPromptResult:
        caller, _ = asking(ctx.request)
        return await prompts.prompt(caller, params.name, params.arguments)

    return Server(
        NAME,
        version=version("memoranda"),
        title="Memoranda",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
