"""A server with the tools, resources and prompts that the conformance suite uses, behind the product's own mount."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import mcp_types as wire
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from starlette.routing import Route

from memoranda.app.memoranda import Memoranda
from memoranda.config import load
from memoranda.mcp.endpoint import PATH
from memoranda.mcp.http import Endpoint
from memoranda.server.app import create_app
from memoranda.server.mcp import Mcp
from memoranda.server.serve import listening, url_of
from support.conformance_tools import (
    IMAGE,
    INPUT,
    STRING,
    Context,
    Requests,
    call_tool,
    embedded,
    form,
    input_required,
    list_tools,
    png,
    text,
)

STATIC, BINARY, WATCHED = "test://static-text", "test://static-binary", "test://watched-resource"
CONTENTS: dict[str, wire.TextResourceContents | wire.BlobResourceContents] = {
    STATIC: wire.TextResourceContents(uri=STATIC, mime_type="text/plain", text="A text."),
    BINARY: wire.BlobResourceContents(uri=BINARY, mime_type="image/png", blob=png()),
    WATCHED: wire.TextResourceContents(uri=WATCHED, mime_type="text/plain", text="A text."),
}
TEMPLATE = "test://template/{id}/data"
PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    f"{INPUT}prompt": [],
}
"""Prompts, with the names of their arguments."""
TOPIC: Requests = {"user_context": form("What is it about?", context=STRING)}


async def _list_resources(ctx: Context, params: Any) -> wire.ListResourcesResult:
    resources = [wire.Resource(name=uri.removeprefix("test://"), uri=uri) for uri in CONTENTS]
    return wire.ListResourcesResult(resources=resources)


async def _list_templates(ctx: Context, params: Any) -> wire.ListResourceTemplatesResult:
    templates = [wire.ResourceTemplate(name="data", uri_template=TEMPLATE, mime_type="application/json")]
    return wire.ListResourceTemplatesResult(resource_templates=templates)


async def _read_resource(ctx: Context, params: wire.ReadResourceRequestParams) -> wire.ReadResourceResult:
    before, after = TEMPLATE.split("{id}")
    if params.uri in CONTENTS:
        return wire.ReadResourceResult(contents=[CONTENTS[params.uri]])
    if params.uri.startswith(before) and params.uri.endswith(after):
        data = json.dumps({"id": params.uri.removeprefix(before).removesuffix(after)})
        contents = wire.TextResourceContents(uri=params.uri, mime_type="application/json", text=data)
        return wire.ReadResourceResult(contents=[contents])
    raise MCPError(wire.INVALID_PARAMS, f"there is no resource {params.uri!r}", {"uri": params.uri})


async def _list_prompts(ctx: Context, params: Any) -> wire.ListPromptsResult:
    prompts = []
    for name, names in PROMPTS.items():
        arguments = [wire.PromptArgument(name=argument, required=True) for argument in names]
        prompts.append(wire.Prompt(name=name, description=f"The suite gets {name}.", arguments=arguments))
    return wire.ListPromptsResult(prompts=prompts)


async def _get_prompt(
    ctx: Context, params: wire.GetPromptRequestParams
) -> wire.GetPromptResult | wire.InputRequiredResult:
    given = params.arguments or {}
    if params.name not in PROMPTS or not set(PROMPTS[params.name]) <= given.keys():
        raise MCPError(wire.INVALID_PARAMS, f"there is no prompt {params.name!r} with these arguments")
    if params.name == f"{INPUT}prompt" and (missing := input_required([TOPIC], params)):
        return missing
    contents: list[wire.ContentBlock] = [text(f"A prompt with {given}.")]
    if params.name == "test_prompt_with_embedded_resource":
        contents.insert(0, embedded(given["resourceUri"], "A text in a resource."))
    if params.name == "test_prompt_with_image":
        contents.insert(0, IMAGE)
    messages = [wire.PromptMessage(role="user", content=content) for content in contents]
    return wire.GetPromptResult(messages=messages)


async def _complete(ctx: Context, params: wire.CompleteRequestParams) -> wire.CompleteResult:
    values = [word for word in ("task", "test", "text") if word.startswith(params.argument.value)]
    return wire.CompleteResult(completion=wire.Completion(values=values, total=len(values), has_more=False))


async def _accept(ctx: Context, params: Any) -> wire.EmptyResult:
    return wire.EmptyResult()


def create_server() -> Server[Any]:
    """Create the server of the fixtures."""
    bus = InMemorySubscriptionBus()
    server: Server[Any] = Server(
        "conformance",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=partial(call_tool, bus),
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        on_subscribe_resource=_accept,
        on_unsubscribe_resource=_accept,
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
        on_completion=_complete,
    )
    server.add_request_handler("logging/setLevel", wire.SetLevelRequestParams, _accept)
    server.middleware.append(
        RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=server.name)
    )
    return server


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[str]:
    """The URL of the mount, of a product on a folder, for as long as this is open."""
    overrides = {"data": str(folder), "embedder": {"url": "hash:64"}, "mcp": {"sessions": True}}
    config = load(env={}, overrides=overrides)
    with listening("127.0.0.1", 0) as listener:
        async with await Memoranda.open(config=config) as memoranda:
            app = create_app(memoranda)
            answers = app.state.answers
            endpoint = Endpoint(create_server(), config.server.max_body_bytes, sessions=True)
            mount = Mcp(memoranda, answers.guard, answers.state.live, endpoint)
            app.router.routes.insert(0, Route(PATH, mount))
            server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None, access_log=False))
            ended = asyncio.create_task(server.serve(sockets=[listener]))
            try:
                yield f"{url_of(listener)}{PATH}"
            finally:
                server.should_exit = True
                await answers.state.live.end(0)
                await ended
                await mount.close()
