"""A cheap HTTP/1.1 transport for httpx: a body is passed on as the socket receives it, in one step.

httpx's own transport takes about 150 us more CPU for each piece of a stream (h11, locks, cancel scopes), which is more
than all other work on a piece.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any, cast

import httptools
import httpx

IDLE_SECONDS = 30.0
"""Seconds after which an idle connection is not reused."""
FULL_BYTES = 1 << 20
"""Bytes of a body that may wait to be read before reading from the socket pauses."""
Origin = tuple[str, str, int]


class Connection(asyncio.Protocol):
    """One connection: a request at a time, and the answer to it."""

    def __init__(self) -> None:
        self.used = time.monotonic()
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.over = True
        self._transport: asyncio.Transport
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []
        self._size = 0
        self._framed = False
        self._headed = False
        self._paused = False
        self._wait = 0.0
        self._error: Exception | None = None
        self._lost = False
        self._kept = True
        self._waiter: asyncio.Future[None] | None = None
        self._deadline = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()

    # For the caller

    def send(self, request: bytes, wait: float) -> None:
        """Send a request; `wait` is how many seconds the answer, or more of it, may take."""
        self.over = self._headed = self._framed = False
        self.headers, self._wait, self._error = [], wait, None
        self._transport.write(request)

    async def head(self) -> None:
        """Wait for status and headers.

        Raises:
            httpx.TransportError: they did not come, or not in time.
        """
        while not self._headed:
            await self._more()

    async def read(self) -> bytes:
        """Return the bytes of the body received since; b"" at its end.

        Raises:
            httpx.TransportError: it broke off, or nothing came in time.
        """
        while not self._body:
            if self.over:
                return b""
            await self._more()
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        self._body.clear()
        self._size = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return body

    @property
    def reusable(self) -> bool:
        """True if another request can be sent."""
        return self.over and self._kept and not self._lost and not self._body

    def abort(self) -> None:
        """Close the connection at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._transport.abort()

    # Waiting

    async def _more(self) -> None:
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        self._deadline = self._loop.time() + self._wait
        if self._timer is None:
            self._timer = self._loop.call_at(self._deadline, self._late)
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _late(self) -> None:
        """Time out. One timer serves many waits: if it fires early, it is set again for the current wait."""
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        if self._loop.time() < self._deadline:
            self._timer = self._loop.call_at(self._deadline, self._late)
        else:
            self._waiter.set_exception(httpx.ReadTimeout(f"nothing came for {self._wait:.3g} s"))

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, error: Exception) -> None:
        self._error = self._error or error
        self._wake()

    # For the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's are no instances of it

    def data_received(self, data: bytes) -> None:
        if self.over:  # no request is open
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail(httpx.RemoteProtocolError("the server changed the protocol"))
            self.abort()
        except httptools.HttpParserError as exc:
            self._fail(httpx.RemoteProtocolError(f"the answer is no HTTP: {exc}"))
            self.abort()
        if self._size > FULL_BYTES and not self._paused and not self._lost:
            self._paused = True
            self._transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost = True
        if self.over:
            return
        if self._headed and not self._framed and exc is None:
            self.over = True
            self._wake()
        else:
            says = "in the middle of the answer" if self._headed else "without an answer"
            self._fail(httpx.ReadError(f"the connection was closed {says}"))

    # For the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))
        if name.lower() in (b"content-length", b"transfer-encoding"):
            self._framed = True

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()
        if self.status >= 200:
            self._headed = True
            self._wake()

    def on_body(self, body: bytes) -> None:
        self._body.append(body)
        self._size += len(body)
        self._wake()

    def on_message_complete(self) -> None:
        if self._headed:
            self.over = True
            self._kept = self._parser.should_keep_alive()
            self._wake()
        else:  # an interim answer, such as 100 Continue
            self.headers.clear()


class Body(httpx.AsyncByteStream):
    """The body of an answer. Closing it before its end closes the connection."""

    def __init__(self, connection: Connection, transport: Transport, origin: Origin) -> None:
        self._connection = connection
        self._transport = transport
        self._origin = origin
        self._closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = self._connection.read
        while body := await read():
            yield body

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            self._transport.give_back(self._connection, self._origin)


class Transport(httpx.AsyncBaseTransport):
    """Connections to servers, at most `connections` at once; a request beyond that waits its turn. For one event loop.
    The timeouts are those of the request (`connect`, `read`, `pool`), as httpx has them. A response's extension `read`
    is `Connection.read`, past the generators that httpx wraps around a stream."""

    def __init__(self, verify: ssl.SSLContext, connections: int) -> None:
        self._verify = verify
        self._places = asyncio.Semaphore(connections)
        self._idle: defaultdict[Origin, list[Connection]] = defaultdict(list)
        self._open: set[Connection] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        timeout: dict[str, Any] = request.extensions.get("timeout", {})
        url = request.url
        origin = (url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80))
        content = await request.aread()
        await self._place(timeout.get("pool"))
        try:
            connection = await self._asked(origin, _head(request) + content, timeout)
        except BaseException:
            self._places.release()
            raise
        return httpx.Response(
            connection.status,
            headers=connection.headers,
            stream=Body(connection, self, origin),
            extensions={"read": connection.read},
            request=request,
        )

    async def _asked(
        self, origin: Origin, request: bytes, timeout: dict[str, Any], anew: bool = False
    ) -> Connection:
        """Return a connection on which the answer to `request` has begun. If a reused connection turns out to be closed
        by the server, the request is sent again on a new one."""
        connection = None if anew else self._idle_one(origin)
        reused = connection is not None
        connection = connection or await self._connect(origin, timeout.get("connect"))
        self._open.add(connection)
        try:
            connection.send(request, timeout.get("read") or 86_400.0)
            await connection.head()
        except BaseException as exc:
            self._open.discard(connection)
            connection.abort()
            if not (reused and isinstance(exc, httpx.ReadError)):
                raise
            return await self._asked(origin, request, timeout, anew=True)
        return connection

    def give_back(self, connection: Connection, origin: Origin) -> None:
        """Keep a connection for the next request, or close one with an unread body."""
        if connection not in self._open:
            return
        if not connection.reusable:
            self._end(connection)
            return
        self._open.discard(connection)
        self._places.release()
        connection.used = time.monotonic()
        self._idle[origin].append(connection)

    async def aclose(self) -> None:
        idle = [connection for connections in self._idle.values() for connection in connections]
        self._idle.clear()
        for connection in (*idle, *self._open):
            connection.abort()

    def _end(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._places.release()
        connection.abort()

    async def _place(self, seconds: float | None) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(seconds):
                await self._places.acquire()
        except TimeoutError as exc:
            raise httpx.PoolTimeout("every connection is in use") from exc

    def _idle_one(self, origin: Origin) -> Connection | None:
        idle = self._idle[origin]
        while idle:
            connection = idle.pop()
            if connection.reusable and time.monotonic() - connection.used < IDLE_SECONDS:
                return connection
            connection.abort()
        return None

    async def _connect(self, origin: Origin, seconds: float | None) -> Connection:
        scheme, host, port = origin
        secure = self._verify if scheme == "https" else None
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(seconds):
                _, connection = await loop.create_connection(Connection, host, port, ssl=secure)
        except TimeoutError as exc:
            raise httpx.ConnectTimeout(f"no connection within {seconds:.3g} s") from exc
        except (OSError, ssl.SSLError) as exc:
            raise httpx.ConnectError(_reason(exc)) from exc
        return connection


def _head(request: httpx.Request) -> bytes:
    """Return the request line and the headers."""
    line = b"%s %s HTTP/1.1\r\n" % (request.method.encode("ascii"), request.url.raw_path)
    return line + b"".join(b"%s: %s\r\n" % pair for pair in request.headers.raw) + b"\r\n"


def _reason(exc: Exception) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {exc.verify_message}"
    return (exc.strerror or str(exc)) if isinstance(exc, OSError) else str(exc)
