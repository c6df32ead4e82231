"""Bridge between coroutines and threads: runs blocking work on threads and awaits futures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from threading import Event
from typing import Concatenate, ParamSpec, TypeVar

from memoranda.errors import StorageError

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Worker threads for reading rows and searching; each keeps its own database connection."""

    def __init__(self, workers: int = 8) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="memoranda-reader")
        self._turn = asyncio.Lock()
        """Held until the event loop has come round after work on it."""
        self._ended = False

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `work`, run on a worker thread.

        Raises:
            StorageError: the threads have ended.
        """
        self._check_open()
        return await self.result(self._pool.submit(work, *args, **kwargs))

    def begin(self, work: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Begin `work` on a worker thread without waiting for it. Its errors are dropped: who needs it does it again.

        Raises:
            StorageError: the threads have ended.
        """
        self._check_open()
        self._pool.submit(work, *args, **kwargs)

    async def soon(self, ready: bool, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the result of `work`: on the event loop, if it is `ready`, that is takes a few milliseconds and waits
        for nobody; else as `run`. Between two such works the loop serves what else there is. Under the interpreter lock
        a thread that only computes delays the loop as much, and each change of threads costs both.

        Raises:
            StorageError: the threads have ended.
        """
        if not ready:
            return await self.run(work, *args, **kwargs)
        await self._turn.acquire()
        asyncio.get_running_loop().call_soon(self._turn.release)
        self._check_open()
        return work(*args, **kwargs)

    async def run_stoppable(
        self, work: Callable[Concatenate[Event, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return the result of long `work`, run on a worker thread. Its first argument is set when the caller is
        cancelled; see `until_cancelled`."""
        stopped = Event()
        try:
            return await self.run(work, stopped, *args, **kwargs)
        except asyncio.CancelledError:
            stopped.set()
            raise

    async def result(self, future: Future[T]) -> T:
        """Return the result of a future of another thread. A caller that is cancelled does not cancel the work: a
        queued write is written. (asyncio's own bridge with a shield costs 80 us more each time.)"""
        if future.done():
            return future.result()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()

        def wake(_: Future[T]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop was closed: there is no waiter any more
                loop.call_soon_threadsafe(_settle, waiter)

        future.add_done_callback(wake)
        await waiter
        return future.result()

    def _check_open(self) -> None:
        if self._ended:
            raise StorageError("the folder is closed; open it again")

    def close(self) -> None:
        """Wait for work in flight, then end the threads. Idempotent."""
        self._ended = True
        self._pool.shutdown(wait=True)


def until_cancelled(stopped: Event, items: Iterable[T]) -> Iterator[T]:
    """Yield the items.

    Raises:
        CancelledError: `stopped` is set.
    """
    for item in items:
        if stopped.is_set():
            raise CancelledError
        yield item


def _settle(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
