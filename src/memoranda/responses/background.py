"""Background responses: durable jobs whose events are stored, so that any client can follow them later."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from memoranda.responses import records
from memoranda.responses.event_replay import folded
from memoranda.responses.event_store import Keeping, add_events, events_of, next_number
from memoranda.responses.events import Event
from memoranda.responses.observing import Heard
from memoranda.responses.records import NewResponse, ResponseRow, response_of
from memoranda.responses.runs import ENDING, Run
from memoranda.responses.values import LIVE, Response, ResponseRequest
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.job_kinds import Run as Job
from memoranda.types import Subject

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
