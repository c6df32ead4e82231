"""A running response: its events as they come, its end, and its cancellation."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import msgspec

from memoranda.errors import InvalidInput, MemorandaError, ModelRefused, SpendingLimit
from memoranda.responses.events import Event, EventEmitter
from memoranda.responses.values import Response

log = logging.getLogger("memoranda.responses")
Work = Callable[["Run"], Awaitable[None]]
"""Makes the response: sets its status, or raises."""
Store = Callable[["Run"], Awaitable[None]]
UNEXPECTED = "The server made a mistake and wrote it to its log."
ENDING = "The server was asked to end before the response was complete."
NOT_STORED = "The response could not be stored; it cannot be fetched or continued. Nothing else was changed."


class Run:
    """One response being made. Iterate it for its events, in batches; the iteration ends after the last one. It has one
    consumer, and consumed events are not kept. `response` is the response so far."""

    def __init__(self, response: Response, include: list[str] | None = None, first: int = 0) -> None:
        self.response = response
        self.emitter = EventEmitter(response, self._take, first, include or ())
        self.failure: BaseException | None = None
        """The error, if it failed."""
        self.abandoned = False
        self.stored = False
        """True once its end is stored."""
        self.left = False
        """True if it was left to be made again: no more of it is emitted or stored."""
        self._events: list[Event] = []
        self._more = asyncio.Event()
        self._ended = asyncio.Event()
        self._working = False
        self._end_emitted = False
        self._muted = False
        self._task: asyncio.Task[None] | None = None
        self._reason: str | None = None

    # --- making ------------------------------------------------------------------------------------

    def begin(self, work: Work, store: Store) -> asyncio.Task[None]:
        """Starts making it, in its own task: consumers may go away. The task ends after the last event is emitted."""
        self._task = asyncio.create_task(self._make(work, store), name=self.response.id)
        return self._task

    async def _make(self, work: Work, store: Store) -> None:
        try:
            await self._work(work)
        finally:
            await asyncio.shield(self._close(store))

    async def _work(self, work: Work) -> None:
        response = self.response
        if not response.background:
            self.emitter.state("response.created")
        response.status = "in_progress"
        self.emitter.state("response.in_progress")
        try:
            self._working = True
            if self.abandoned:
                raise asyncio.CancelledError
            await work(self)
        except asyncio.CancelledError:
            response.status = "cancelled"
            if self._reason is not None:
                self._fail("server_error", self._reason)
        except SpendingLimit as exc:
            self.failure = exc
            self._fail("rate_limit_exceeded", str(exc))
        except MemorandaError as exc:
            self.failure = exc
            asked_wrong = isinstance(exc, InvalidInput | ModelRefused)
            self._fail("invalid_prompt" if asked_wrong else "server_error", str(exc))
        except Exception as exc:
            self.failure = exc
            log.error("the response %s failed", response.id, exc_info=exc)
            self._fail("server_error", UNEXPECTED)
        finally:
            self._working = False

    def _fail(self, code: str, message: str) -> None:
        self.response.status = "failed"
        # The AI SDK reads an error that has a type, and of another one only that it is no valid answer.
        self.response.error = {"type": code, "code": code, "message": message}

    async def _close(self, store: Store) -> None:
        """Ends open items, stores the response, then emits the end: a client that receives it can fetch it."""
        try:
            if not self.left:
                await self._end(store)
        finally:
            self._ended.set()
            self._more.set()

    async def _end(self, store: Store) -> None:
        response = self.response
        whole = response.status == "completed"
        self.emitter.end_open("completed" if whole else "incomplete")
        if whole:
            response.completed_at = int(time.time())
        try:
            await store(self)
            self.stored = True
        except Exception as exc:  # any failure is reported to the waiting caller
            self.failure = exc
            known = isinstance(exc, MemorandaError)
            log.error("the response %s could not be stored: %s", response.id, exc, exc_info=not known)
            response.completed_at = None
            self._fail("server_error", NOT_STORED)
        self.tell_end()

    def tell_end(self) -> None:
        """Emits the last event, once. Callers that store the last event with the end call this first."""
        if self._end_emitted:
            return
        self._end_emitted = True
        # The API has no event for a cancelled response: it ends as an incomplete one, whose status says it.
        status = self.response.status
        self.emitter.state(f"response.{'incomplete' if status == 'cancelled' else status}")

    def abandon(self, reason: str | None = None) -> None:
        """Stops the model and the tools when the caller is gone, or has cancelled. The output so far is stored with the
        status `cancelled`; with a `reason` the status is `failed`."""
        if self._task is None or self._ended.is_set() or self.abandoned:
            return
        self.abandoned, self._reason = True, reason
        # A task that was not begun would end without a word, and what has ended is being stored.
        if self._working:
            self._task.cancel()

    async def done(self) -> Response:
        """The response at its end."""
        await self._ended.wait()
        return self.response

    async def begun(self) -> None:
        """Return once there is output, or the end."""
        while not (self.response.output or self._ended.is_set()):
            self._more.clear()
            await self._more.wait()

    async def leave(self) -> None:
        """Stops without an end: another process will make the response again."""
        self.left = True
        self.abandon()
        await self.done()

    # --- without making it -------------------------------------------------------------------------

    def queued(self) -> None:
        """Emits that it is queued; the process that makes it emits the rest."""
        self.response.status = "queued"
        self.emitter.state("response.created")
        self.emitter.state("response.queued")
        self._ended.set()

    def failed(self, reason: str) -> None:
        """Emits that it has failed, after its earlier events."""
        self._fail("server_error", reason)
        self.tell_end()
        self._ended.set()

    def cancelled(self) -> None:
        """Emits that it was cancelled before it was made."""
        self.response.status = "cancelled"
        self.tell_end()
        self._ended.set()

    # --- listening ---------------------------------------------------------------------------------

    def mute(self) -> None:
        """Discards all events from here on, as there is no consumer."""
        self._muted = True
        self._events.clear()

    def _take(self, event: Event) -> None:
        if not self._muted:
            self._events.append(event)
            self._more.set()

    def __aiter__(self) -> AsyncIterator[list[Event]]:
        return self._batches()

    async def _batches(self) -> AsyncIterator[list[Event]]:
        while True:
            if not self._events:
                if self._ended.is_set():
                    return
                await self._more.wait()
            if taken := self.taken():
                yield taken

    def taken(self) -> list[Event]:
        """Return the pending events and remove them."""
        self._more.clear()
        taken, self._events = self._events, []
        return taken

    def shown(self) -> Response:
        """The response as the client asked to see it."""
        output = [self.emitter.visible(item) for item in self.response.output]
        return msgspec.structs.replace(self.response, output=output)
