"""Server-sent events: batches in one send, keep-alive comments, and the orderly end of running streams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memoranda.responses.runs import ENDING, Run
from memoranda.server.errors import ClientGone, problem
from memoranda.server.route import Call, Live

T = TypeVar("T")

EVENTS = "text/event-stream"
ALIVE = b": keep-alive\n\n"
AT_ONCE = 64
"""Events that are encoded without a pause."""
Event = dict[str, Any]
_encoder = msgspec.json.Encoder()


def framed(events: Sequence[Event]) -> bytes:
    """The encoded events, in one piece."""
    piece = bytearray()
    for event in events:
        piece += b"event: %b\ndata: " % event["type"].encode()
        _encoder.encode_into(event, piece, -1)
        piece += b"\n\n"
    return bytes(piece)


def error_event(exc: Exception, number: int) -> Event:
    """An error in the middle of a stream, as the official clients read it."""
    _, details = problem(exc)
    return {
        "type": "error",
        "code": details.code,
        "message": details.message,
        "param": details.param,
        "sequence_number": number,
    }


class Frames:
    """The encoding of events, an error and the end of a stream: here, for clients of responses."""

    def __init__(self) -> None:
        self._number = 0

    def events(self, some: Sequence[Any]) -> bytes:
        """The events in one piece."""
        self._number = some[-1]["sequence_number"] + 1
        return framed(some)

    def error(self, exc: Exception) -> bytes:
        """The error that ends the stream."""
        return framed([error_event(exc, self._number)])

    def end(self) -> bytes:
        """What follows the last event; empty for nothing."""
        return b""


async def hung_up(receive: Receive) -> None:
    """Returns when the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def while_connected(work: Awaitable[T], receive: Receive) -> T:
    """Return the result of the work, which is cancelled if the client goes first.

    Raises:
        ClientGone: it did.
    """
    task, gone = asyncio.ensure_future(work), asyncio.create_task(hung_up(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
    finally:
        await stopped(task, gone)
    raise ClientGone


async def stopped(*tasks: asyncio.Future[Any]) -> None:
    """Cancels running tasks, and waits until all have ended; their results and errors are discarded."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class EventStream(Response):
    """Sends events until they end or the client is gone.

    `left` is called when the client disconnects before the end. `stop` is called when the server shuts down, and
    should end the events; without it, the stream is cut between two events. `frames` encodes them.
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
        self.init_headers({"x-accel-buffering": "no"})
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
                for at in range(0, len(some), AT_ONCE):
                    await self._say(send, await self._framed(some[at : at + AT_ONCE]))
            if end := self._frames.end():
                await self._say(send, end)
        except Exception as exc:  # the status is sent already: report the error in the stream
            await self._say(send, self._frames.error(exc))
        finally:
            await closed(events)

    async def _framed(self, some: Sequence[Any]) -> bytes:
        """The encoded events. Of many, as a replay has them, other requests get their turn between two pieces."""
        if len(some) < AT_ONCE:
            return self._frames.events(some)
        async with self._live.replaying:
            await asyncio.sleep(0)
            return self._frames.events(some)

    async def _say(self, send: Send, piece: bytes) -> None:
        self._sent = asyncio.get_running_loop().time()
        await send({"type": "http.response.body", "body": piece, "more_body": True})

    async def _beat(self, send: Send) -> None:
        """Sends a comment after a silence, so that proxies do not close the connection."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._sent + self._keepalive - loop.time())
            if loop.time() >= self._sent + self._keepalive:
                await self._say(send, ALIVE)


async def closed(events: AsyncIterator[Any]) -> None:
    """Closes an iterator that may not be exhausted."""
    close = getattr(events, "aclose", None)
    if close is not None:
        await close()


async def finished(run: Run, receive: Receive, live: Live) -> None:
    """Waits until the run has ended. Errors as `waited`."""
    await waited(run, run.done(), receive, live)


async def waited(run: Run, work: Coroutine[Any, Any, object], receive: Receive, live: Live) -> None:
    """Waits until the work is done, at the latest when the run has ended.

    Raises:
        ClientGone: the client disconnected; the run was stopped, and its output so far is stored.
    """
    done = asyncio.create_task(work)
    gone = asyncio.create_task(hung_up(receive))
    with live.holding(partial(run.abandon, ENDING)):
        try:
            await asyncio.wait({done, gone}, return_when=asyncio.FIRST_COMPLETED)
            if done.done():
                return
            run.abandon()
            await done
        finally:
            await stopped(done, gone)
    raise ClientGone


def keepalive(call: Call[Any, Any]) -> float:
    """Seconds of silence after which a stream sends a comment."""
    return call.state.memoranda.config.responses.keepalive
