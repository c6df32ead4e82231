"""The protocol over HTTP (streamable HTTP): without sessions, so that any server answers any request, or with them."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER, check_accept_headers
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from memoranda.mcp.caller import Caller
from memoranda.mcp.server import create_server

CALLER = "memoranda.mcp"
"""The key of a request's scope for its caller and set of tools."""


def _asking(request: Any) -> tuple[Caller, str]:
    value: tuple[Caller, str] = request.scope[CALLER]
    return value


class Endpoint:
    """Answers requests with a server, each for the caller in its scope.

    With `sessions`, a client that reads event streams (`Accept`) is answered in a session, which can notify and ask
    it. Sessions are in the memory of this process. They end with the client, after half an hour without a request, or
    with `close`. Any other client is answered with JSON, without a session.
    """

    def __init__(self, server: Server[Any], max_body_bytes: int, *, sessions: bool = False) -> None:
        self._server = server
        self._max_body_bytes = max_body_bytes
        self._sessions = Sessions(self._manager(stateless=False)) if sessions else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._sessions is not None and _reads_streams(Request(scope)):
            await self._sessions(scope, receive, send)
            return
        manager = self._manager(stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """End the sessions."""
        if self._sessions is not None:
            await self._sessions.close()

    def _manager(self, *, stateless: bool) -> StreamableHTTPSessionManager:
        return StreamableHTTPSessionManager(
            self._server,
            json_response=stateless,
            stateless=stateless,
            max_request_body_size=self._max_body_bytes,
        )


def _reads_streams(request: Request) -> bool:
    """Return True if the request is of a session, or may begin one."""
    _, streams = check_accept_headers(request)
    return streams or request.method != "POST" or MCP_SESSION_ID_HEADER in request.headers


class Sessions:
    """The sessions of this process; each belongs to the user of the tenant that began it, and no other may name it."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        self._manager = manager
        self._task: asyncio.Task[None] | None = None
        self._running = asyncio.Event()
        self._ending = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        await self._running.wait()
        subject = scope[CALLER][0].subject
        owner = AccessToken(token="", client_id=subject.tenant_id, subject=subject.user_id, scopes=[])
        scope["user"] = AuthenticatedUser(owner)
        await self._manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """End all sessions, with what is at work in them."""
        if self._task is not None:
            self._ending.set()
            await self._task

    async def _run(self) -> None:
        async with self._manager.run():
            self._running.set()
            await self._ending.wait()


def create_endpoint(max_body_bytes: int, *, sessions: bool) -> Endpoint:
    """Create the endpoint of the product's tools, resources and prompts."""
    return Endpoint(create_server(_asking), max_body_bytes, sessions=sessions)
