"""What the server takes on at once, and the limits on the size and the time of a request body."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager

from starlette.types import Receive

from memoranda.server.errors import ClientGone, Overloaded, Refused

AT_WORK = 32
"""Requests at work at once; the others wait in line. More of them are not faster, and delay what is quick."""
LONGEST_WAIT = 5.0
"""Seconds a request may wait in line; one that is expected to wait longer is refused at once."""
MOST_PATIENCE = 30.0
"""Seconds after which a refused request should be repeated, at most."""
SMOOTHING = 0.1
"""The weight of the latest interval in the mean interval between the ends of two requests."""
GIVEN_BACK = 8 << 20
"""Bytes of a body from which its memory is returned to the system afterwards."""
STALLED = 2.0
"""Seconds without a byte after which a body is the first to be refused where there is no room."""
ADDRESSES = 10_000
FORGIVEN = 60.0
"""Seconds after which the wrong keys of an address no longer count."""
FREE = 10
"""Wrong keys of an address that are answered at once."""
FIRST_DELAY, LONGEST_DELAY = 0.1, 3.0
"""Seconds that the answer to a wrong key is delayed then: the first time, and at most; each time doubles it."""


class Line:
    """Lets `AT_WORK` requests work at once, in the order in which they came."""

    def __init__(self) -> None:
        self._free = asyncio.Semaphore(AT_WORK)
        self._waiting = 0
        self._interval = 0.0
        self._since = 0.0  # when the latest turn ended, or the line began

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn.

        Raises:
            Overloaded: the line is longer than `LONGEST_WAIT` seconds.
        """
        expected = self._waiting * self._interval
        if expected > LONGEST_WAIT:
            raise _busy(expected)
        if not self._waiting:
            self._since = time.monotonic()
        self._waiting += 1
        try:
            async with asyncio.timeout(LONGEST_WAIT):
                await self._free.acquire()
        except TimeoutError:
            raise _busy(LONGEST_WAIT) from None
        finally:
            self._waiting -= 1
        try:
            yield
        finally:
            if self._waiting:
                now = time.monotonic()
                self._interval += SMOOTHING * (now - self._since - self._interval)
                self._since = now
            self._free.release()


def _busy(seconds: float) -> Overloaded:
    return Overloaded("more requests wait than can be answered soon; try again", min(seconds, MOST_PATIENCE))


class Bodies:
    """Bounds the bytes of all request bodies that are in memory; a single one is never refused.

    Bytes count as they arrive. Where there is no room for more, one of the bodies that are arriving is refused: one
    that has stalled, or else the one that began last. So the first that keeps arriving is always read, unless complete
    bodies that are being answered leave no room.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._arriving: dict[Body, None] = {}
        self.bytes = 0
        """Bytes in memory."""

    @contextmanager
    def body(self) -> Iterator[Body]:
        """A body that is in memory while the context is open."""
        body = Body(self)
        try:
            yield body
        finally:
            self.bytes -= body.size
            if body.size >= GIVEN_BACK and self.bytes < GIVEN_BACK:
                asyncio.get_running_loop().call_later(1.0, give_back)

    @contextmanager
    def arriving(self, body: Body) -> Iterator[None]:
        """The body arrives while the context is open, and may be refused meanwhile."""
        self._arriving[body] = None
        try:
            yield
        finally:
            del self._arriving[body]

    def make_room(self, body: Body, size: int) -> None:
        """Refuse bodies, this one among them, until there is room for `size` more bytes of it or it is refused."""
        while not body.refused and self.bytes > body.size and self.bytes + size > self.most:
            refused = self._to_refuse(body)
            self.bytes -= refused.size
            refused.refuse()

    def _to_refuse(self, body: Body) -> Body:
        others = [each for each in self._arriving if each.size or each is body]
        stalled = (each for each in others if each is not body and each.silence > STALLED)
        return next(stalled, others[-1] if others else body)


class Body:
    """The bytes of one body."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._limit: asyncio.Timeout | None = None
        self._latest = time.monotonic()
        self.size = 0
        self.refused = False

    @contextmanager
    def arriving(self, limit: asyncio.Timeout) -> Iterator[None]:
        """The body arrives while the context is open; if it is refused meanwhile, `limit` expires."""
        self._limit = limit
        with self._bodies.arriving(self):
            yield

    def take(self, size: int) -> None:
        """Count `size` bytes more.

        Raises:
            Overloaded: it is refused, since there is no room for it beside others.
        """
        self._latest = time.monotonic()
        self._bodies.make_room(self, size)
        self.check()
        self._bodies.bytes += size
        self.size += size

    def check(self) -> None:
        """Return if the body was not refused.

        Raises:
            Overloaded: it was, since there is no room for it beside others.
        """
        if self.refused:
            says = f"bodies of {self._bodies.most} bytes are in memory already (server.max_buffered_bytes); try again"
            raise Overloaded(says)

    def refuse(self) -> None:
        """Stop reading the body, which has no bytes in memory any more."""
        self.refused, self.size = True, 0
        if self._limit is not None:
            self._limit.reschedule(asyncio.get_running_loop().time())

    @property
    def silence(self) -> float:
        """Seconds since its latest bytes arrived."""
        return time.monotonic() - self._latest


def give_back() -> None:
    """Return free memory to the system, where the allocator is glibc's: it keeps what large bodies took."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


class WrongKeys:
    """Counts attempts with wrong keys by address, and says how long the answer to the latest is delayed."""

    def __init__(self) -> None:
        self._counts: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def delay(self, address: str, now: float) -> float:
        """Count an attempt at `now` (seconds, monotonic), and return the seconds to wait before its answer."""
        count, last = self._counts.pop(address, (0, -math.inf))
        count = count + 1 if now - last < FORGIVEN else 1
        self._counts[address] = (count, now)
        if len(self._counts) > ADDRESSES:
            self._counts.popitem(last=False)
        return 0.0 if count <= FREE else min(LONGEST_DELAY, FIRST_DELAY * 2.0 ** min(count - FREE - 1, 16))


DRAIN_BYTES = 512 << 20
DRAIN_SECONDS = 5.0


async def read_body(
    receive: Receive,
    headers: Mapping[str, str],
    most: int,
    patience: float,
    *,
    long: bool = False,
    body: Body | None = None,
) -> bytes:
    """The whole body, of at most `most` bytes, which must arrive within `patience` seconds; a `long` one only has to
    keep arriving, with no pause of more than that. What has arrived is counted in `body`, which may refuse it.

    Raises:
        Overloaded: there is no room for it beside other bodies.
        Refused: 413 too large, 408 too slow, 415 compressed, 400 a Content-Length that is no number.
        ClientGone: the client hung up.
    """
    if headers.get("content-encoding", "identity") != "identity":
        raise Refused(415, "unsupported_encoding", "send the body as it is, without Content-Encoding")
    if announced(headers) > most:
        await drain(receive, headers)
        raise _too_large(most)
    body = body or Body(Bodies(most))
    try:
        return await _collect(receive, headers, most, patience, long, body)
    except Overloaded:
        await drain(receive, headers)
        raise
    except TimeoutError as exc:
        says = f"the body did not arrive within {patience:g} seconds"
        raise Refused(408, "request_timeout", says) from exc


async def _collect(
    receive: Receive, headers: Mapping[str, str], most: int, patience: float, long: bool, body: Body
) -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(patience) as limit:
            with body.arriving(limit):
                while True:
                    piece, more = await next_piece(receive)
                    size += len(piece)
                    if size > most:
                        await drain(receive, headers)
                        raise _too_large(most)
                    body.take(len(piece))
                    pieces.append(piece)
                    if not more:
                        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
                    if long:
                        limit.reschedule(asyncio.get_running_loop().time() + patience)
    except TimeoutError:
        body.check()
        raise
    finally:
        pieces.clear()  # the traceback of an error has them as long as the rest is drained


async def next_piece(receive: Receive) -> tuple[bytes, bool]:
    """The next piece of a body, and whether more follow.

    Raises:
        ClientGone: the client hung up.
    """
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientGone
    return message.get("body", b""), message.get("more_body", False)


def announced(headers: Mapping[str, str]) -> int:
    """The announced length of the body in bytes; 0 without a Content-Length.

    Raises:
        Refused: 400, it is no number.
    """
    length = headers.get("content-length", "0")
    if not length.isdecimal():
        raise Refused(400, "invalid_value", "must be a number", "Content-Length")
    return int(length)


def _too_large(most: int) -> Refused:
    return Refused(
        413,
        "request_too_large",
        f"the body is larger than {most} bytes; send it in parts, or raise server.max_body_bytes",
        "body",
    )


async def drain(receive: Receive, headers: Mapping[str, str]) -> None:
    """Read and discard the rest of a body: a client whose connection is closed while it sends never reads the answer.
    Not for clients that wait for a go-ahead (`Expect: 100-continue`), and bounded in bytes and time."""
    if "expect" in headers or announced(headers) > DRAIN_BYTES:
        return
    size, until = 0, time.monotonic() + DRAIN_SECONDS
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DRAIN_SECONDS):
            more = True
            while more and size < DRAIN_BYTES and time.monotonic() < until:
                piece, more = await next_piece(receive)
                size += len(piece)
