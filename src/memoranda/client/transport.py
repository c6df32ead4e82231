"""Requests of blocking callers: async code that sends them without an event loop."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import ParamSpec, TypeVar

import httpx

from memoranda.client.wire import Wire

P = ParamSpec("P")
T = TypeVar("T")


class BlockingWire(Wire):
    """`Wire`, whose methods wait for no event loop. Thread-safe."""

    def transport(self) -> httpx.AsyncBaseTransport:
        """See `Wire.transport`."""
        return _Transport()

    async def sleep(self, seconds: float) -> None:
        """See `Wire.sleep`."""
        time.sleep(seconds)

    async def on_thread(self, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Return the result of `work`, run on the thread of the caller."""
        return work(*args, **named)


class _Transport(httpx.AsyncBaseTransport):
    """Sends a request while the caller waits."""

    def __init__(self) -> None:
        self._blocking = httpx.HTTPTransport()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._blocking.handle_request(request)
        assert isinstance(answer.stream, httpx.SyncByteStream)
        return httpx.Response(
            answer.status_code,
            headers=answer.headers,
            stream=_Pieces(answer.stream),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        self._blocking.close()


class _Pieces(httpx.AsyncByteStream):
    """The body of an answer."""

    def __init__(self, pieces: httpx.SyncByteStream) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece

    async def aclose(self) -> None:
        self._pieces.close()
