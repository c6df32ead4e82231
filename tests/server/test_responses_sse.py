"""Events over HTTP, whatever they tell: frames, sends, signs of life, ends."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import uvicorn

from memoranda.errors import StorageError
from memoranda.server.route import Live
from memoranda.server.sse import ALIVE, EventStream, framed
from support.waiting import until

Batches = AsyncIterator[list[dict[str, Any]]]


def event(number: int, **fields: Any) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "sequence_number": number, **fields}


class Caller:
    """The client's side of one ASGI call: what it got, and a way to hang up."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.got.append(dict(message))

    @property
    def bodies(self) -> list[bytes]:
        return [one["body"] for one in self.got if one["type"] == "http.response.body"]

    @property
    def ended(self) -> bool:
        return self.got[-1].get("more_body") is False

    async def take(self, stream: EventStream) -> None:
        await stream({"type": "http"}, self.receive, self.send)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 10))


def test_a_frame_has_its_type_and_its_data() -> None:
    said = framed([event(0, delta="ü\n\nx"), {"type": "error", "sequence_number": 1}])
    assert said == (
        b"event: response.output_text.delta\n"
        b'data: {"type":"response.output_text.delta","sequence_number":0,"delta":"\xc3\xbc\\n\\nx"}\n\n'
        b'event: error\ndata: {"type":"error","sequence_number":1}\n\n'
    )


def test_what_came_together_goes_together_and_at_once() -> None:
    async def go() -> None:
        caller, more = Caller(), asyncio.Event()

        async def events() -> Batches:
            yield [event(0), event(1), event(2)]
            await more.wait()
            yield [event(3)]

        task = asyncio.create_task(caller.take(EventStream(events(), Live(), 60)))
        while len(caller.got) < 2:
            await asyncio.sleep(0)
        assert caller.bodies == [framed([event(0), event(1), event(2)])]
        more.set()
        await task
        assert caller.bodies[1:] == [framed([event(3)]), b""]
        headers = dict(caller.got[0]["headers"])
        assert headers[b"content-type"].startswith(b"text/event-stream")
        assert headers[b"x-accel-buffering"] == b"no"
        assert b"content-length" not in headers
        assert caller.ended

    run(go())


def test_silence_is_broken_and_an_end_is_not() -> None:
    async def go() -> None:
        caller = Caller()

        async def events() -> Batches:
            for number in range(10):
                yield [event(number)]
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.35)
            yield [event(10)]

        await caller.take(EventStream(events(), Live(), 0.1))
        alive = [i for i, body in enumerate(caller.bodies) if body == ALIVE]
        assert alive in ([10, 11], [10, 11, 12])
        await asyncio.sleep(0.25)
        assert caller.ended

    run(go())


def test_a_client_that_leaves_is_noticed_in_a_silence() -> None:
    async def go() -> None:
        caller, heard = Caller(), []

        async def events() -> Batches:
            try:
                yield [event(0)]
                await asyncio.sleep(60)
            finally:
                heard.append("closed")

        stream = EventStream(events(), Live(), 60, left=lambda: heard.append("left"))
        task = asyncio.create_task(caller.take(stream))
        while len(caller.got) < 2:
            await asyncio.sleep(0)
        caller.left.set()
        await task
        assert heard == ["left", "closed"]
        assert not caller.ended

    run(go())


def test_an_error_in_the_middle_is_an_event() -> None:
    async def go() -> None:
        caller = Caller()

        async def events() -> Batches:
            yield [event(0), event(1)]
            raise StorageError("rows at /secret/place")

        await caller.take(EventStream(events(), Live(), 60))
        kind, data = caller.bodies[1].decode().strip().split("\n")
        told = json.loads(data.removeprefix("data: "))
        assert kind == "event: error"
        assert (told["code"], told["sequence_number"]) == ("storage_unavailable", 2)
        assert "secret" not in told["message"]
        assert caller.ended

    run(go())


def test_a_server_that_ends_waits_first_and_stops_then() -> None:
    async def go() -> None:
        live, stop = Live(), asyncio.Event()

        async def stoppable() -> Batches:
            yield [event(0)]
            await stop.wait()
            yield [event(1)]

        async def short() -> Batches:
            await asyncio.sleep(0.05)
            yield [event(0)]

        async def endless() -> Batches:
            while True:
                yield [event(0)]
                await asyncio.sleep(0.02)

        told, brief, cut = Caller(), Caller(), Caller()
        tasks = [
            asyncio.create_task(told.take(EventStream(stoppable(), live, 60, stop=stop.set))),
            asyncio.create_task(brief.take(EventStream(short(), live, 60))),
            asyncio.create_task(cut.take(EventStream(endless(), live, 60))),
        ]
        await asyncio.sleep(0)
        await live.end(0.2)
        await asyncio.gather(*tasks)
        assert told.bodies == [framed([event(0)]), framed([event(1)]), b""]
        assert brief.bodies == [framed([event(0)]), b""]
        assert set(cut.bodies) == {framed([event(0)]), b""}
        assert told.ended
        assert brief.ended
        assert cut.ended
        await asyncio.wait_for(live.end(60), 1)

    run(go())


@contextmanager
def serving(app: Callable[..., Any]) -> Iterator[int]:
    """The port of a real server for an ASGI app."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, lifespan="off", log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started, "the server listens")
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


@pytest.mark.parametrize("leaves", [False, True])
def test_a_slow_reader_loses_nothing_and_holds_nothing_up(leaves: bool) -> None:
    """A client that does not read is waited for: the events stay where they are. One that leaves then is noticed."""
    count, made, left = 4_000, [], threading.Event()

    async def events() -> Batches:
        for number in range(count):
            made.append(number)
            yield [event(number, delta="x" * 4_000)]

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await EventStream(events(), Live(), 60, left=left.set)(scope, receive, send)

    with serving(app) as port, socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        time.sleep(0.3)
        assert 0 < len(made) < count
        if leaves:
            raw.close()
            assert left.wait(5)
            return
        read = b"".join(iter(lambda: raw.recv(1 << 20), b""))
    numbers = [int(piece.split(b",", 1)[0]) for piece in read.split(b'"sequence_number":')[1:]]
    assert numbers == list(range(count))
    assert read.endswith(b"0\r\n\r\n")
    assert not left.is_set()
