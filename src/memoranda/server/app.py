"""The HTTP application: each request is observed, authenticated, read, and answered within its time limit."""

from __future__ import annotations

import asyncio
import gzip
import logging
import time
from collections.abc import Awaitable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import cache, partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send

from memoranda.app.memoranda import Memoranda
from memoranda.app.workspace import Workspace
from memoranda.mcp.endpoint import PATH as MCP
from memoranda.server.auth import Guard
from memoranda.server.console import Console
from memoranda.server.errors import ClientGone, Refused, error_response, unknown_route
from memoranda.server.inputs import accepts_gzip, from_json, from_query, ignored_fields, ignored_parameters
from memoranda.server.load import Bodies, Body, Line, read_body
from memoranda.server.mcp import METADATA, Mcp, Metadata
from memoranda.server.observe import Observed
from memoranda.server.openapi import document
from memoranda.server.route import MULTIPART, Call, Live, Route, ServerState
from memoranda.server.routes import ROUTES
from memoranda.server.sockets import PATH as SOCKET
from memoranda.server.sockets import Sockets
from memoranda.server.sse import while_connected
from memoranda.server.telemetry import Telemetry
from memoranda.types import Subject

log = logging.getLogger("memoranda.http")
OWN_NAMES = (
    "{id}",
    "{model}",
    "{memory_id}",
    "{user_id}",
    "{agent_name}",
    "{app_id}",
    "{run_id}",
    "{event_id}",
)
"""Path parameters whose ids the callers choose."""
LARGE = 16 << 10
"""Bytes beyond which an answer is compressed, of routes that compress."""
_encoder = msgspec.json.Encoder()


class Answers:
    """Answers requests over one open library, and tracks what outlives its request."""

    def __init__(self, memoranda: Memoranda) -> None:
        self.memoranda = memoranda
        self.server = memoranda.config.server
        self.guard = Guard(memoranda.config)
        telemetry = Telemetry(memoranda.core, memoranda.engine.model)
        openapi = cache(partial(document, ROUTES, self.server.public_url, _limits(memoranda)))
        self.state = ServerState(memoranda, telemetry, openapi, Live())
        self.mcp = Mcp(memoranda, self.guard, self.state.live)
        self._line = Line()
        self.bodies = Bodies(self.server.max_buffered_bytes)
        self._writes: set[asyncio.Task[Any]] = set()

    async def answer(self, route: Route, request: Request) -> Response:
        """The answer to a request, its error envelope included."""
        request.scope["memoranda"].route = route.path
        try:
            subject = await self._subject(route, request)
            with self.bodies.body() as buffered:
                began = time.perf_counter()
                workspace = self.memoranda.as_subject(subject)
                call = await self._read(route, request, workspace, buffered)
                read = time.perf_counter()
                async with self._turn(route):
                    result = await self._in_time(route, call)
                    handled = time.perf_counter()
                    response = (
                        result if isinstance(result, Response) else await _encoded(route, result, request)
                    )
                self._stages(began, read, handled)
        except ClientGone:
            return Response(status_code=499)
        except Exception as exc:  # the caller gets an envelope, the log gets the traceback
            return error_response(exc, route.api.failure)
        return response

    async def _subject(self, route: Route, request: Request) -> Subject:
        """The subject of a request, named in its line of the log."""
        seen = request.scope["memoranda"]
        async with self.guard.slowed(request):
            subject = self.guard.known(request, route.needs, route.api)
        if route.needs != "open":
            seen.tenant, seen.key = subject.tenant_id, subject.key
        self.guard.check(subject, route.needs)
        return subject

    def _turn(self, route: Route) -> AbstractAsyncContextManager[None]:
        """A turn in the line; long requests mostly wait for others, and those for monitoring never wait."""
        return nullcontext() if route.long or route.needs == "open" else self._line.turn()

    async def _read(
        self, route: Route, request: Request, workspace: Workspace, buffered: Body
    ) -> Call[Any, Any]:
        body = await self._body(route, request, buffered)
        query = None if route.query is None else from_query(request.query_params, route.query)
        if route.api.name:
            names = ignored_parameters(request.query_params, route.query)
            self.state.telemetry.ignored(route.api.name, names)
        return Call(self.state, workspace, body, query, request.path_params, request)

    async def _body(self, route: Route, request: Request, buffered: Body) -> Any:
        """The body as the route declares it; None without a body, or if the handler reads a form itself."""
        if route.form is not None:
            if is_form(request):
                return None
            if route.body is None:
                says = f"send {MULTIPART} with the file in `{route.form.file}`"
                raise Refused(415, "unsupported_media_type", says)
        if route.body is None:
            return None
        server = self.server
        body = await read_body(
            request.receive,
            request.headers,
            server.max_body_bytes,
            server.request_timeout,
            long=route.long,
            body=buffered,
        )
        if route.body is bytes:
            return body
        value = from_json(body, route.body)
        if route.api.name:
            self.state.telemetry.ignored(route.api.name, ignored_fields(body, value))
        return value

    async def _in_time(self, route: Route, call: Call[Any, Any]) -> Any:
        """Cancel a read that exceeds the time limit, and a long one whose client goes. A write continues, and the
        caller is informed."""
        limit = None if route.long else self.server.request_timeout
        if route.writes:
            return await self._write(route.handler(call), limit)
        try:
            async with asyncio.timeout(limit):
                if route.long and route.form is None:
                    return await while_connected(route.handler(call), call.request.receive)
                return await route.handler(call)
        except TimeoutError as exc:
            raise Refused(504, "timeout", f"no answer within {limit:g} seconds; ask for less") from exc

    async def _write(self, work: Awaitable[Any], limit: float | None) -> Any:
        assert isinstance(work, Coroutine)
        task = asyncio.create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._ended)
        done, _ = await asyncio.wait({task}, timeout=limit)
        if not done:
            says = f"still at work after {limit:g} seconds; it goes on, and sending it again changes nothing"
            raise Refused(504, "timeout", says)
        return task.result()

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._writes.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.debug("a write ended with %s", type(task.exception()).__name__)

    async def drain(self) -> None:
        """Wait for the writes that are still at work, and end what clients of MCP hold."""
        await self.mcp.close()
        while self._writes:
            await asyncio.wait(set(self._writes))

    def _stages(self, began: float, read: float, handled: float) -> None:
        seconds = self.state.telemetry.stage_seconds
        seconds.labels("receive").observe(read - began)
        seconds.labels("handle").observe(handled - read)
        seconds.labels("encode").observe(time.perf_counter() - handled)


def _limits(memoranda: Memoranda) -> dict[str, int | str]:
    """The configured limits that the OpenAPI document shows, by their keys."""
    limits = msgspec.structs.asdict(memoranda.config.limits)
    dimension = memoranda.core.embedder.dim
    return {f"limits.{name}": most for name, most in limits.items()} | {
        "embedder.dimension": dimension,
        "embedder.base64": -(-4 * dimension // 3) * 4,
        "embedder.alphabet": f"^[A-Za-z0-9+/]+={{{-4 * dimension % 3}}}$",
    }


def is_form(request: Request) -> bool:
    """Return True if the body is multipart."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == MULTIPART


async def _encoded(route: Route, result: Any, request: Request) -> Response:
    body = _encoder.encode(result)
    if not route.compresses:
        return Response(body, media_type=route.media)
    headers = {"vary": "accept-encoding"}
    if len(body) > LARGE and accepts_gzip(request.headers):
        body = await asyncio.to_thread(gzip.compress, body, 1, mtime=0)
        headers["content-encoding"] = "gzip"
    return Response(body, headers=headers, media_type=route.media)


class Endpoint:
    """One path: the routes on it by method, as an ASGI application."""

    def __init__(self, answers: Answers, routes: dict[str, Route]) -> None:
        self.answers = answers
        self.routes = routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        route = self.routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            allowed = ", ".join(self.routes)
            says = f"{scope['method']} is not for this path; use {allowed}"
            response = error_response(Refused(405, "method_not_allowed", says))
            response.headers["allow"] = allowed
        else:
            response = await self.answers.answer(route, request)
        await response(scope, receive, send)


def create_app(memoranda: Memoranda) -> Starlette:
    """The HTTP server over an open library; `app.state.answers.drain()` waits for what it still writes.

    Raises:
        ConfigError: the server would be open to other machines without a key.
    """
    answers = Answers(memoranda)
    by_path: dict[str, dict[str, Route]] = {}
    for route in sorted(ROUTES, key=lambda route: route.path.endswith("}")):
        by_path.setdefault(route.path, {})[route.method] = route
    console = Console(answers.guard, answers.server) if memoranda.config.console.enabled else None
    app = Starlette(
        routes=[
            *(StarletteRoute(_pattern(path), Endpoint(answers, routes)) for path, routes in by_path.items()),
            WebSocketRoute(SOCKET, Sockets(answers.state, answers.guard)),
            StarletteRoute(MCP, answers.mcp),
            StarletteRoute(METADATA, Metadata(answers.server.public_url)),
            *(console.routes() if console is not None else ()),
        ],
        middleware=[Middleware(Observed, telemetry=answers.state.telemetry)],
        exception_handlers={404: unknown_route},
    )
    app.router.redirect_slashes = False
    app.state.answers = answers
    return app


def _pattern(path: str) -> str:
    """Starlette's pattern for a path; an id that its owner chose may hold slashes."""
    for name in OWN_NAMES:
        path = path.replace(name, f"{name[:-1]}:path}}")
    return path
