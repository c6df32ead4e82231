"""Size and time: what is too large is refused before it is read, what is too slow is given up, writes never are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from memoranda.server.errors import ClientGone, Refused
from memoranda.server.load import DRAIN_BYTES, read_body
from support.waiting import until


class Body:
    """A body as a server hands it over, and how much of it was taken."""

    def __init__(self, *pieces: bytes, wait: float = 0.0, gone: bool = False) -> None:
        self.pieces = list(pieces)
        self.wait = wait
        self.gone = gone
        self.taken = 0

    async def receive(self) -> dict[str, Any]:
        await asyncio.sleep(self.wait)
        if not self.pieces and self.gone:
            return {"type": "http.disconnect"}
        piece = self.pieces.pop(0) if self.pieces else b""
        self.taken += len(piece)
        return {"type": "http.request", "body": piece, "more_body": bool(self.pieces) or self.gone}


def read(body: Body, headers: dict[str, str] | None = None, most: int = 10, **options: Any) -> bytes:
    return asyncio.run(read_body(body.receive, headers or {}, most, options.pop("patience", 5.0), **options))


def refusal(body: Body, headers: dict[str, str] | None = None, **options: Any) -> tuple[int, str]:
    with pytest.raises(Refused) as caught:
        read(body, headers, **options)
    return caught.value.status, caught.value.code


def test_a_body_of_the_limit_is_read_and_one_byte_more_is_not() -> None:
    assert read(Body(b"12345", b"67890")) == b"1234567890"
    assert refusal(Body(b"12345", b"67890", b"1")) == (413, "request_too_large")
    assert refusal(Body(b"12345678901"), {"content-length": "11"}) == (413, "request_too_large")
    assert read(Body()) == b""


def test_a_body_that_is_announced_too_large_and_waits_to_be_asked_is_not_read() -> None:
    body = Body(b"12345678901")
    assert refusal(body, {"content-length": "11", "expect": "100-continue"}) == (413, "request_too_large")
    assert body.taken == 0


def test_a_body_that_is_announced_larger_than_is_thrown_away_is_not_read() -> None:
    body = Body(b"12345678901")
    assert refusal(body, {"content-length": str(DRAIN_BYTES + 1)}) == (413, "request_too_large")
    assert body.taken == 0


def test_a_body_without_end_is_not_drained_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.server.load.DRAIN_BYTES", 50)
    body = Body(*[b"1234567890"] * 100)
    assert refusal(body) == (413, "request_too_large")
    assert body.taken <= 80


def test_a_slow_body_is_408_and_a_long_one_only_has_to_keep_arriving() -> None:
    slow = {"wait": 0.05}
    assert refusal(Body(b"1", b"2", b"3", b"4", **slow), patience=0.12) == (408, "request_timeout")
    assert read(Body(b"1", b"2", b"3", b"4", **slow), patience=0.12, long=True) == b"1234"
    assert refusal(Body(b"1", wait=0.3), patience=0.1, long=True) == (408, "request_timeout")


def test_headers_that_make_no_sense() -> None:
    assert refusal(Body(b"1"), {"content-length": "x"}) == (400, "invalid_value")
    assert refusal(Body(b"1"), {"content-encoding": "gzip"}) == (415, "unsupported_encoding")


def test_a_client_that_hangs_up_is_not_answered() -> None:
    with pytest.raises(ClientGone):
        read(Body(b"1", gone=True))


def test_a_body_in_chunks_is_counted(opened: Any) -> None:
    house = opened(server={"max_body_bytes": 1000})

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"a" * 10

    answer = house.request("POST", "/v1/memories", content=chunks())
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "request_too_large")


def slowed(house: Any, monkeypatch: pytest.MonkeyPatch, name: str) -> threading.Event:
    """The embedder waits for the event before it goes on."""
    go = threading.Event()
    embedder = house.memoranda.core.embedder.inner
    compute = embedder.compute

    def late(*given: Any) -> Any:
        go.wait(10)
        return compute(*given)

    monkeypatch.setattr(embedder, name, late)
    return go


def test_a_read_that_takes_too_long_is_504(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    house = opened(server={"request_timeout": 0.2})
    go = slowed(house, monkeypatch, "compute")
    answer = house.request("POST", "/v1/memories/search", json={"query": "a"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
    go.set()


def test_a_write_that_takes_too_long_is_504_and_goes_on(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    house = opened(server={"request_timeout": 0.2})
    go = slowed(house, monkeypatch, "compute")
    answer = house.request("POST", "/v1/memories", json={"content": "slow but sure"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
    assert house.request("POST", "/v1/memories/count").json()["count"] == 0
    go.set()
    house.portal.call(house.app.state.answers.drain())
    assert house.request("POST", "/v1/memories/count").json()["count"] == 1


def test_a_client_that_hangs_up_does_not_cancel_its_write(
    opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = opened()
    go = slowed(house, monkeypatch, "compute")
    scope = {
        "type": "http", "method": "POST", "path": "/v1/memories", "raw_path": b"/v1/memories", "query_string": b"",
        "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 1),
        "scheme": "http", "http_version": "1.1", "root_path": "",
    }  # fmt: skip

    async def hang_up() -> None:
        body = Body(b'{"content": "slow but sure"}')
        task = asyncio.create_task(house.app(scope, body.receive, nowhere))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.wait([task])

    async def nowhere(message: Any) -> None:
        return None

    house.portal.call(hang_up())
    go.set()
    until(lambda: house.request("POST", "/v1/memories/count").json()["count"] == 1, "the write")
