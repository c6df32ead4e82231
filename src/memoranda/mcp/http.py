"""The protocol over HTTP (streamable HTTP), without sessions: any server answers any request."""

from __future__ import annotations

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from memoranda.mcp.caller import Caller
from memoranda.mcp.server import create_server

CALLER = "memoranda.mcp"
"""The key of a request's scope for its caller and set of tools."""


def _asking(request: Any) -> tuple[Caller, str]:
    value: tuple[Caller, str] = request.scope[CALLER]
    return value


class Endpoint:
    """Answers POST requests with a server, each for the caller in its scope."""

    def __init__(self, server: Server[Any], max_body_bytes: int) -> None:
        self._server = server
        self._max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        manager = StreamableHTTPSessionManager(
            self._server, json_response=True, stateless=True, max_request_body_size=self._max_body_bytes
        )
        async with manager.run():
            await manager.handle_request(scope, receive, send)


def create_endpoint(max_body_bytes: int) -> Endpoint:
    """Create the endpoint of the product's tools, resources and prompts."""
    return Endpoint(create_server(_asking), max_body_bytes)
