"""Blocking work of async callers that are cancelled."""

from __future__ import annotations

import asyncio
from concurrent.futures import CancelledError
from threading import Event, get_ident

import pytest

from memoranda.concurrency.threads import Threads, until_cancelled
from memoranda.errors import StorageError


def test_a_cancelled_caller_stops_long_work() -> None:
    threads, begun, ended = Threads(1), Event(), Event()

    def work(stopped: Event) -> None:
        begun.set()
        assert stopped.wait(20)
        ended.set()

    async def cancelled() -> None:
        task = asyncio.create_task(threads.run_stoppable(work))
        await asyncio.to_thread(begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    threads.close()
    assert ended.is_set()


def test_work_that_is_not_cancelled_returns_its_result() -> None:
    threads = Threads(1)
    assert asyncio.run(threads.run_stoppable(lambda stopped, n: (stopped.is_set(), n), 2)) == (False, 2)
    threads.close()


def test_no_item_comes_after_stopping() -> None:
    stopped = Event()
    items = until_cancelled(stopped, [1, 2])
    assert next(items) == 1
    stopped.set()
    with pytest.raises(CancelledError):
        next(items)


def test_ready_work_runs_on_the_loop_and_lets_others_in_between() -> None:
    threads, order = Threads(1), list[str]()

    async def other() -> None:
        for _ in range(4):
            order.append("other")
            await asyncio.sleep(0)

    async def work() -> int:
        return await threads.soon(True, lambda: order.append("work") or get_ident())  # type: ignore[func-returns-value]

    async def both() -> list[int]:
        *idents, _ = await asyncio.gather(work(), work(), other())
        return [ident for ident in idents if ident is not None]

    assert asyncio.run(both()) == [get_ident()] * 2
    first, last = [at for at, name in enumerate(order) if name == "work"]
    assert "other" in order[first:last]
    assert asyncio.run(threads.soon(False, get_ident)) != get_ident()
    threads.close()
    with pytest.raises(StorageError):
        asyncio.run(threads.soon(True, get_ident))


def test_work_that_is_begun_keeps_nobody_waiting_and_its_error_is_dropped() -> None:
    threads, allowed, ended = Threads(1), Event(), Event()

    def work() -> None:
        assert allowed.wait(20)
        ended.set()
        raise ValueError("for nobody")

    threads.begin(work)
    assert not ended.is_set()
    allowed.set()
    threads.close()
    assert ended.is_set()
    with pytest.raises(StorageError):
        threads.begin(work)
