"""Background responses: durable jobs whose events are stored, so that any client can follow them later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from memoranda.errors import Conflict, MemorandaError, StorageError
from memoranda.responses import records
from memoranda.responses.events import Event, folded
from memoranda.responses.observing import Heard, stored
from memoranda.responses.records import NewResponse, ResponseRow, encoded, response_of
from memoranda.responses.runs import ENDING, Run
from memoranda.responses.values import LIVE, Response, ResponseRequest
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.core import Core
from memoranda.store.job_kinds import Run as Job
from memoranda.types import Subject

log = logging.getLogger("memoranda.responses")
T = TypeVar("T")
FLUSH_SECONDS = 0.05
"""How long events are gathered before they are stored; a killed process loses the events of at most this time."""
AGAIN_SECONDS = 0.5
"""After how long a write that failed is tried again."""
WATCH_SECONDS = 1.0
"""How often a silent response is polled, if another process may end it."""
_line = msgspec.json.Decoder(Event)


class Keeping:
    """Stores the events of one run. The run is left when another process has ended the response, or deleted it.

    `flushed` is set whenever events were stored, and is then replaced by a new event."""

    def __init__(self, core: Core, run: Run, row: ResponseRow) -> None:
        self.run = run
        self.flushed = asyncio.Event()
        self._core = core
        self._key = (row.tenant_id, row.id)
        self._failure: MemorandaError | None = None
        self._pending: list[Event] = []
        self._lock = asyncio.Lock()

    async def whole(self) -> None:
        """Stores events until the run has ended.

        Raises:
            MemorandaError: how it ended could not be stored.
        """
        tasks = [asyncio.create_task(self._flush())]
        if self._core.store.db.shared:
            tasks.append(asyncio.create_task(self._watch()))
        try:
            await self.run.done()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.check()

    def check(self) -> None:
        """Raises the error that prevented the end from being stored, if there was one."""
        failure = self._failure if self.run.left else None if self.run.stored else self.run.failure
        if failure is not None:
            raise failure

    async def end(self, new: NewResponse, heard: Heard | None) -> None:
        """Stores the end of the run in one transaction with its last events and messages.

        Raises:
            MemorandaError: it was not stored.
        """
        async with self._lock:
            self.run.tell_end()
            events = self._taken()

            def work(c: Connection) -> bool:
                ended = records.end(c, new)
                if ended:
                    add_events(c, *self._key, events)
                return ended

            await stored(self._core, self._key[0], work, heard)
            self._notify()

    async def _flush(self) -> None:
        async for batch in self.run:
            self._pending += batch
            await asyncio.sleep(FLUSH_SECONDS)
            try:
                live = await self._store()
            except MemorandaError as exc:
                log.error("events of the response %s are not stored: %s", self._key[1], exc)
                self._failure, live = exc, False
            if not live:
                await self.run.leave()
                return

    async def _store(self) -> bool:
        """Store pending events. Return False if the response has ended or is deleted."""
        while True:
            async with self._lock:
                if self.run.left or not (events := self._taken()):
                    return True
                work = partial(keep, tenant=self._key[0], response_id=self._key[1], events=events)
                try:
                    live = await self._write(work)
                    self._notify()
                    return live
                except StorageError as exc:
                    log.warning("the events of %s wait for their rows: %s", self._key[1], exc)
                    self._pending = events
            await asyncio.sleep(AGAIN_SECONDS)

    async def _watch(self) -> None:
        read, key = self._core.store.db.read, self._key
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                status = await self._core.threads.run(read, lambda c: c.one("response_status", key), key[0])
            except StorageError:  # it may come back
                continue
            if status is None or status[0] not in LIVE:
                await self.run.leave()

    def _taken(self) -> list[Event]:
        taken, self._pending = [*self._pending, *self.run.taken()], []
        return taken

    async def _write(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.result(self._core.store.db.write(work, tenant=self._key[0]))

    def _notify(self) -> None:
        self.flushed.set()
        self.flushed = asyncio.Event()


def keep(c: Connection, tenant: str, response_id: str, events: Sequence[Event]) -> bool:
    """Store events of a live response. Return False if it is not live.

    Raises:
        Conflict: another process has stored events of these numbers.
    """
    row = c.one("hold_response", [tenant, response_id])
    if row is None or row[0] not in LIVE:
        return False
    if row[0] == "queued" and any(event["type"] == "response.in_progress" for event in events):
        c.run("begin_response", [tenant, response_id])
    add_events(c, tenant, response_id, events)
    return True


def add_events(c: Connection, tenant: str, response_id: str, events: Sequence[Event]) -> None:
    """Stores events after those that are there.

    Raises:
        Conflict: another process has stored events of these numbers.
    """
    if not events:
        return
    first, last = events[0]["sequence_number"], events[-1]["sequence_number"]
    if first != next_number(c, tenant, response_id):
        raise Conflict(f"the response {response_id} is made by another process, too")
    lines = "\n".join(encoded(event) for event in events)
    c.run("add_events", [tenant, response_id, first, last, lines])


def next_number(c: Connection, tenant: str, response_id: str) -> int:
    """The number of the event that comes after those that are stored."""
    row = c.one("last_event", [tenant, response_id])
    return 0 if row is None else int(row[0]) + 1


def events_of(rows: Sequence[Row]) -> list[Event]:
    """The events in rows of `events_after`."""
    return [_line.decode(line) for row in rows for line in row[2].split("\n")]


RESPOND_JOB = "responses.create"
LOOK_SECONDS = 0.25
"""How often a response that another process makes is polled."""
INTERRUPTED = "The response was interrupted while it was made; what it had begun is not repeated. Ask again."
ENDED = frozenset({"response.completed", "response.incomplete", "response.failed"})
BEFORE_OUTPUT = frozenset({"response.created", "response.queued", "response.in_progress"})
Resume = Callable[[Subject, ResponseRequest, Response, int], Awaitable[Run]]


class Background:
    """The background responses that this process queues, makes and follows. `resume` starts a queued one."""

    def __init__(self, core: Core, resume: Resume) -> None:
        self._core = core
        self._resume = resume
        self._starting: dict[str, asyncio.Event] = {}
        self._keeping: dict[str, Keeping] = {}
        self._replays = asyncio.Semaphore(1)
        """Threads that decode events beside each other only delay the event loop."""

    # --- queueing ----------------------------------------------------------------------------------

    async def queue(self, asker: Subject, request: ResponseRequest, new: NewResponse) -> Run:
        """Stores a response with the job that will make it for `asker`, and its first events. The input is in the
        response alone, so that deleting it deletes that."""
        run = Run(new.response, request.include)
        run.queued()
        jobs, tenant, id_ = self._core.jobs, new.subject.tenant_id, new.response.id
        body = msgspec.to_builtins(msgspec.structs.replace(request, input=None))
        payload = {"id": id_, "request": body, "subject": msgspec.to_builtins(asker)}
        events = run.taken()

        def work(c: Connection) -> None:
            records.add(c, new)
            add_events(c, tenant, id_, events)
            jobs.place(c, tenant, RESPOND_JOB, payload)

        await self._core.threads.result(self._core.store.db.write(work, jobs.woken(RESPOND_JOB), tenant))
        return run

    # --- making ------------------------------------------------------------------------------------

    async def make(self, job: Job) -> dict[str, Any] | None:
        """The job: makes a queued response, and returns its status; None if it has ended or is deleted."""
        id_ = job.payload.get("id", "")
        cancelled = self._starting[id_] = asyncio.Event()
        try:
            begun = await self._begin(job, cancelled)
        finally:
            if self._starting.get(id_) is cancelled:
                del self._starting[id_]
        if not isinstance(begun, Keeping):
            return begun
        try:
            await begun.whole()
        except asyncio.CancelledError:
            await asyncio.shield(self._part_with(begun.run, job))
            raise
        finally:
            begun.flushed.set()
            if self._keeping.get(id_) is begun:
                del self._keeping[id_]
        return {"status": begun.run.response.status}

    async def _begin(self, job: Job, cancelled: asyncio.Event) -> Keeping | dict[str, Any] | None:
        """Start a response; return the result of the job if there is nothing to make, or if meanwhile it is
        `cancelled`: the model is not asked."""
        row, events = await self._row_and_events(job)
        if row is None or not row.live:
            return None
        if any(event["type"] not in BEFORE_OUTPUT for event in events):
            await self._end(row, lambda run: run.failed(INTERRUPTED))
            return {"status": "failed"}
        request = msgspec.convert(job.payload["request"], ResponseRequest)
        request.input = row.input_items
        subject = msgspec.convert(job.payload["subject"], Subject)
        first = events[-1]["sequence_number"] + 1 if events else 0
        run = await self._resume(subject, request, response_of(row), first)
        if cancelled.is_set():
            await run.leave()
            # `cancel` may have failed to store the end
            await self._end(row, lambda ended: ended.cancelled())
            return {"status": "cancelled"}
        keeping = self._keeping[row.id] = Keeping(self._core, run, row)
        return keeping

    async def _part_with(self, run: Run, job: Job) -> None:
        """The process ends, or another one has the job. A response with reported output fails; one without output is
        left to another process."""
        if job.lost or not run.response.output:
            await run.leave()
        else:
            run.abandon(ENDING)
            await run.done()

    async def _row_and_events(self, job: Job) -> tuple[ResponseRow | None, list[Event]]:
        key = [job.tenant, job.payload.get("id", "")]

        def read(c: Connection) -> tuple[ResponseRow | None, list[Event]]:
            row = c.one("get_response", key)
            return (None if row is None else ResponseRow._make(row)), events_of(
                c.all("events_after", [*key, -1])
            )

        return await self._core.threads.run(self._core.store.db.read, read, job.tenant)

    def given_up(self, c: Connection, job: Job, reason: str) -> None:
        """The job failed for good: so did the response."""
        row = c.one("get_response", [job.tenant, job.payload.get("id", "")])
        if row is not None:
            _end(c, ResponseRow._make(row), lambda run: run.failed(reason))

    # --- ending ------------------------------------------------------------------------------------

    async def end(self, new: NewResponse, heard: Heard | None) -> None:
        """Stores the end of a response that is made here, with its last events and messages.

        Raises:
            MemorandaError: it was not stored.
        """
        await self._keeping[new.response.id].end(new, heard)

    async def cancel(self, row: ResponseRow) -> None:
        """Ends a response that is under way, here or in another process.

        Raises:
            MemorandaError: its end was not stored.
        """
        if (cancelled := self._starting.get(row.id)) is not None:
            cancelled.set()
        if (keeping := self._keeping.get(row.id)) is None:
            await self._end(row, lambda run: run.cancelled())
            return
        keeping.run.abandon()
        await keeping.run.done()
        keeping.check()

    async def _end(self, row: ResponseRow, tell: Callable[[Run], None]) -> None:
        write = self._core.store.db.write(lambda c: _end(c, row, tell), tenant=row.tenant_id)
        await self._core.threads.result(write)

    # --- following ---------------------------------------------------------------------------------

    async def following(self, row: ResponseRow, after: int) -> AsyncIterator[list[Event]]:
        """The events of a response after a number, up to its last one: read from where they are stored, so that it does
        not matter which process makes it. Ends without a last one when the response is deleted."""
        while True:
            keeping = self._keeping.get(row.id)
            flushed = None if keeping is None else keeping.flushed
            live, events = await self._news(row, after)
            if events:
                after = events[-1]["sequence_number"]
                yield events
            if not live:
                return
            await _either(flushed, LOOK_SECONDS)

    async def _news(self, row: ResponseRow, after: int) -> tuple[bool, list[Event]]:
        """Return whether the response is live, and its new events, from one read."""
        key = [row.tenant_id, row.id]

        def read(c: Connection) -> tuple[bool, list[Event]]:
            events = events_of(c.all("events_after", [*key, after]))
            status = c.one("response_status", key)
            live = status is not None and status[0] in LIVE
            return live, [event for event in events if event["sequence_number"] > after]

        async with self._replays:
            return await self._core.threads.run(self._core.store.db.read, read, row.tenant_id)


async def _either(flushed: asyncio.Event | None, seconds: float) -> None:
    """Waits until something was stored, or for some time."""
    if flushed is None:
        await asyncio.sleep(seconds)
        return
    try:
        async with asyncio.timeout(seconds):
            await flushed.wait()
    except TimeoutError:
        return


def _end(c: Connection, row: ResponseRow, tell: Callable[[Run], None]) -> None:
    """Writes the end of a response that no process makes, with its reported output and its last event. Does nothing
    if it has ended."""
    key = [row.tenant_id, row.id]
    if c.one("hold_response", key) is None:
        return
    run = Run(response_of(row), None, next_number(c, *key))
    run.response.output = folded(events_of(c.all("events_after", [*key, -1])))
    tell(run)
    subject = Subject(tenant_id=row.tenant_id, user_id=row.user_id)
    new = NewResponse(
        subject=subject, response=run.response, input=row.input_items, session_id=row.session_id
    )
    if records.end(c, new):
        add_events(c, row.tenant_id, row.id, run.taken())
