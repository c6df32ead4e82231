"""The tools that the conformance suite calls."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import wave
from collections.abc import Callable
from typing import Any

import mcp_types as wire
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from PIL import Image

Context = ServerRequestContext[Any, Any]
Outcome = wire.CallToolResult | wire.InputRequiredResult
Request = wire.ElicitRequest | wire.CreateMessageRequest | wire.ListRootsRequest
Requests = dict[str, Request]
PAUSE = 0.05
"""Seconds after each notification of a tool."""


def text(says: str) -> wire.TextContent:
    """A text, as content of a tool or a prompt."""
    return wire.TextContent(text=says)


def embedded(uri: str, says: str, mime_type: str = "text/plain") -> wire.EmbeddedResource:
    """A resource, as content of a tool or a prompt."""
    contents = wire.TextResourceContents(uri=uri, mime_type=mime_type, text=says)
    return wire.EmbeddedResource(resource=contents)


def result(says: str, *, is_error: bool = False) -> wire.CallToolResult:
    """A text, as the result of a tool."""
    return wire.CallToolResult(content=[text(says)], is_error=is_error)


def png() -> str:
    """An image of one pixel, in base64."""
    file = io.BytesIO()
    Image.new("RGB", (1, 1), "teal").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()


def _wav() -> str:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 1, 8000, 0, "NONE", ""))
        sound.writeframes(bytes(8))
    return base64.b64encode(file.getvalue()).decode()


IMAGE = wire.ImageContent(data=png(), mime_type="image/png")
AUDIO = wire.AudioContent(data=_wav(), mime_type="audio/wav")
DATA = embedded("test://mixed-content-resource", json.dumps({"kinds": 3}), "application/json")
CONTENTS: dict[str, list[wire.ContentBlock]] = {
    "test_simple_text": [text("A text.")],
    "test_image_content": [IMAGE],
    "test_audio_content": [AUDIO],
    "test_embedded_resource": [embedded("test://embedded-resource", "A text in a resource.")],
    "test_multiple_content_types": [text("A text, an image and a resource."), IMAGE, DATA],
}
"""Tools that only return contents."""


def form(message: str, **properties: dict[str, Any]) -> wire.ElicitRequest:
    """A request for a form that the user fills in."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return wire.ElicitRequest(params=wire.ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str) -> wire.CreateMessageRequest:
    """A request for an answer of the client's language model."""
    message = wire.SamplingMessage(role="user", content=text(prompt))
    return wire.CreateMessageRequest(
        params=wire.CreateMessageRequestParams(messages=[message], max_tokens=100)
    )


STRING, BOOLEAN = {"type": "string"}, {"type": "boolean"}
NAME, CONFIRM = form("Who are you?", name=STRING), form("Do you agree?", ok=BOOLEAN)
COLOR = form("Which color do you like?", color=STRING)
CAPITAL, ROOTS = sample("Which city is the capital of France?"), wire.ListRootsRequest()
INPUT = "test_input_required_result_"
ROUNDS: dict[str, list[Requests]] = {
    f"{INPUT}elicitation": [{"user_name": NAME}],
    f"{INPUT}sampling": [{"capital_question": CAPITAL}],
    f"{INPUT}list_roots": [{"client_roots": ROOTS}],
    f"{INPUT}request_state": [{"confirm": CONFIRM}],
    f"{INPUT}tampered_state": [{"confirm": CONFIRM}],
    f"{INPUT}multiple_inputs": [{"user_name": NAME, "greeting": CAPITAL, "client_roots": ROOTS}],
    f"{INPUT}multi_round": [{"step1": NAME}, {"step2": COLOR}],
    "test_streaming_elicitation": [{"confirm": CONFIRM}],
}
"""Tools of 2026-07-28 that need answers of the client: what they ask for in each round."""
OPTIONS = [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]
SELECTIONS: dict[str, dict[str, Any]] = {
    "untitledSingle": {"type": "string", "enum": ["a", "b"]},
    "titledSingle": {"type": "string", "oneOf": OPTIONS},
    "legacyEnum": {"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": OPTIONS}},
}
DEFAULTS: dict[str, dict[str, Any]] = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
SENT: dict[str, Callable[[dict[str, Any]], Request]] = {
    "test_sampling": lambda given: sample(given["prompt"]),
    "test_elicitation": lambda given: form(given["message"], username=STRING, email=STRING),
    "test_elicitation_sep1034_defaults": lambda given: form("Is this right?", **DEFAULTS),
    "test_elicitation_sep1330_enums": lambda given: form("What do you choose?", **SELECTIONS),
}
"""Tools of 2025-11-25 that send a request to the client and wait for its answer."""
ARGUMENTS = {"test_sampling": {"prompt": STRING}, "test_elicitation": {"message": STRING}}


def input_required(
    rounds: list[Requests], params: wire.CallToolRequestParams | wire.GetPromptRequestParams
) -> wire.InputRequiredResult | None:
    """Return the requests that the client is to answer next, or None. The state is the number of the last round."""
    number = int(params.request_state or 0)
    if rounds[number].keys() <= (params.input_responses or {}).keys():
        number += 1
    if number == len(rounds):
        return None
    return wire.InputRequiredResult(input_requests=dict(rounds[number]), request_state=str(number))


async def _fail(ctx: Context, params: Any) -> Outcome:
    return result("This tool always fails.", is_error=True)


async def _log(ctx: Context, params: Any) -> Outcome:
    for says in ("begun", "half done", "done"):
        await ctx.session.send_log_message("info", says, related_request_id=ctx.request_id)
        await asyncio.sleep(PAUSE)
    return result("Logged.")


async def _progress(ctx: Context, params: Any) -> Outcome:
    for percent in (0, 50, 100):
        await ctx.session.report_progress(percent, 100)
        await asyncio.sleep(PAUSE)
    return result("Done.")


async def _need_sampling(ctx: Context, params: Any) -> Outcome:
    if not ctx.session.check_client_capability(wire.ClientCapabilities(sampling=wire.SamplingCapability())):
        data: dict[str, Any] = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(wire.MISSING_REQUIRED_CLIENT_CAPABILITY, "the client does not declare sampling", data)
    return result("The client can sample.")


async def _ask_what_is_declared(ctx: Context, params: wire.CallToolRequestParams) -> Outcome:
    by_capability: dict[str, Requests] = {"sampling": {"capital": CAPITAL}, "elicitation": {"user": NAME}}
    requests: Requests = {}
    for capability, needed in by_capability.items():
        if ctx.session.check_client_capability(wire.ClientCapabilities.model_validate({capability: {}})):
            requests |= needed
    return input_required([requests], params) or result("Nothing is left to ask.")


OTHERS = {
    "test_error_handling": _fail,
    "test_tool_with_logging": _log,
    "test_logging_tool": _log,
    "test_tool_with_progress": _progress,
    "test_missing_capability": _need_sampling,
    f"{INPUT}capabilities": _ask_what_is_declared,
}
CHANGES: dict[str, ServerEvent] = {
    "test_trigger_tool_change": ToolsListChanged(),
    "test_trigger_prompt_change": PromptsListChanged(),
}
"""Tools that tell listeners of a change."""
NAMES = [*CONTENTS, *ROUNDS, *SENT, *OTHERS, *CHANGES]


async def list_tools(ctx: Context, params: Any) -> wire.ListToolsResult:
    """Return all tools, always in the same order."""
    tools = []
    for name in NAMES:
        schema = {"type": "object", "properties": ARGUMENTS.get(name, {})}
        tools.append(wire.Tool(name=name, description=f"The suite calls {name}.", input_schema=schema))
    return wire.ListToolsResult(tools=tools)


async def call_tool(
    bus: InMemorySubscriptionBus, ctx: Context, params: wire.CallToolRequestParams
) -> Outcome:
    """Return the result of a tool, or what it asks the client for.

    Raises:
        MCPError: there is no such tool, or the client cannot do what it needs.
    """
    if params.name in CONTENTS:
        return wire.CallToolResult(content=CONTENTS[params.name])
    if params.name in ROUNDS:
        return input_required(ROUNDS[params.name], params) or result(f"state-ok: {params.input_responses}")
    if params.name in SENT:
        return await _send(ctx, SENT[params.name](params.arguments or {}))
    if params.name in OTHERS:
        return await OTHERS[params.name](ctx, params)
    if params.name in CHANGES:
        await bus.publish(CHANGES[params.name])
        return result("Listeners are told.")
    raise MCPError(wire.INVALID_PARAMS, f"there is no tool {params.name!r}")


async def _send(ctx: Context, request: Any) -> Outcome:
    sampling = isinstance(request, wire.CreateMessageRequest)
    answer: Any = wire.CreateMessageResult if sampling else wire.ElicitResult
    of_this = ServerMessageMetadata(related_request_id=ctx.request_id)
    return result(f"The client says: {await ctx.session.send_request(request, answer, metadata=of_this)}")
