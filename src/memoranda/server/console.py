"""`/console`: the shell and the files of the web console, and its login. Everything else it asks of the public API."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated

import msgspec
from msgspec import Meta
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route as StarletteRoute
from starlette.types import Receive, Scope, Send

from memoranda.config.agent_sections import ServerKey
from memoranda.config.data_sections import Server
from memoranda.errors import Unauthorized
from memoranda.server.auth import Guard
from memoranda.server.console_assets import Asset, assets
from memoranda.server.console_session import COOKIE, SECONDS, csrf_token, end_of, new_session
from memoranda.server.errors import JSON, Refused, error_response
from memoranda.server.inputs import accepts_gzip, from_json
from memoranda.server.load import read_body

PATH = "/console"
MOST_BYTES = 16 << 10
"""Bytes of a login."""
SECURITY = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Headers of every answer here."""
FOREVER = "public, max-age=31536000, immutable"
ANEW = "no-cache"
log = logging.getLogger("memoranda.http")


class Login(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The key of the user who signs in."""

    key: Annotated[str, Meta(min_length=1, max_length=4_096)]


class Session(msgspec.Struct, kw_only=True, tag_field="object", tag="console.session"):
    """Who uses the console. `login` is false on a server without keys; `csrf` is what requests that are not GET carry
    in `X-Memoranda-CSRF`."""

    login: bool
    signed_in: bool
    name: str | None = None
    tenant: str | None = None
    user: str | None = None
    role: str | None = None
    csrf: str | None = None
    ends_at: datetime | None = None


Answer = Callable[[Request], Awaitable[Response]]


class Console:
    """The answers of the console's own addresses."""

    def __init__(self, guard: Guard, server: Server) -> None:
        self._guard = guard
        self._server = server

    def routes(self) -> list[StarletteRoute]:
        """Return its addresses; every one that is nothing else is a view, and answers with the shell."""
        table: list[tuple[str, str, Answer]] = [
            ("GET", f"{PATH}/assets/{{version}}/{{path:path}}", self.asset),
            ("GET", f"{PATH}/session", self.session),
            ("POST", f"{PATH}/login", self.log_in),
            ("POST", f"{PATH}/logout", self.log_out),
            ("GET", "/", self.home),
            ("GET", PATH, self.shell),
            ("GET", f"{PATH}/{{path:path}}", self.shell),
        ]
        return [StarletteRoute(path, Endpoint(method, path, answer)) for method, path, answer in table]

    async def home(self, request: Request) -> Response:
        """Redirect a browser that was given the server's address alone."""
        return RedirectResponse(PATH)

    async def shell(self, request: Request) -> Response:
        return _file(request, assets().shell(request.path_params.get("path", "")), ANEW)

    async def asset(self, request: Request) -> Response:
        known = assets()
        version, path = request.path_params["version"], request.path_params["path"]
        asset = known.files.get(path)
        if asset is None:
            raise Refused(404, "not_found", f"the console has no file {path!r}")
        # a server of another version may have answered with the shell
        return _file(request, asset, FOREVER if version == known.version else ANEW)

    async def session(self, request: Request) -> Response:
        """Who uses the console; a session that has ended is no error, since its page asks to sign in then."""
        if not self._guard.has_keys:
            subject = self._guard.subject(request, "read")
            return _json(Session(login=False, signed_in=True, tenant=subject.tenant_id, role=subject.role))
        key = self._guard.signed_in(request)
        return _json(
            Session(login=True, signed_in=False) if key is None else _session(key, request.cookies[COOKIE])
        )

    async def log_in(self, request: Request) -> Response:
        """Check a key, and set the cookie of a new session."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            # a form of another site can send anything else without being asked
            raise Refused(415, "unsupported_media_type", f"send {JSON}")
        if not self._guard.has_keys:
            return await self.session(request)
        timeout = self._server.request_timeout
        body = await read_body(request.receive, request.headers, MOST_BYTES, timeout)
        async with self._guard.slowed(request):
            key = self._guard.key(from_json(body, Login).key.strip())
        session = new_session(key.key, time.time())
        response = _json(_session(key, session))
        response.set_cookie(
            COOKIE, session, SECONDS, secure=self._secure(request), httponly=True, samesite="strict"
        )
        return response

    async def log_out(self, request: Request) -> Response:
        """Remove the cookie; a session that has ended already is no error."""
        try:
            self._guard.subject(request, "read")
        except Unauthorized:
            log.debug("a session had ended before its logout")
        response = _json(Session(login=self._guard.has_keys, signed_in=not self._guard.has_keys))
        response.delete_cookie(COOKIE, secure=self._secure(request), httponly=True, samesite="strict")
        return response

    def _secure(self, request: Request) -> bool:
        return request.url.scheme == "https" or (self._server.public_url or "").startswith("https:")


class Endpoint:
    """One address of the console, as an ASGI application."""

    def __init__(self, method: str, route: str, answer: Answer) -> None:
        self._method = method
        self._route = route.replace(":path", "")
        self._answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        scope["memoranda"].route = self._route
        try:
            if request.method != self._method and (request.method, self._method) != ("HEAD", "GET"):
                says = f"{request.method} is not for this path; use {self._method}"
                raise Refused(405, "method_not_allowed", says)
            response = await self._answer(request)
        except Exception as exc:  # whatever it is, the caller gets an envelope and the log the rest
            response = error_response(exc)
        if response.status_code == 405:
            response.headers["allow"] = self._method
        MutableHeaders(raw=response.raw_headers).update(SECURITY)
        await response(scope, receive, send)


def _session(key: ServerKey, cookie: str) -> Session:
    return Session(
        login=True,
        signed_in=True,
        name=key.name,
        tenant=key.tenant,
        user=key.user,
        role=key.role,
        csrf=csrf_token(key.key, cookie),
        ends_at=datetime.fromtimestamp(end_of(cookie) or 0, UTC),
    )


def _json(value: Session) -> Response:
    return Response(msgspec.json.encode(value), media_type=JSON)


def _file(request: Request, asset: Asset, caching: str) -> Response:
    headers = {"etag": asset.tag, "cache-control": caching, "vary": "accept-encoding"}
    if asset.tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    body = asset.body
    if accepts_gzip(request.headers):
        body = asset.packed
        headers["content-encoding"] = "gzip"
    return Response(body, headers={**headers, "content-type": asset.media})
