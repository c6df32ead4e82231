"""Background calls of a model give way to replies on the same endpoint."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

T = TypeVar("T")
STOPPED = 3
"""Times that a background call is stopped for a reply; after that it runs to completion."""
PATIENCE = 120.0
"""Seconds that a background call waits for a moment without replies."""


class Priority:
    """Replies and background calls of one endpoint that answers few calls at once. All on one event loop.

    Replies begin at once. Background calls run one at a time while no reply does. A background call that runs when a
    reply begins is stopped and repeated, at most `STOPPED` times. It waits at most `patience` seconds before each
    attempt, so that it also runs on an endpoint that is never idle.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._replies = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._lock = asyncio.Lock()
        self._running: asyncio.Task[object] | None = None
        self.stopped = 0
        """Background calls that were stopped for a reply."""

    @contextmanager
    def reply(self) -> Iterator[None]:
        """Run a reply: background calls are stopped meanwhile."""
        self._replies += 1
        self._idle.clear()
        if self._running is not None:
            self._running.cancel()
        try:
            yield
        finally:
            self._replies -= 1
            if not self._replies:
                self._idle.set()

    async def background(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `work`, which is called again if it was stopped."""
        async with self._lock:
            for _ in range(STOPPED):
                await self._quiet()
                task = asyncio.ensure_future(work())
                self._running = task
                try:
                    return await asyncio.shield(task)
                except asyncio.CancelledError:
                    if (caller := asyncio.current_task()) is not None and caller.cancelling():
                        task.cancel()
                        await asyncio.wait([task])
                        raise
                    self.stopped += 1
                finally:
                    self._running = None
            await self._quiet()
            return await work()

    async def _quiet(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                await self._idle.wait()
