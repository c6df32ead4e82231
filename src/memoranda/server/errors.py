"""Errors as the OpenAI clients read them: one envelope, always message, type, param and code."""

from __future__ import annotations

import errno
import logging
import math
from collections.abc import Callable

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match

from memoranda.errors import (
    Conflict,
    DamagedData,
    DimensionMismatch,
    EmbedderUnavailable,
    FolderInUse,
    Forbidden,
    IndexUnavailable,
    InvalidInput,
    MemorandaError,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    NotFound,
    QuotaExceeded,
    SpendingLimit,
    StorageError,
    Unauthorized,
    UnknownModel,
)
from memoranda.responses.history import UnknownResponse
from memoranda.responses.truncation import ContextTooLong

log = logging.getLogger("memoranda.http")
JSON = "application/json"


class Problem(msgspec.Struct, kw_only=True):
    """What went wrong. `param` is the path of the field that is wrong, where it is one."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorEnvelope(msgspec.Struct):
    """How every error of this server looks."""

    error: Problem


Failure = Callable[[int, Problem, Exception], ErrorEnvelope]
"""The body of an error, from its status, its problem and the exception."""


def plain(status: int, error: Problem, exc: Exception) -> ErrorEnvelope:
    """The default envelope."""
    return ErrorEnvelope(error)


class Refused(MemorandaError):
    """A request that HTTP itself refuses, before or beside what the library says."""

    def __init__(self, status: int, code: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param


class Overloaded(Refused):
    """More than the server takes on at once; the client should try again after so many seconds."""

    def __init__(self, message: str, retry_after: float = 1.0) -> None:
        super().__init__(503, "overloaded", message)
        self.retry_after = retry_after


class ClientGone(Exception):
    """The client disconnected before its request was complete."""


SPENT = "insufficient_quota"
PARAMS: dict[type[MemorandaError], str] = {UnknownResponse: "previous_response_id", UnknownModel: "model"}
"""The wrong field, for errors that do not name it."""
STATUSES: dict[type[MemorandaError], tuple[int, str]] = {
    DimensionMismatch: (400, "dimension_mismatch"),
    QuotaExceeded: (400, "quota_exceeded"),
    InvalidInput: (400, "invalid_value"),
    Unauthorized: (401, "invalid_api_key"),
    Forbidden: (403, "forbidden"),
    UnknownResponse: (400, "previous_response_not_found"),
    ContextTooLong: (400, "context_length_exceeded"),
    NotFound: (404, "not_found"),
    Conflict: (409, "conflict"),
    DamagedData: (500, "data_damaged"),
    StorageError: (503, "storage_unavailable"),
    FolderInUse: (503, "storage_unavailable"),
    IndexUnavailable: (503, "index_unavailable"),
    SpendingLimit: (429, SPENT),
    EmbedderUnavailable: (503, "embedder_unavailable"),
    ModelUnavailable: (503, "model_unavailable"),
    UnknownModel: (404, "model_not_found"),
    ModelRefused: (400, "model_refused"),
    ModelError: (502, "model_error"),
}
"""Status and code by the nearest class of the tree."""

RETRY_AFTER = "1"
"""Seconds after which a client should repeat a request that cannot be answered now."""
UNEXPECTED = "The server made a mistake and wrote it to its log; quote the x-request-id of this answer."
NOT_STORED = "The rows could not be read or written just now; nothing was half done. Try again."
NO_INDEX = "The index does not answer just now. Rows are safe; try again."
DISK_FULL = "The disk is full; nothing was stored. Free some space and try again."


def type_of(status: int) -> str:
    """OpenAI's `type` for a status."""
    named = {401: "authentication_error", 403: "permission_error"}
    return named.get(status, "invalid_request_error" if status < 500 else "server_error")


def problem(exc: Exception) -> tuple[int, Problem]:
    """The status and the body for an error. Details that callers must not see are logged only."""
    param: str | None = None
    if isinstance(exc, Refused):
        status, code, message, param = exc.status, exc.code, str(exc), exc.param
    elif isinstance(exc, HTTPException):
        status, code, message = exc.status_code, "http_error", exc.detail
    else:
        status, code, message = _known(exc)
        param = exc.field or None if isinstance(exc, InvalidInput) else PARAMS.get(type(exc))  # type: ignore[arg-type]
    if isinstance(exc, ModelUnavailable):
        log.error("%s: %s", code, exc)  # its own words say all; the traceback is that of a socket
    elif status >= 500 and not isinstance(exc, Refused):
        log.error("%s: %s", code, type(exc).__name__, exc_info=exc)
    type_ = SPENT if code == SPENT else type_of(status)
    return status, Problem(message=message, type=type_, param=param, code=code)


def _known(exc: Exception) -> tuple[int, str, str]:
    for kind in type(exc).__mro__:
        if kind in STATUSES:
            status, code = STATUSES[kind]
            break
    else:
        return 500, "internal_error", UNEXPECTED
    if isinstance(exc, QuotaExceeded) and exc.quota == "max_file_bytes":
        return 413, "file_too_large", str(exc)
    if isinstance(exc, StorageError | FolderInUse) and not isinstance(exc, DamagedData):
        return (507, "disk_full", DISK_FULL) if disk_full(exc) else (status, code, NOT_STORED)
    if isinstance(exc, IndexUnavailable):  # its own words may name a server
        return status, code, NO_INDEX
    return status, code, str(exc)


def disk_full(exc: BaseException) -> bool:
    """Return True if a full disk caused this error."""
    at: BaseException | None = exc
    while at is not None:
        if isinstance(at, OSError) and at.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "disk is full" in str(at):
            return True
        at = at.__cause__
    return False


def error_response(exc: Exception, failure: Failure = plain) -> Response:
    """The answer to a request that failed; `failure` makes its body."""
    status, error = problem(exc)
    headers = {401: {"www-authenticate": "Bearer"}, 503: {"retry-after": RETRY_AFTER}}.get(status, {})
    if isinstance(exc, Overloaded):
        headers = {"retry-after": f"{math.ceil(exc.retry_after)}"}
    if isinstance(exc, SpendingLimit):  # clients that would try again at once need not
        headers = {"retry-after": f"{exc.seconds:.0f}", "x-should-retry": "false"}
    if isinstance(exc, HTTPException) and exc.headers:
        headers.update(exc.headers)
    return Response(msgspec.json.encode(failure(status, error, exc)), status, headers, JSON)


async def unknown_route(request: Request, exc: Exception) -> Response:
    """404 for a path that is no route of this server."""
    meant = _meant(request)
    hint = f"use {meant!r}, or correct the base URL" if meant else "/openapi.json lists them"
    return error_response(Refused(404, "unknown_route", f"no route {request.url.path!r}; {hint}"))


def _meant(request: Request) -> str | None:
    """The same path with or without `/v1`, if that is a route: some clients add `/v1` to their base URL, others not."""
    path = request.url.path
    other = path.removeprefix("/v1") if path.startswith("/v1/") else f"/v1{path}"
    scope = {**request.scope, "path": other}
    return other if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes) else None
