"""More than the server can do at once is refused soon, and delays nothing else."""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Any

import pytest
import uvicorn

from memoranda.server import connections, load
from memoranda.server.connections import FULL, Connection
from memoranda.server.errors import Overloaded, Refused
from memoranda.server.load import AT_WORK, FREE, Bodies, Line, WrongKeys, read_body

KEYS = [{"name": "ada", "role": "reader", "key": "key-ada", "tenant": "acme", "user": "ada"}]


def test_requests_work_in_the_order_in_which_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "AT_WORK", 2)

    async def go() -> tuple[list[int], int]:
        line, done, at_work, most = Line(), list[int](), 0, 0

        async def work(number: int) -> None:
            nonlocal at_work, most
            async with line.turn():
                at_work += 1
                most = max(most, at_work)
                await asyncio.sleep(0)
                at_work -= 1
                done.append(number)

        await asyncio.gather(*map(work, range(20)))
        return done, most

    assert asyncio.run(go()) == ([*range(20)], 2)


def test_a_line_that_is_too_long_refuses_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(load, "SMOOTHING", 1.0)
    monkeypatch.setattr("memoranda.server.load.time.monotonic", lambda: now)

    async def go() -> Overloaded:
        nonlocal now
        line, go_on = Line(), asyncio.Event()

        async def work() -> None:
            async with line.turn():
                await go_on.wait()

        tasks = [asyncio.create_task(work()) for _ in range(AT_WORK + 2)]
        await asyncio.sleep(0)
        now = 4.0  # a request takes as long
        tasks[0].cancel()
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(work()))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded) as caught:
            await work()
        go_on.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        return caught.value

    refused = asyncio.run(go())
    assert (refused.status, refused.code, refused.retry_after) == (503, "overloaded", 8.0)


def test_a_request_that_waits_too_long_is_503_and_health_is_answered(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load, "AT_WORK", 0)
    monkeypatch.setattr(load, "LONGEST_WAIT", 0.01)
    house = opened()
    answer = house.request("GET", "/v1/memories")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")
    assert answer.headers["retry-after"] == "1"
    assert house.request("GET", "/healthz").status_code == 200


def test_bodies_are_bounded_together_and_one_alone_is_read() -> None:
    bodies = Bodies(100)
    with bodies.body() as large:
        large.take(90)
        large.take(90)
        with bodies.body() as other, pytest.raises(Overloaded, match="max_buffered_bytes"):
            other.take(1)
    assert bodies.bytes == 0
    with bodies.body() as one, bodies.body() as two:
        one.take(60)
        two.take(40)
        with pytest.raises(Overloaded):
            one.take(1)
    assert bodies.bytes == 0


class Sender:
    """A client that announces 90 bytes and sends them when it is told to; `reading` reads them as the server does."""

    def __init__(self, bodies: Bodies) -> None:
        self.messages = asyncio.Queue[dict[str, Any]]()
        self.reading = asyncio.create_task(self._read(bodies))

    async def _read(self, bodies: Bodies) -> int | str:
        with bodies.body() as body:
            try:
                headers = {"content-length": "90", "expect": "100-continue"}
                return len(await read_body(self.messages.get, headers, 90, 30.0, body=body))
            except Refused as exc:
                return exc.code

    async def send(self, size: int, *, more: bool = True) -> None:
        self.messages.put_nowait({"type": "http.request", "body": b"x" * size, "more_body": more})
        for _ in range(10):
            await asyncio.sleep(0)


def test_what_is_announced_and_not_sent_takes_no_room() -> None:
    async def go() -> int | str:
        bodies = Bodies(100)
        idle = [Sender(bodies) for _ in range(20)]
        sender = Sender(bodies)
        await sender.send(90, more=False)
        for each in idle:
            each.reading.cancel()
        await asyncio.gather(*(each.reading for each in idle), return_exceptions=True)
        return await sender.reading

    assert asyncio.run(go()) == 90


def test_of_bodies_that_arrive_together_the_first_is_read() -> None:
    async def go() -> tuple[list[int | str], int]:
        bodies, most = Bodies(100), 0
        senders = [Sender(bodies) for _ in range(4)]
        for left in (60, 30, 0):
            for each in senders:
                await each.send(30, more=left > 0)
                most = max(most, bodies.bytes)
        assert bodies.bytes == 0
        return [await each.reading for each in senders], most

    results, most = asyncio.run(go())
    assert results == [90, "overloaded", "overloaded", "overloaded"]
    assert most <= 100


def test_a_body_that_stalls_makes_room_for_one_that_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> list[int | str]:
        bodies = Bodies(100)
        stalled, idle, sender = (Sender(bodies) for _ in range(3))
        await stalled.send(80)
        monkeypatch.setattr(load, "STALLED", -1.0)
        await sender.send(90, more=False)
        monkeypatch.undo()
        await idle.send(50, more=False)
        return [await each.reading for each in (stalled, idle, sender)]

    assert asyncio.run(go()) == ["overloaded", 50, 90]


def test_a_body_beside_too_many_others_is_503(opened: Any) -> None:
    house = opened(server={"max_buffered_bytes": 1_000})
    with house.app.state.answers.bodies.body() as other:
        other.take(990)
        answer = house.request("POST", "/v1/memories", json={"content": "the kettle is green"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    assert "server.max_buffered_bytes" in answer.json()["error"]["message"]
    house.add("x" * 2_000)


def test_wrong_keys_are_answered_later_and_later() -> None:
    wrong = WrongKeys()
    delays = [wrong.delay("192.0.2.1", now=10.0) for _ in range(FREE + 8)]
    assert delays == [*[0.0] * FREE, 0.1, 0.2, 0.4, 0.8, 1.6, 3.0, 3.0, 3.0]
    assert wrong.delay("192.0.2.2", now=10.0) == 0.0
    assert wrong.delay("192.0.2.1", now=71.0) == 0.0


@pytest.mark.parametrize(
    ("key", "method", "status", "name"), [("wrong", "GET", 401, None), ("key-ada", "POST", 403, "ada")]
)
def test_who_is_refused_is_logged(
    opened: Any, caplog: pytest.LogCaptureFixture, key: str, method: str, status: int, name: str | None
) -> None:
    house = opened(keys=KEYS)
    with caplog.at_level(logging.INFO, "memoranda.http"):
        answer = house.request(
            method, "/v1/memories", key=key, client=("192.0.2.7", 5), json={"content": "a"}
        )
    assert answer.status_code == status
    line = vars(caplog.records[-1])
    assert (line["levelname"], line["address"], line["key"]) == ("WARNING", "192.0.2.7", name)


async def app(scope: Any, receive: Any, send: Any) -> None:
    if scope["path"] == "/wait":
        await receive()
        await asyncio.sleep(30)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})


class Listening:
    """A server of connections, of which there may be `most`."""

    def __init__(self, most: int) -> None:
        protocol: Any = partial(Connection, most=most, idle={})
        config = uvicorn.Config(app, port=0, http=protocol, lifespan="off", log_level="critical")
        self.server = uvicorn.Server(config)

    async def __aenter__(self) -> Listening:
        self.task = asyncio.create_task(self.server.serve())
        while not self.server.started:
            await asyncio.sleep(0.01)
        self.port = self.server.servers[0].sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.server.force_exit = self.server.should_exit = True
        await self.task

    async def sent(self, data: bytes) -> asyncio.StreamReader:
        """What comes back on a new connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(data)
        await writer.drain()
        self.writers = [*getattr(self, "writers", ()), writer]
        return reader


def request(path: str) -> bytes:
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def test_half_a_request_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "FIRST_REQUEST", 0.1)
    monkeypatch.setattr(connections, "KEEP_ALIVE", 0.1)

    async def go() -> tuple[bytes, bytes]:
        async with asyncio.timeout(20), Listening(10) as listening:
            half = await listening.sent(request("/")[:-2])
            second = await listening.sent(request("/") + request("/")[:-2])
            return await half.read(), await second.read()

    half, second = asyncio.run(go())
    assert half == b""
    assert second.count(b"200 OK") == 1


def test_a_new_connection_takes_the_place_of_the_one_that_is_idle_for_longest() -> None:
    async def go() -> None:
        async with asyncio.timeout(20), Listening(2) as listening:
            first = await listening.sent(request("/"))
            await first.readuntil(b"\r\n\r\n")
            second = await listening.sent(request("/"))
            await second.readuntil(b"\r\n\r\n")
            third = await listening.sent(request("/wait"))
            assert await first.read() == b""
            await listening.sent(request("/wait"))
            assert await second.read() == b""
            refused = await listening.sent(b"")
            assert await refused.read() == FULL
            assert not third.at_eof()

    asyncio.run(go())
