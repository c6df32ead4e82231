"""Events as they come: server-sent, several in one send, with signs of life in between; and the waits for them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memoranda.server.errors import problem

log = logging.getLogger("memoranda.http")
EVENTS = "text/event-stream"
ALIVE = b": keep-alive\n\n"
LAST_WORDS = 5.0
"""Seconds that an answer which was told to end has for saying so."""
Event = dict[str, Any]
_encoder = msgspec.json.Encoder()


def framed(events: Sequence[Event]) -> bytes:
    """The events as they go over the wire, in one piece."""
    piece = bytearray()
    for event in events:
        piece += b"event: %b\ndata: " % event["type"].encode()
        _encoder.encode_into(event, piece, -1)
        piece += b"\n\n"
    return bytes(piece)


def error_event(exc: Exception, number: int) -> Event:
    """An error in the middle of a stream, as the official clients read it."""
    _, found = problem(exc)
    return {
        "type": "error",
        "code": found.code,
        "message": found.message,
        "param": found.param,
        "sequence_number": number,
    }


class Frames:
    """How events, an error and the end of a stream go over the wire: here, as the clients of responses read them."""

    def __init__(self) -> None:
        self._number = 0

    def events(self, some: Sequence[Any]) -> bytes:
        """The events in one piece."""
        self._number = some[-1]["sequence_number"] + 1
        return framed(some)

    def error(self, exc: Exception) -> bytes:
        """An error after which nothing comes."""
        return framed([error_event(exc, self._number)])

    def end(self) -> bytes:
        """What follows the last event; empty for nothing."""
        return b""


async def hung_up(receive: Receive) -> None:
    """Returns when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def stopped(*tasks: asyncio.Task[Any]) -> None:
    """Cancels what still runs, and waits until all have ended; how they ended is nobody's business any more."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Live:
    """The answers that clients are waiting for, so that a server can end in order."""

    def __init__(self) -> None:
        self.ending = False
        """Whether nothing new is to be begun on connections that stay."""
        self._stops: dict[object, Callable[[], object]] = {}
        self._none = asyncio.Event()
        self._none.set()

    @contextmanager
    def holding(self, stop: Callable[[], object]) -> Iterator[None]:
        """An answer is under way as long as this is open; `stop` makes it end soon."""
        key = object()
        self._stops[key] = stop
        self._none.clear()
        try:
            yield
        finally:
            del self._stops[key]
            if not self._stops:
                self._none.set()

    async def end(self, patience: float) -> None:
        """Waits for the answers under way. What is not over after `patience` seconds is stopped."""
        self.ending = True
        if await self._over(patience):
            return
        for stop in list(self._stops.values()):
            stop()
        if not await self._over(LAST_WORDS):
            log.error("%d answers did not end in time", len(self._stops))

    async def _over(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._none.wait()
        except TimeoutError:
            return False
        return True


class EventStream(Response):
    """Sends events until they end or the client is gone.

    `left` is called when the client goes away before the end. `stop` is called when the server ends meanwhile, and
    should end the events; without one, the stream is cut between two of them. `frames` writes them.
    """

    media_type = EVENTS

    def __init__(
        self,
        events: AsyncIterable[Sequence[Any]],
        live: Live,
        keepalive: float,
        *,
        left: Callable[[], object] = lambda: None,
        stop: Callable[[], object] | None = None,
        frames: Frames | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers({"cache-control": "no-cache", "x-accel-buffering": "no"})
        self._events = events
        self._live = live
        self._keepalive = keepalive
        self._left = left
        self._stop = stop
        self._frames = frames or Frames()
        self._sent = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        self._sent = asyncio.get_running_loop().time()
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(hung_up(receive))
        beats = asyncio.create_task(self._beat(send))
        with self._live.holding(self._stop or pump.cancel):
            try:
                await asyncio.wait({pump, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                ended = pump.done() and not gone.done()
                if not ended:
                    self._left()
                await stopped(pump, gone, beats)
        if ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _pump(self, send: Send) -> None:
        events = aiter(self._events)
        try:
            async for some in events:
                await self._say(send, self._frames.events(some))
            if end := self._frames.end():
                await self._say(send, end)
        except Exception as exc:  # whatever it is, a stream that was begun says so in its own way
            await self._say(send, self._frames.error(exc))
        finally:
            await closed(events)

    async def _say(self, send: Send, piece: bytes) -> None:
        self._sent = asyncio.get_running_loop().time()
        await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _beat(self, send: Send) -> None:
        """A comment whenever nothing was said for a while, so that nobody on the way takes the silence for an end."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._sent + self._keepalive - loop.time())
            if loop.time() >= self._sent + self._keepalive:
                await self._say(send, ALIVE)


async def closed(events: AsyncIterator[Any]) -> None:
    """Ends an iteration that may not have come to its end."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()
