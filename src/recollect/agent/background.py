"""Responses that nobody waits for: durable jobs, whose events are kept so that anybody may follow them later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec

from recollect.agent import records
from recollect.agent.events import Event
from recollect.agent.records import NewResponse, ResponseRow, encoded, response_of
from recollect.agent.runs import ENDING, Run
from recollect.agent.values import LIVE, Response, ResponseRequest
from recollect.db import Connection, Row
from recollect.jobs import AGENT_LANE
from recollect.jobs import Run as Job
from recollect.memories import Core
from recollect.types import Subject

log = logging.getLogger("recollect.agent")
RESPOND_JOB = "responses.create"
FLUSH_SECONDS = 0.05
"""How long events are gathered before they are stored: what a process that is killed had told is at most this old."""
LOOK_SECONDS = 0.25
"""How often a response that another process makes is looked at."""
INTERRUPTED = (
    "The server ended while the response was being made; what it had begun is not repeated. Ask again."
)
ENDED = frozenset({"response.completed", "response.incomplete", "response.failed"})
TOLD_NOTHING = frozenset({"response.created", "response.queued", "response.in_progress"})
Resume = Callable[[Subject, ResponseRequest, Response, int], Awaitable[Run]]
_line = msgspec.json.Decoder(dict[str, Any])


class Background:
    """The background responses that this process queues, makes and follows. `resume` begins to make one."""

    def __init__(self, core: Core, resume: Resume) -> None:
        self._core = core
        self._resume = resume
        self._runs: dict[str, Run] = {}
        self._kept: dict[str, asyncio.Event] = {}
        core.jobs.handlers[RESPOND_JOB] = self._job
        core.jobs.lanes[RESPOND_JOB] = AGENT_LANE
        core.jobs.endings[RESPOND_JOB] = self._given_up

    # --- queueing ----------------------------------------------------------------------------------

    async def queue(self, request: ResponseRequest, new: NewResponse) -> Run:
        """Stores a response with the job that will make it, and its first events."""
        run = Run(new.response, request.include)
        run.queued()
        jobs, tenant, id_ = self._core.jobs, new.subject.tenant_id, new.response.id
        body = msgspec.to_builtins(msgspec.structs.replace(request, input=list(new.input)))
        payload = {"id": id_, "request": body, "subject": msgspec.to_builtins(new.subject)}
        events = run.taken()

        def work(c: Connection) -> None:
            records.add(c, new)
            keep(c, tenant, id_, events)
            jobs.place(c, tenant, RESPOND_JOB, payload)

        await self._core.threads.result(self._core.store.db.write(work, jobs.woken(RESPOND_JOB), tenant))
        return run

    # --- making ------------------------------------------------------------------------------------

    async def _job(self, job: Job) -> dict[str, Any] | None:
        row, events = await self._core.threads.run(self._held, job)
        if row is None or not row.live:
            return None
        if any(event["type"] not in TOLD_NOTHING for event in events):
            await self._end(row, events, lambda run: run.failed(INTERRUPTED))
            return {"status": "failed"}
        request = msgspec.convert(job.payload["request"], ResponseRequest)
        subject = msgspec.convert(job.payload["subject"], Subject)
        run = await self._resume(subject, request, response_of(row), _next(events))
        self._runs[row.id], self._kept[row.id] = run, asyncio.Event()
        keeping = asyncio.create_task(self._keep(run, row))
        try:
            await run.done()
            await keeping
        except asyncio.CancelledError:
            await asyncio.shield(self._part_with(run, keeping, job))
            raise
        finally:
            self._runs.pop(row.id, None)
            self._kept.pop(row.id).set()
        return {"status": run.response.status}

    async def _part_with(self, run: Run, keeping: asyncio.Task[None], job: Job) -> None:
        """The process ends, or another one has the job. What was told of a response is not taken back: then it has
        failed; otherwise another process makes it."""
        if job.lost or not run.response.output:
            await run.leave()
        else:
            run.abandon(ENDING)
            await run.done()
        await keeping

    def _held(self, job: Job) -> tuple[ResponseRow | None, list[Event]]:
        def read(c: Connection) -> tuple[ResponseRow | None, list[Event]]:
            row = c.one("get_response", [job.tenant, job.payload["id"]])
            kept = c.all("events_after", [job.tenant, job.payload["id"], -1])
            return (None if row is None else ResponseRow._make(row)), _events(kept)

        return self._core.store.db.read(read, job.tenant)

    async def _keep(self, run: Run, row: ResponseRow) -> None:
        """Stores the events of a run as they come, several at once; ends the run when somebody else has ended the
        response, or deleted it."""
        async for batch in run:
            if batch[-1]["type"] not in ENDED:
                await asyncio.sleep(FLUSH_SECONDS)
                batch += run.taken()
            if not await self._stored(row, batch) and batch[-1]["type"] not in ENDED:
                await run.leave()
                return
            if row.id in self._kept:
                self._kept[row.id].set()
                self._kept[row.id] = asyncio.Event()

    async def _stored(self, row: ResponseRow, batch: Sequence[Event]) -> bool:
        """Whether the response is still to be made."""
        tenant = row.tenant_id
        write = self._core.store.db.write(lambda c: keep(c, tenant, row.id, batch), tenant=tenant)
        return await self._core.threads.result(write)

    def _given_up(self, c: Connection, job: Job, reason: str) -> None:
        """The job failed for good: so did the response."""
        held = c.one("get_response", [job.tenant, job.payload["id"]])
        if held is None or not (row := ResponseRow._make(held)).live:
            return
        events = _events(c.all("events_after", [job.tenant, row.id, -1]))
        _end(c, row, events, lambda run: run.failed(reason))

    # --- ending ------------------------------------------------------------------------------------

    async def cancel(self, row: ResponseRow) -> None:
        """Ends a response that is under way, here or in another process."""
        run = self._runs.get(row.id)
        if run is not None:
            run.abandon()
            await run.done()
            return
        await self._end(row, await self._after(row, -1), lambda run: run.cancelled())

    async def _end(self, row: ResponseRow, events: Sequence[Event], tell: Callable[[Run], None]) -> None:
        tenant = row.tenant_id
        write = self._core.store.db.write(lambda c: _end(c, row, events, tell), tenant=tenant)
        await self._core.threads.result(write)

    # --- following ---------------------------------------------------------------------------------

    async def following(self, row: ResponseRow, after: int) -> AsyncIterator[list[Event]]:
        """The events of a response after a number, up to its last one: read from where they are stored, so that it does
        not matter which process makes it."""
        while True:
            live = await self._status(row) in LIVE
            if events := await self._after(row, after):
                after = events[-1]["sequence_number"]
                yield events
                if events[-1]["type"] in ENDED:
                    return
            elif not live:  # its process died between the end and the last event
                if last := await self._last(row, after):
                    yield [last]
                return
            await self._look_again(row)

    async def _look_again(self, row: ResponseRow) -> None:
        if (kept := self._kept.get(row.id)) is None:
            await asyncio.sleep(LOOK_SECONDS)
            return
        try:
            await asyncio.wait_for(kept.wait(), LOOK_SECONDS)
        except TimeoutError:
            return

    async def _after(self, row: ResponseRow, after: int) -> list[Event]:
        key = [row.tenant_id, row.id, after]
        read = self._core.store.db.read
        rows = await self._core.threads.run(read, lambda c: c.all("events_after", key), row.tenant_id)
        return [event for event in _events(rows) if event["sequence_number"] > after]

    async def _row(self, row: ResponseRow) -> ResponseRow | None:
        key = [row.tenant_id, row.id]
        read = self._core.store.db.read
        held = await self._core.threads.run(read, lambda c: c.one("get_response", key), row.tenant_id)
        return None if held is None else ResponseRow._make(held)

    async def _status(self, row: ResponseRow) -> str | None:
        held = await self._row(row)
        return None if held is None else held.status

    async def _last(self, row: ResponseRow, after: int) -> Event | None:
        """The last event, made from the stored response; None when that is gone, or the caller has it already."""
        told = await self._after(row, -1)
        held = await self._row(row)
        if held is None or (told and told[-1]["type"] in ENDED):
            return None
        run = Run(response_of(held), None, max(_next(told), after + 1))
        told_as = "incomplete" if held.status == "cancelled" else held.status
        run.telling.state(f"response.{told_as}")
        return run.taken()[0]


def keep(c: Connection, tenant: str, response_id: str, events: Sequence[Event]) -> bool:
    """Stores events of a response that is still there; whether it is still to be made."""
    held = c.one("get_response", [tenant, response_id])
    if held is None:
        return False
    row = ResponseRow._make(held)
    live = row.live
    if row.status == "queued" and any(event["type"] == "response.in_progress" for event in events):
        c.run("begin_response", [tenant, response_id])
    if events and (live or events[-1]["type"] in ENDED):
        first, last = events[0]["sequence_number"], events[-1]["sequence_number"]
        lines = "\n".join(encoded(event) for event in events)
        c.run("add_events", [tenant, response_id, first, last, lines])
    return live


def _end(c: Connection, row: ResponseRow, events: Sequence[Event], tell: Callable[[Run], None]) -> None:
    """Writes how a response ended that nobody makes, with its last event."""
    response = response_of(row)
    run = Run(response, None, _next(events))
    tell(run)
    subject = Subject(tenant_id=row.tenant_id, user_id=row.user_id)
    new = NewResponse(subject=subject, response=response, input=row.input_items, session_id=row.session_id)
    if records.end(c, new):
        keep(c, row.tenant_id, row.id, run.taken())


def _next(events: Sequence[Event]) -> int:
    return int(events[-1]["sequence_number"]) + 1 if events else 0


def _events(rows: Sequence[Row]) -> list[Event]:
    return [_line.decode(line) for row in rows for line in row[2].split("\n")]
