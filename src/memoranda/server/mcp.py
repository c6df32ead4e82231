"""`/mcp`: authentication and origin checks, before the protocol answers."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memoranda.app.memoranda import Memoranda
from memoranda.errors import Forbidden, Unauthorized
from memoranda.extras import needed
from memoranda.mcp.endpoint import PATH, EndpointQuery
from memoranda.server.auth import Guard
from memoranda.server.errors import JSON, Refused, error_response
from memoranda.server.inputs import from_query
from memoranda.server.route import Live
from memoranda.server.sse import stopped
from memoranda.store.access import sees_all
from memoranda.types import Subject

if TYPE_CHECKING:
    from memoranda.mcp.http import Endpoint

METADATA = f"/.well-known/oauth-protected-resource{PATH}"


class Mcp:
    """The endpoint, as an ASGI application; the product's own is created at the first request, if none is given."""

    def __init__(
        self, memoranda: Memoranda, guard: Guard, live: Live, endpoint: Endpoint | None = None
    ) -> None:
        self._memoranda = memoranda
        self._guard = guard
        self._live = live
        self._config = memoranda.config
        self._methods = ["POST", "GET", "DELETE"] if self._config.mcp.sessions else ["POST"]
        self._endpoint = endpoint
        self._app = CORSMiddleware(
            self._answer,
            allow_origins=self._config.mcp.allowed_origins,
            allow_methods=self._methods,
            allow_headers=["*"],
            expose_headers=["WWW-Authenticate", "Mcp-Session-Id"],
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["memoranda"].route = PATH
        await self._app(scope, receive, send)

    async def close(self) -> None:
        """End the sessions of clients."""
        if self._endpoint is not None:
            await self._endpoint.close()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        state = scope["memoranda"]
        try:
            if request.method not in self._methods:
                allowed = ", ".join(self._methods)
                raise Refused(
                    405, "method_not_allowed", f"{request.method} is not for this path; use {allowed}"
                )
            async with self._guard.slowed(request):
                subject, place = self._caller(request)
            state.tenant, state.key = subject.tenant_id, subject.key
            endpoint = await self._opened()
        except Exception as exc:  # the caller gets an envelope, the log gets the traceback
            await self._refused(request, exc)(scope, receive, send)
            return
        from memoranda.mcp.caller import Caller
        from memoranda.mcp.http import CALLER

        caller = Caller(self._memoranda.core, subject, place.agent)
        scope[CALLER] = (caller, place.tools or self._config.mcp.tools)
        # the parser leaves white space behind values, which the protocol compares with the body
        scope["headers"] = [(name, value.strip()) for name, value in scope["headers"]]
        if request.method == "GET":
            await self._listening(endpoint, scope, receive, send)
        else:
            await endpoint(scope, receive, send)

    async def _listening(self, endpoint: Endpoint, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with the stream of a session, which ends with the session, the client or this server."""
        stream = asyncio.ensure_future(endpoint(scope, receive, send))
        ending = asyncio.create_task(self._live.ending.wait())
        try:
            await asyncio.wait({stream, ending}, return_when=asyncio.FIRST_COMPLETED)
            cut = not stream.done()
            if not cut:
                stream.result()
        finally:
            await stopped(stream, ending)
        if cut:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _caller(self, request: Request) -> tuple[Subject, EndpointQuery]:
        subject = self._guard.subject(request, "read")
        origin = request.headers.get("origin")
        if origin is not None and not self._allowed(origin, request):
            says = f"pages of {origin} may not call this server; add it to mcp.allowed_origins"
            raise Refused(403, "origin_not_allowed", says)
        place = from_query(request.query_params, EndpointQuery)
        return acting_for(subject, place.user), place

    def _allowed(self, origin: str, request: Request) -> bool:
        own = urlsplit(origin).netloc == request.headers.get("host")
        return own or origin in self._config.mcp.allowed_origins

    async def _opened(self) -> Endpoint:
        """The endpoint; the library of the protocol takes two seconds to import, so that the first client waits."""
        if self._endpoint is None:
            try:
                module = await asyncio.to_thread(import_module, "memoranda.mcp.http")
            except ModuleNotFoundError as exc:
                raise Refused(501, "not_installed", f"{PATH} {needed(exc) or exc}") from exc
            self._endpoint = module.create_endpoint(
                self._config.server.max_body_bytes, sessions=self._config.mcp.sessions
            )
        return self._endpoint

    def _refused(self, request: Request, exc: Exception) -> Response:
        response = error_response(exc)
        if isinstance(exc, Unauthorized):
            url = f"{base_url(request, self._config.server.public_url)}{METADATA}"
            response.headers["www-authenticate"] = f'Bearer resource_metadata="{url}"'
        if response.status_code == 405:
            response.headers["allow"] = ", ".join(self._methods)
        return response


class Metadata:
    """What protects the endpoint (RFC 9728), as an ASGI application: a bearer key in the header."""

    def __init__(self, public_url: str | None) -> None:
        self._public_url = public_url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["memoranda"].route = METADATA
        base = base_url(Request(scope), self._public_url)
        document = {
            "resource": f"{base}{PATH}",
            "resource_name": "Memoranda",
            "bearer_methods_supported": ["header"],
        }
        await Response(msgspec.json.encode(document), media_type=JSON)(scope, receive, send)


def base_url(request: Request, public_url: str | None) -> str:
    """Return the address of this server as its clients know it, without a slash at its end."""
    return (public_url or str(request.base_url)).rstrip("/")


def acting_for(subject: Subject, user: str | None) -> Subject:
    """Return the subject, or the user that it acts for.

    Raises:
        Forbidden: the key acts for another user alone.
    """
    if user is None or user == subject.user_id:
        return subject
    if not sees_all(subject):
        raise Forbidden(f"user: this key acts for {subject.user_id!r} alone; leave it out")
    return replace(subject, user_id=user, role="service")
