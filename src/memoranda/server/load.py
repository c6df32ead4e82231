"""What the server takes on at once: requests at work and in line, bytes of bodies, attempts with wrong keys."""

from __future__ import annotations

import asyncio
import ctypes
import math
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from memoranda.server.errors import Overloaded

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
    """Bounds the bytes of all request bodies that are in memory; a single one is never refused."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0

    @contextmanager
    def body(self) -> Iterator[Body]:
        """A body that is in memory while the context is open."""
        body = Body(self)
        try:
            yield body
        finally:
            self._bytes -= body.size
            if body.size >= GIVEN_BACK and self._bytes < GIVEN_BACK:
                asyncio.get_running_loop().call_later(1.0, give_back)

    def take(self, size: int, others: bool) -> None:
        """Count `size` more bytes; `others` are in memory beside the body that they belong to.

        Raises:
            Overloaded: together with those of others they are too many.
        """
        if others and self._bytes + size > self._most:
            says = (
                f"bodies of {self._most} bytes are being read already (server.max_buffered_bytes); try again"
            )
            raise Overloaded(says)
        self._bytes += size

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return self._bytes


class Body:
    """The bytes of one body."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.size = 0

    def take(self, size: int) -> None:
        """Count `size` bytes more.

        Raises:
            Overloaded: bodies of others leave no room for them.
        """
        self._bodies.take(size, others=self._bodies.bytes > self.size)
        self.size += size


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
