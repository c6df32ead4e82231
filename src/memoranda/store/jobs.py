"""Durable work: a row per job, leased by a worker, retried with backoff, cancelled between steps.

A job that dies with its process is taken up again by whoever sees its lease run out; its handler finds the
cursor it last reported and goes on from there, so handlers do their work in steps that may be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import random
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from memoranda.clock import moment, now_micros
from memoranda.concurrency.threads import Threads
from memoranda.errors import Conflict, InvalidInput, MemorandaError, NotFound, SpendingLimit, StorageError
from memoranda.storage.sql.base import Connection, Database, Row
from memoranda.store.ids import nameable
from memoranda.text.json import compact_json
from memoranda.types import Job

T = TypeVar("T")
log = logging.getLogger("memoranda.jobs")
SECOND = 1_000_000
LONGEST_WAIT = 300.0
OTHERS_WAIT = 1.0
"""Seconds after which jobs that another process queued are looked for."""
KEPT = 7 * 24 * 3600
DROPPED = 100
"""Old jobs that go when one ends, at most."""
COLUMNS = (
    "tenant_id", "id", "seq", "kind", "lane", "state", "payload", "run_at", "created_at", "updated_at",
)  # fmt: skip
RELEASE_JOB = "memories.release"
"""Goes on with what changes when sources of memories go, where one transaction was too short for it. It completes a
deletion: it cannot be cancelled, and is tried until it succeeds."""
HOUSE_LANE, FILES_LANE, AGENT_LANE, MEMORY_LANE = 0, 1, 2, 3
"""Jobs of a lane wait only for each other: a thousand files never stand before the house's own work."""


class Cancelled(Exception):
    """The job was cancelled; raised out of `Run.report` so that a handler stops between two steps."""


class Postponed(Exception):
    """What the job needs is away: it waits `seconds` and goes on, and this attempt does not count."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(reason)
        self.seconds = seconds


class LeaseLost(Exception):
    """Another worker has the job now: this one was thought dead. Stop at once, report nothing."""


@dataclass(slots=True)
class Run:
    """One attempt at one job, as its handler sees it. `lease` names the attempt in the row; `lost` says that another
    one has the job now."""

    jobs: Jobs
    lease: str
    tenant: str
    id: str
    kind: str
    payload: dict[str, Any]
    cursor: str | None
    done: int
    total: int | None
    attempts: int
    lost: bool = False

    async def report(self, done: int, total: int | None = None, cursor: str | None = None) -> None:
        """Makes progress durable and renews the lease.

        Raises:
            Cancelled: somebody asked for an end.
            LeaseLost: another worker took over.
        """
        self.done, self.total, self.cursor = (
            done,
            total if total is not None else self.total,
            cursor or self.cursor,
        )
        await self.jobs.progress(self)


Handler = Callable[[Run], Awaitable[dict[str, Any] | None]]


Ending = Callable[[Connection, Run, str], None]


class Jobs:
    """The table of jobs and the workers that empty it."""

    def __init__(
        self, db: Database, threads: Threads, *, lease_seconds: float = 60.0, max_attempts: int = 5
    ) -> None:
        self.db = db
        self.threads = threads
        self.lease = int(lease_seconds * SECOND)
        self.max_attempts = max_attempts
        self.handlers: dict[str, Handler] = {}
        self.lanes: dict[str, int] = {}
        """The lane of each kind that is not in the house's."""
        self.endings: dict[str, Ending] = {}
        """What else is written, in the same transaction, when a job of a kind fails for good."""
        self.owner = secrets.token_hex(8)
        self._leases = itertools.count(1)
        self._wake = {lane: asyncio.Event() for lane in (HOUSE_LANE, FILES_LANE, AGENT_LANE, MEMORY_LANE)}
        self._ended = asyncio.Condition()
        self._endings_seen = 0
        """Jobs of this process that have ended."""
        self._working: set[asyncio.Task[None]] = set()
        """A task for each lane that claims its jobs, and one for each job under way."""
        self._stopping = False

    # --- asking ------------------------------------------------------------------------------------

    async def enqueue(
        self,
        tenant: str,
        kind: str,
        payload: dict[str, Any],
        *,
        dedup_key: str | None = None,
        delay: float = 0.0,
    ) -> str:
        """The id of the new job; with `dedup_key`, of the one of that kind and key that is already under way."""

        def work(c: Connection) -> str:
            return self.place(c, tenant, kind, payload, dedup_key=dedup_key, delay=delay)

        return await self.threads.result(self.db.write(work, self.woken(kind), tenant))

    def place(
        self,
        c: Connection,
        tenant: str,
        kind: str,
        payload: dict[str, Any],
        *,
        dedup_key: str | None = None,
        delay: float = 0.0,
    ) -> str:
        """As `enqueue`, in the transaction of `c`, so that the job is there exactly when what it is about is. Give
        `woken` to the write, or call `wake` once that is committed."""
        if kind not in self.handlers:
            raise NotFound(f"no handler for jobs of kind {kind!r}; known: {', '.join(self.handlers)}")
        id_ = f"job_{secrets.token_hex(12)}"
        now = now_micros()
        revs = c.one("draw_revs", [1])
        assert revs is not None
        due, lane = now + int(delay * SECOND), self.lanes.get(kind, HOUSE_LANE)
        values = [tenant, id_, revs[0], kind, dedup_key, lane, compact_json(payload), due, now, now]
        if c.run("add_job", values):
            return id_
        twin = c.one("twin_job", [tenant, kind, dedup_key])
        assert twin is not None
        return str(twin[0])

    def place_many(self, c: Connection, tenant: str, kind: str, payloads: Sequence[dict[str, Any]]) -> None:
        """As `place`, one job for each payload."""
        if kind not in self.handlers:
            raise NotFound(f"no handler for jobs of kind {kind!r}; known: {', '.join(self.handlers)}")
        revs = c.one("draw_revs", [len(payloads)])
        assert revs is not None
        now, first, lane = now_micros(), int(revs[0]) - len(payloads) + 1, self.lanes.get(kind, HOUSE_LANE)
        c.load(
            "jobs",
            COLUMNS,
            [
                (
                    tenant,
                    f"job_{secrets.token_hex(12)}",
                    seq,
                    kind,
                    lane,
                    "queued",
                    compact_json(one),
                    now,
                    now,
                    now,
                )
                for seq, one in enumerate(payloads, first)
            ],
        )

    def wake(self, kind: str) -> None:
        """Lets the workers of a kind look for jobs now."""
        self._wake[self.lanes.get(kind, HOUSE_LANE)].set()

    def wake_all(self) -> None:
        """Lets all workers look for jobs now."""
        for waiting in self._wake.values():
            waiting.set()

    def woken(self, *kinds: str) -> Callable[[object], None]:
        """As `wake`, to be called on the writing thread after the commit: it happens though whoever asked for the write
        is cancelled meanwhile."""
        loop = asyncio.get_running_loop()

        def then(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: the next start looks by itself
                for kind in kinds:
                    loop.call_soon_threadsafe(self.wake, kind)

        return then

    async def get(self, tenant: str, id_: str) -> Job:
        """The job as it stands.

        Raises:
            NotFound: no such job in this tenant.
        """
        row = None
        if nameable(id_):
            row = await self.threads.run(self.db.read, lambda c: c.one("get_job", [tenant, id_]), tenant)
        if row is None:
            raise NotFound(f"no job {id_!r}")
        return _job(row)

    async def list(self, tenant: str, limit: int = 100) -> list[Job]:
        """The tenant's latest jobs, newest first."""
        return [
            _job(row)
            for row in await self.threads.run(
                self.db.read, lambda c: c.all("list_jobs", [tenant, limit]), tenant
            )
        ]

    async def cancel(self, tenant: str, id_: str) -> Job:
        """Cancels a queued job now and a running one between two steps; an ended one stays as it is.

        Raises:
            NotFound: no such job in this tenant.
            Conflict: the job completes a deletion.
        """
        job = await self.get(tenant, id_)
        if job.kind == RELEASE_JOB:
            raise Conflict(
                f"job {id_!r} deletes what was made of deleted memories; it is not cancelled half way"
            )
        now = now_micros()

        def work(c: Connection) -> None:
            held = c.one("told_job", [tenant, id_])
            if c.run("cancel_queued_job", [now, tenant, id_]):
                assert held is not None
                self._end_queued(c, tenant, id_, *held)
            else:
                c.run("cancel_running_job", [now, tenant, id_])

        await self.threads.result(self.db.write(work, tenant=tenant))
        return await self.get(tenant, id_)

    def _end_queued(self, c: Connection, tenant: str, id_: str, kind: str, payload: str) -> None:
        """What is written of the thing that a job was about, which nobody will do now."""
        if kind in self.endings:
            run = Run(self, "", tenant, id_, kind, json.loads(payload), None, 0, None, 0)
            self.endings[kind](c, run, "the job was cancelled")

    async def wait(self, tenant: str, id_: str) -> Job:
        """The job once it has ended, whichever way."""
        while (job := await self.get(tenant, id_)).state in ("queued", "running"):
            async with self._ended:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), 0.5)
        return job

    async def until_ended(
        self, check: Callable[[], Awaitable[T]], done: Callable[[T], bool], seconds: float
    ) -> T:
        """What `check` gives once it is `done`, or after so many seconds. It is asked whenever a job of this process
        has ended; where other processes work too, also twice a second."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            ended = self._endings_seen
            held = await check()
            left = until - loop.time()
            if done(held) or left <= 0:
                return held
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, 0.5) if self.db.shared else left), self._ended:
                    await self._ended.wait_for(lambda ended=ended: self._endings_seen != ended)  # type: ignore[misc]

    async def finish(self, tenant: str, kind: str) -> Sequence[Job]:
        """Does a tenant's jobs of a kind here and now, or waits for the workers that have them; those jobs. One that
        fails stays with the workers, which try it again. Jobs without a key stay."""
        ended: dict[str, Job] = {}
        while True:  # a job may place others
            rows = await self.threads.run(
                self.db.read, lambda c: c.all("jobs_under_way", [tenant, kind]), tenant
            )
            fresh = [str(id_) for id_, _ in rows if id_ not in ended]
            if not fresh:
                return [*ended.values()]
            for id_ in fresh:
                ended[id_] = await self._finished(tenant, id_)

    async def _finished(self, tenant: str, id_: str) -> Job:
        attempted = False
        while (job := await self.get(tenant, id_)).state in ("queued", "running"):
            run = None if attempted else await self._claim_this(tenant, id_)
            if run is not None:
                attempted = True
                try:
                    await self._attempt(run)
                finally:  # given back when the caller is cancelled
                    self.wake(run.kind)
                await self._note_ending()
            elif attempted and job.state == "queued":
                break
            else:
                async with self._ended:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._ended.wait(), OTHERS_WAIT / 10)
        return job

    async def _claim_this(self, tenant: str, id_: str) -> Run | None:
        now, lease = now_micros(), f"{self.owner}-{next(self._leases)}"
        values = [lease, now + self.lease, now, tenant, id_]
        claim = self.db.write(lambda c: c.one("claim_this_job", values), tenant=tenant)
        row = await self.threads.result(claim)
        return None if row is None else self._run_of(lease, row)

    # --- working -----------------------------------------------------------------------------------

    async def start(self, workers: int = 2, files: int = 0, agents: int = 0, memories: int = 0) -> None:
        """Starts working: so many jobs at once of those without a lane, of files, of responses, and of those that make
        memories (summaries, facts). Where no other process can hold a lease, jobs that a killed one left running are
        taken up at once."""
        if not self.db.shared:
            await self.threads.result(self.db.write(lambda c: c.run("release_jobs")))
        lanes = {HOUSE_LANE: workers, FILES_LANE: files, AGENT_LANE: agents, MEMORY_LANE: memories}
        for lane, places in lanes.items():
            if places:
                self._begin(self._work(lane, asyncio.Semaphore(places)), f"job-lane-{lane}")

    def _begin(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def stop(self) -> None:
        """Lets every worker finish or give back what it holds: a job in mid-step goes back to the queue."""
        self._stopping = True
        while self._working:
            for task in self._working:
                task.cancel()
            await asyncio.gather(*self._working, return_exceptions=True)
        # A claim that its worker no longer waited for was made all the same.
        mine = [f"{self.owner}-%"]
        try:
            await self.threads.result(self.db.write(lambda c: c.run("give_back_jobs", mine)))
        except StorageError as exc:
            log.warning("jobs under way were not given back, their leases end by themselves: %s", exc)

    async def _work(self, lane: int, places: asyncio.Semaphore) -> None:
        """Claims the jobs of a lane, one at a time, and begins each, as long as it has places."""
        while not self._stopping:
            await places.acquire()
            try:
                run = await self._next(lane)
            except StorageError as exc:  # whoever claims outlives the database's absence
                places.release()
                log.warning("no jobs while the rows are away: %s", exc)
                await asyncio.sleep(OTHERS_WAIT)
            else:
                if run is not None:
                    self._begin(self._do(run, places), f"job-{run.id}")

    async def _next(self, lane: int) -> Run | None:
        """The next job of a lane, once there is one; None when it is time to stop."""
        while not self._stopping:
            self._wake[lane].clear()
            run = await self._claim(lane)
            if run is not None:
                return run
            await self._sleep(lane)
        return None

    async def _do(self, run: Run, places: asyncio.Semaphore) -> None:
        """Works at a job; its lane is looked at again afterwards, for the job may be due again."""
        try:
            await self._attempt(run)
            await self._note_ending()
        except StorageError as exc:
            log.warning("no jobs while the rows are away: %s", exc)
            await asyncio.sleep(OTHERS_WAIT)
        finally:
            places.release()
            self.wake(run.kind)

    async def _note_ending(self) -> None:
        async with self._ended:
            self._endings_seen += 1
            self._ended.notify_all()

    async def _sleep(self, lane: int) -> None:
        row = await self.threads.run(self.db.read, lambda c: c.one("next_job_at", [lane]))
        wait = OTHERS_WAIT if self.db.shared else LONGEST_WAIT
        if row is not None and row[0] is not None:
            wait = min(wait, max(0.01, (row[0] - now_micros()) / SECOND))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake[lane].wait(), wait)

    async def _claim(self, lane: int = HOUSE_LANE) -> Run | None:
        now, lease = now_micros(), f"{self.owner}-{next(self._leases)}"
        row = await self.threads.result(
            self.db.write(lambda c: c.one("claim_job", [lease, now + self.lease, now, lane]))
        )
        return None if row is None else self._run_of(lease, row)

    def _run_of(self, lease: str, row: Row) -> Run:
        tenant, id_, kind, payload, cursor, done, total, attempts = row
        return Run(self, lease, tenant, id_, kind, json.loads(payload), cursor, done, total, attempts)

    async def _attempt(self, run: Run) -> None:
        work = asyncio.create_task(self._handler(run))
        beat = asyncio.create_task(self._beat(run, work))
        try:
            result = await work
        except Cancelled:
            await self._end(run, "cancelled", None, None)
        except Postponed as exc:
            await self._postpone(run, exc)
        except SpendingLimit as exc:
            await self._postpone(run, Postponed(str(exc), exc.seconds))
        except LeaseLost:
            log.warning("job %s went to another worker", run.id)
        except asyncio.CancelledError:
            if run.lost:
                log.warning("job %s went to another worker", run.id)
                return
            await asyncio.shield(self._postpone(run, Postponed("its process was asked to end", 0.0)))
            raise
        except Exception as exc:
            await self._failed(run, exc)
        else:
            await self._end(run, "completed", None, result)
        finally:
            beat.cancel()

    async def _handler(self, run: Run) -> dict[str, Any] | None:
        if run.attempts > self.max_attempts and run.kind != RELEASE_JOB:
            raise MemorandaError("the last attempt died with its process")
        handler = self.handlers.get(run.kind)
        if handler is None:
            raise NotFound(f"no handler for jobs of kind {run.kind!r} in this version")
        return await handler(run)

    async def _beat(self, run: Run, work: asyncio.Task[Any]) -> None:
        """Renews the lease again and again; ends the work when another worker has the job."""
        while not run.lost:
            await asyncio.sleep(self.lease / SECOND / 3)
            until = now_micros() + self.lease

            def renew(c: Connection, until: int = until) -> int:
                return c.run("renew_job", [until, run.tenant, run.id, run.lease])

            try:
                run.lost = not await self.threads.result(self.db.write(renew, tenant=run.tenant))
            except StorageError as exc:  # it may come back before anybody else can have the job
                log.warning("the lease of job %s could not be renewed: %s", run.id, exc)
        work.cancel()

    async def _postpone(self, run: Run, why: Postponed) -> None:
        now = now_micros()
        due = now + int(why.seconds * SECOND)
        values = [str(why), due, now, run.tenant, run.id, run.lease]
        log.info("job postponed", extra=_about(run) | {"again_in": round(why.seconds, 1)})
        await self._insist(lambda c: c.run("postpone_job", values), now + self.lease)

    async def _failed(self, run: Run, exc: Exception) -> None:
        error = f"{type(exc).__name__}: {exc}"
        final = run.attempts >= self.max_attempts or isinstance(exc, InvalidInput | Conflict)
        if final and run.kind != RELEASE_JOB:
            log.error("job failed", extra=_about(run) | {"error": type(exc).__name__})
            await self._end(run, "failed", error, None)
            return
        delay = backoff(run.attempts)
        log.warning(
            "job retried", extra=_about(run) | {"error": type(exc).__name__, "again_in": round(delay, 1)}
        )
        await self._end(run, "queued", error, None, delay)

    async def _end(
        self, run: Run, state: str, error: str | None, result: dict[str, Any] | None, delay: float = 0.0
    ) -> None:
        now = now_micros()
        held = None if result is None else compact_json(result)
        values = [state, error, held, now + int(delay * SECOND), now, run.tenant, run.id, run.lease]

        def work(c: Connection) -> int:
            ended = c.run("end_job", values)
            if ended and state == "failed" and run.kind in self.endings:
                self.endings[run.kind](c, run, error or "")
            c.run("drop_ended_jobs", [now - KEPT * SECOND, DROPPED])
            return ended

        if not await self._insist(work, now + self.lease):
            log.warning("job %s was ended by another worker", run.id)
        elif state == "failed" and run.kind in self.endings:  # what was written with it may be a job
            self.wake_all()

    async def _insist(self, work: Callable[[Connection], int], until: int) -> int:
        """Writes what became of a job, for as long as nobody else can have taken it over."""
        while True:
            try:
                return await self.threads.result(self.db.write(work))
            except StorageError:
                if self._stopping or now_micros() > until:
                    raise
            await asyncio.sleep(OTHERS_WAIT)

    async def progress(self, run: Run) -> None:
        """See `Run.report`."""
        now = now_micros()
        values = [run.done, run.total, run.cursor, now + self.lease, now, run.tenant, run.id, run.lease]
        row = await self.threads.result(
            self.db.write(lambda c: c.one("progress_job", values), tenant=run.tenant)
        )
        if row is None:
            raise LeaseLost(run.id)
        if row[0]:
            raise Cancelled(run.id)


def _about(run: Run) -> dict[str, Any]:
    """What a line of the log says of a job; its error is in its row."""
    return {"tenant": run.tenant, "job": run.id, "kind": run.kind, "attempt": run.attempts}


def backoff(attempt: int, *, base: float = 1.0, most: float = 300.0) -> float:
    """Seconds to wait after the `attempt`-th failure: base x 2^(attempt-1), at most `most`, +-20 % of jitter."""
    return float(min(most, base * 2 ** min(attempt - 1, 30)) * random.uniform(0.8, 1.2))


def _job(row: Row) -> Job:
    id_, kind, state, done, total, attempts, error, result, created, updated = row
    return Job(
        id=id_,
        kind=kind,
        state=state,
        done=done,
        total=total,
        attempts=attempts,
        error=error,
        result=None if result is None else json.loads(result),
        created_at=moment(created),
        updated_at=moment(updated),
    )
