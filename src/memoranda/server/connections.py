"""Connections to the server: how many, and how long one may stay without a request."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

KEEP_ALIVE = 65
"""Seconds an idle connection stays: longer than the clients and balancers that reuse it."""
FIRST_REQUEST = 20.0
"""Seconds in which the headers of the first request must be complete."""
FULL = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Connection(HttpToolsProtocol):
    """A connection of uvicorn's that is closed if the headers of its next request are not complete in time. Beyond
    `most` connections the longest idle one is closed for a new one; if none is idle, the new one is refused."""

    def __init__(
        self, *args: Any, most: int, idle: dict[Connection, asyncio.TimerHandle], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._most = most
        self._idle = idle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self._most:
            longest = next(iter(self._idle), None)
            if longest is None:
                transport.write(FULL)
                transport.close()
                return
            longest.end()
        self._wait(FIRST_REQUEST)

    def on_headers_complete(self) -> None:
        self._begin()
        super().on_headers_complete()

    def on_response_complete(self) -> None:
        pipelined = bool(self.pipeline)
        super().on_response_complete()
        if not pipelined and not self.transport.is_closing():
            self._wait(KEEP_ALIVE)

    def connection_lost(self, exc: Exception | None) -> None:
        self._begin()
        super().connection_lost(exc)

    def end(self) -> None:
        """Close the connection, which has no request."""
        self._begin()
        self.transport.close()

    def _wait(self, seconds: float) -> None:
        self._idle[self] = self.loop.call_later(seconds, self.end)

    def _begin(self) -> None:
        timer = self._idle.pop(self, None)
        if timer is not None:
            timer.cancel()
