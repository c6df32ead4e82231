"""Blocking calls of async code, for callers without an event loop. Async code is written once; the portal runs it."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from memoranda.errors import StorageError

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", covariant=True)


class Runner(Protocol):
    """Runs async code for callers without an event loop."""

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine."""

    def following(self, pieces: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an async iterator, which is closed with this one."""


class Portal:
    """An event loop on a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._taking = threading.Lock()
        """Locked while a call is put on the loop. No call is put there once `close` has begun."""
        self._closed = False
        self._process = os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, name="memoranda-loop", daemon=True)
        self._thread.start()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine, run on the loop while the caller waits; Ctrl-C cancels it.

        Raises:
            StorageError: the portal is closed, was closed before the work had ended, or belongs to the process that
                this one was forked from, where its thread is.
        """
        if not self.in_its_process:
            work.close()
            raise StorageError("the folder was opened before a fork; open it in the process that uses it")
        answer: Future[T] | None = None
        try:
            with self._taking:
                if not self.alive:
                    work.close()
                    raise StorageError("the folder is closed; open it again")
                answer = asyncio.run_coroutine_threadsafe(work, self._loop)
            return answer.result()
        except CancelledError as exc:
            raise StorageError("the folder was closed before this had ended") from exc
        except KeyboardInterrupt:
            if answer is not None:
                answer.cancel()
            raise

    def following(self, pieces: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an async iterator, which is closed with this one, also if Ctrl-C ends the wait for one."""
        waiting: list[asyncio.Task[Any]] = []

        async def more() -> list[T]:
            waiting[:] = [task for task in (asyncio.current_task(),) if task is not None]
            return await _next(pieces)

        async def end(opened: AsyncGenerator[T, None]) -> None:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await opened.aclose()

        try:
            while taken := self.call(more()):
                yield taken[0]
        finally:
            if isinstance(pieces, AsyncGenerator) and self.alive:
                self.call(end(pieces))

    @property
    def in_its_process(self) -> bool:
        """Return True in the process that has its thread; False in a fork."""
        return os.getpid() == self._process

    @property
    def alive(self) -> bool:
        """Return True if the portal takes calls."""
        return not self._closed

    def close(self) -> None:
        """End the loop and cancel the calls that still wait on it; in a fork of the process, do nothing. Idempotent."""
        if not self.in_its_process:
            return
        with self._taking:
            if self._closed:
                return
            self._closed = True
            rest = asyncio.run_coroutine_threadsafe(_cancel_the_rest(), self._loop)
        rest.result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class LoopPortal(Portal):
    """The event loop that the caller's coroutines run on, for threads beside it."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._taking = threading.Lock()
        self._process = os.getpid()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine, run on the loop while the calling thread waits.

        Raises:
            InvalidStateError: the caller runs on the loop, which would wait for itself.
            StorageError: the loop ended before the work had.
        """
        try:
            running: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is self._loop:
            work.close()
            raise asyncio.InvalidStateError(
                "a blocking call on the event loop; await the async method instead"
            )
        return super().call(work)

    @property
    def alive(self) -> bool:
        """Return True if the loop runs."""
        return self._loop.is_running()

    def close(self) -> None:
        """Does nothing: the loop belongs to the caller."""


class Inline:
    """Runs coroutines that wait for no event loop, on the thread of the caller."""

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a coroutine.

        Raises:
            RuntimeError: it waits for an event loop.
        """
        try:
            work.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        work.close()
        raise RuntimeError("this waits for an event loop, and a blocking caller has none")

    def following(self, pieces: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an async iterator, which is closed with this one."""
        try:
            while taken := self.call(_next(pieces)):
                yield taken[0]
        finally:
            if isinstance(pieces, AsyncGenerator):
                self.call(pieces.aclose())


async def _next(pieces: AsyncIterator[T]) -> list[T]:
    async for piece in pieces:
        return [piece]
    return []


async def _cancel_the_rest() -> None:
    rest = asyncio.all_tasks() - {asyncio.current_task()}
    for task in rest:
        task.cancel()
    await asyncio.gather(*rest, return_exceptions=True)


class Carried(Protocol[S]):
    """What `blocking` needs of an object: the async one it stands for, and the portal."""

    @property
    def inner(self) -> S:
        """The async object."""

    @property
    def portal(self) -> Runner:
        """What runs its coroutines."""


def blocking(
    verb: Callable[Concatenate[S, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Carried[S], P], T]:
    """Return a blocking version of an async method, which a class of the object may override, with the same
    signature."""
    name = verb.__name__

    def call(self: Carried[S], /, *args: P.args, **kwargs: P.kwargs) -> T:
        work: Coroutine[Any, Any, T] = getattr(self.inner, name)(*args, **kwargs)
        return self.portal.call(work)

    call.__name__ = name
    call.__doc__ = verb.__doc__
    return call
