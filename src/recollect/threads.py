"""The bridge between coroutines and threads: blocking work one hop away, futures awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from recollect.errors import StorageError

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """Worker threads for reading rows and searching; each keeps its own database connection."""

    def __init__(self, workers: int = 8) -> None:
        self._pool = ThreadPoolExecutor(workers, thread_name_prefix="recollect-reader")
        self._ended = False

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The result of `work`, run on a worker thread.

        Raises:
            StorageError: the threads have ended.
        """
        if self._ended:
            raise StorageError("the folder is closed; open it again")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, lambda: work(*args, **kwargs))

    async def result(self, future: Future[T]) -> T:
        """The result of a future made elsewhere. A caller that is cancelled does not cancel the work: a write
        that was queued is written."""
        return await asyncio.shield(asyncio.wrap_future(future))

    def close(self) -> None:
        """Waits for work in flight, then ends the threads. Idempotent."""
        self._ended = True
        self._pool.shutdown(wait=True)
