"""Middleware: every request is given an id, timed, counted, traced and logged, and its answer safe headers."""

from __future__ import annotations

import logging
import re
import secrets
import time

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memoranda.server.logs import request_line
from memoranda.server.telemetry import Telemetry
from memoranda.tracing import request_span

log = logging.getLogger("memoranda.http")
REQUEST_ID = "x-request-id"
SAFE = {"x-content-type-options": "nosniff", "cache-control": "no-store"}
"""Headers of an answer that has none of its own: browsers do not guess its type, and no proxy caches it."""
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
BEGINNINGS = frozenset(("http.response.start", "websocket.accept", "websocket.http.response.start"))
_PLAIN = re.compile(r"[\w.-]{1,64}")


class Seen:
    """The facts about a request that parts of the server record."""

    __slots__ = ("key", "request_id", "route", "status", "tenant")

    def __init__(self, request_id: str) -> None:
        self.request_id = request_id
        self.route = "unknown"
        self.tenant: str | None = None
        self.key: str | None = None
        self.status = 500


class Observed:
    """Wraps the server. `scope["memoranda"]` is the request's `Seen`."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self.app = app
        self.telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        seen = Seen(_request_id(headers.get(REQUEST_ID, "")))
        scope["memoranda"] = seen

        async def sending(message: Message) -> None:
            if message["type"] in BEGINNINGS:
                seen.status = message.get("status", 101)
                message.setdefault("headers", [])
                answered = MutableHeaders(scope=message)
                answered[REQUEST_ID] = seen.request_id
                for name, value in SAFE.items():
                    answered.setdefault(name, value)
            await send(message)

        began = time.perf_counter()
        method = method_of(scope)
        with request_span(f"HTTP {method}", {"http.request.method": method}, _carrier(headers)) as span:
            try:
                await self.app(scope, receive, sending)
            finally:
                seconds = time.perf_counter() - began
                self.telemetry.answered(method, seen.route, seen.status, seconds)
                if span is not None and span.is_recording():
                    span.update_name(f"{method} {seen.route}")
                    span.set_attribute("http.route", seen.route)
                    span.set_attribute("http.response.status_code", seen.status)
                request_line(log, scope, seen.status, seconds)


def method_of(scope: Scope) -> str:
    """The request's method as it is counted; a connection's that stays open is `websocket`."""
    if scope["type"] == "websocket":
        return "websocket"
    return scope["method"] if scope["method"] in METHODS else "other"


def _request_id(given: str) -> str:
    """The caller's id when it is a plain one, else a new one."""
    return given if _PLAIN.fullmatch(given) else f"req_{secrets.token_hex(12)}"


def _carrier(headers: Headers) -> dict[str, str]:
    return {name: headers[name] for name in ("traceparent", "tracestate", "baggage") if name in headers}
