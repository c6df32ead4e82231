"""HTTP requests to one server; error envelopes become the exceptions that its library raised."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, ParamSpec, TypedDict, TypeVar, Unpack

import httpx
import msgspec
import numpy as np

from memoranda import errors
from memoranda.memory_stores.values import ContentChanged, PathTaken

P = ParamSpec("P")
T = TypeVar("T")
SECONDS = 60.0
RAISED: dict[str, type[errors.MemorandaError]] = {
    "invalid_api_key": errors.Unauthorized,
    "forbidden": errors.Forbidden,
    "host_not_allowed": errors.Forbidden,
    "not_found": errors.NotFound,
    "conflict": errors.Conflict,
    "storage_unavailable": errors.StorageError,
    "disk_full": errors.StorageError,
    "index_unavailable": errors.IndexUnavailable,
    "embedder_unavailable": errors.EmbedderUnavailable,
    "insufficient_quota": errors.SpendingLimit,
}
INVALID: dict[str, type[errors.InvalidInput]] = {
    "invalid_value": errors.InvalidInput,
    "request_too_large": errors.InvalidInput,
    "dimension_mismatch": errors.DimensionMismatch,
}
EXCEEDED = ("quota_exceeded", "file_too_large")
_QUOTA = re.compile(r"\(quota (\w+)\)")


class Sent(TypedDict, total=False):
    """What goes with a request: `body` is sent as JSON, `raw` as it is."""

    body: Any
    raw: bytes
    query: Mapping[str, Any] | None


class Wire:
    """Connections to the server at `url`, with `key` if it requires one, for `user` if one is named. What is written is
    marked as an import with the name `importing`, if there is one. Days are those of `time_zone`.

    Every call raises StorageError when the server cannot be reached, and otherwise the errors of the library.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str | None = None,
        user: str | None = None,
        importing: str | None = None,
        time_zone: str | None = None,
    ) -> None:
        given = {
            "authorization": key and f"Bearer {key}",
            "x-memoranda-user": user,
            "x-memoranda-import": importing,
            "x-memoranda-time-zone": time_zone,
        }
        headers = [(name.encode(), value.encode()) for name, value in given.items() if value is not None]
        self.url = url
        timeout = httpx.Timeout(SECONDS, read=None)
        self._http = httpx.AsyncClient(
            base_url=url, headers=headers, timeout=timeout, transport=self.transport(), trust_env=False
        )

    def transport(self) -> httpx.AsyncBaseTransport | None:
        """Return what sends the requests; None is what waits on the event loop."""
        return None

    async def call(self, method: str, path: str, **sent: Unpack[Sent]) -> bytes:
        """Return the body of the answer to a request with a JSON body, a raw one, or none."""
        return (await self.request(method, path, **sent)).content

    async def request(self, method: str, path: str, **sent: Unpack[Sent]) -> httpx.Response:
        """Return the whole answer to a request, headers included."""
        body = sent.get("body")
        content = sent.get("raw") if body is None else msgspec.json.encode(body, enc_hook=_plain)
        with self._reaching():
            answer = await self._http.request(method, path, content=content, params=sent.get("query"))
        _good(answer)
        return answer

    async def form(
        self,
        path: str,
        fields: Mapping[str, str],
        name: str,
        file: BinaryIO,
        media_type: str | None,
        *,
        query: Mapping[str, Any] | None = None,
    ) -> bytes:
        """The body of the answer to a form with one file, which is sent as it is read."""
        part = (name, file) if media_type is None else (name, file, media_type)
        with self._reaching():
            answer = await self._http.post(path, data=dict(fields), files={"file": part}, params=query)
        return _good(answer)

    async def pieces(self, method: str, path: str, *, body: Any = None) -> AsyncGenerator[bytes, None]:
        """The body of the answer as it comes."""
        content = None if body is None else msgspec.json.encode(body)
        with self._reaching():
            async with self._http.stream(method, path, content=content) as answer:
                if answer.status_code != 200:
                    raise error_of(answer.status_code, await answer.aread())
                async for piece in answer.aiter_bytes():
                    yield piece

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        if self._http.is_closed:
            raise errors.StorageError(f"the client of {self.url} is closed; connect again")
        try:
            yield
        except httpx.HTTPError as exc:
            says = f"the server at {self.url} did not answer: {exc or type(exc).__name__}"
            raise errors.StorageError(says) from exc

    async def sleep(self, seconds: float) -> None:
        """Wait so long."""
        await asyncio.sleep(seconds)

    async def on_thread(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return the result of `work`, run beside the event loop."""
        return await asyncio.to_thread(work, *args, **named)

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        await self._http.aclose()


def _good(answer: httpx.Response) -> bytes:
    if answer.status_code != 200:
        raise error_of(answer.status_code, answer.content)
    return answer.content


def error_of(status: int, body: bytes) -> errors.MemorandaError:
    """The exception that the server's library raised, from its envelope."""
    try:
        error = msgspec.json.decode(body)["error"]
        message, code, param = str(error["message"]), error["code"], error["param"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return errors.StorageError(
            f"the server answered {status} with something that is not an error of Memoranda"
        )
    if error.get("type") == "memory_path_conflict_error":
        return PathTaken(message, str(error["conflicting_memory_id"]), str(error["conflicting_path"]))
    if error.get("type") == "memory_precondition_failed_error":
        return ContentChanged(message)
    field = param or ""
    says = message.removeprefix(f"{field}: ")
    if code in EXCEEDED:
        named = _QUOTA.search(message)
        return errors.QuotaExceeded(field, says, named[1] if named else "max_file_bytes")
    if code in INVALID:
        return INVALID[code](field, says)
    return RAISED.get(code, errors.MemorandaError)(message)


def query_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The query string of a listing: lists repeated, times as ISO 8601, filters as JSON; what is None is left out."""
    return {
        name: value
        if isinstance(value, list)
        else msgspec.json.encode(value).decode()
        if isinstance(value, dict)
        else msgspec.to_builtins(value)
        for name, value in asked.items()
        if value is not None
    }


def _plain(value: Any) -> Any:
    """Encode vectors as lists."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be sent")
