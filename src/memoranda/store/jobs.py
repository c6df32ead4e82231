"""Durable work: a row per job, leased by a worker, retried with backoff, cancelled between steps.

When the process of a job dies, its lease expires and another worker claims the job. The handler continues from the
cursor that was last reported, so handlers work in steps that may be repeated.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from memoranda.clock import moment, now_micros
from memoranda.concurrency.threads import Threads
from memoranda.errors import Conflict, NotFound, SpendingLimit, StorageError
from memoranda.storage.sql.base import Connection, Database, Row
from memoranda.store.ids import nameable
from memoranda.store.job_kinds import (
    AGENT_LANE,
    DEFAULT_LANE,
    FILES_LANE,
    MEMORY_LANE,
    Cancelled,
    JobKind,
    LeaseLost,
    Postponed,
    Run,
    check_cancel,
    check_deaths,
    check_retry,
    retry_delay,
)
from memoranda.text.stored import compact_json
from memoranda.types import Job

T = TypeVar("T")
log = logging.getLogger("memoranda.jobs")
SECOND = 1_000_000
OTHERS_WAIT = 1.0
"""Seconds between polls for jobs that another process queued."""
KEPT = 7 * 24 * 3600
DROPPED = 100
"""The most old jobs that are deleted when a job ends."""
COLUMNS = (
    "tenant_id", "id", "seq", "kind", "lane", "state", "payload", "run_at", "created_at", "updated_at",
)  # fmt: skip
REMODEL_JOB = "memories.remodel"
REMODEL_KEY = "remodel"
"""The deduplication key of the job that changes the model: one at a time."""
CANCELLED = "the job was cancelled"
GIVEN_UP = ("failed", "cancelled")
"""The states of a job whose ending is called."""


FURTHEST = 25 * 3_600.0
"""Seconds from now: no job waits longer than a day, for the next day's spending. One that is due later was queued while
the clock was ahead."""


class Jobs:
    """The table of jobs, and what is done with a job that was claimed."""

    def __init__(
        self, db: Database, threads: Threads, *, lease_seconds: float = 60.0, max_attempts: int = 5
    ) -> None:
        self.db = db
        self.threads = threads
        self.lease = int(lease_seconds * SECOND)
        self.max_attempts = max_attempts
        self.kinds: dict[str, JobKind] = {}
        """What this version can do, see `Feature`."""
        self.owner = secrets.token_hex(8)
        self._leases = itertools.count(1)
        self.waking = {lane: asyncio.Event() for lane in (DEFAULT_LANE, FILES_LANE, AGENT_LANE, MEMORY_LANE)}
        self._ended = asyncio.Condition()
        self._endings_seen = 0
        """Jobs of this process that have ended."""
        self.stopping = False
        """The workers stop: an outcome that cannot be written now is not written later."""

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
        """Return the id of the new job; with `dedup_key`, that of the queued or running job of this kind and key."""

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
        """Like `enqueue`, in the transaction of `c`: the job exists exactly when the rows it is about exist. Pass
        `woken` to the write, or call `wake` after the commit."""
        lane = self._known(kind).lane
        id_ = f"job_{secrets.token_hex(12)}"
        now = now_micros()
        revs = c.one("draw_revs", [1])
        assert revs is not None
        due = now + int(delay * SECOND)
        values = [tenant, id_, revs[0], kind, dedup_key, lane, compact_json(payload), due, now, now]
        if c.run("add_job", values):
            return id_
        twin = c.one("twin_job", [tenant, kind, dedup_key])
        assert twin is not None
        return str(twin[0])

    def place_many(self, c: Connection, tenant: str, kind: str, payloads: Sequence[dict[str, Any]]) -> None:
        """Like `place`, one job for each payload."""
        lane = self._known(kind).lane
        revs = c.one("draw_revs", [len(payloads)])
        assert revs is not None
        now, first = now_micros(), int(revs[0]) - len(payloads) + 1
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
                    compact_json(payload),
                    now,
                    now,
                    now,
                )
                for seq, payload in enumerate(payloads, first)
            ],
        )

    def _known(self, kind: str) -> JobKind:
        if kind not in self.kinds:
            raise NotFound(f"no handler for jobs of kind {kind!r}; known: {', '.join(self.kinds)}")
        return self.kinds[kind]

    def wake(self, kind: str) -> None:
        """Make the workers of a kind look for jobs now."""
        known = self.kinds.get(kind)
        self.waking[DEFAULT_LANE if known is None else known.lane].set()

    def wake_all(self) -> None:
        """Make all workers look for jobs now."""
        for waiting in self.waking.values():
            waiting.set()

    def woken(self, *kinds: str) -> Callable[[object], None]:
        """Return a callback like `wake` for the writing thread, which calls it after the commit, even when the task
        that asked for the write is cancelled."""
        loop = asyncio.get_running_loop()

        def then(_: object) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended: the next start looks by itself
                for kind in kinds:
                    loop.call_soon_threadsafe(self.wake, kind)

        return then

    async def get(self, tenant: str, id_: str) -> Job:
        """Return the current state of the job.

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
        """Return the tenant's latest jobs, newest first."""
        return [
            _job(row)
            for row in await self.threads.run(
                self.db.read, lambda c: c.all("list_jobs", [tenant, limit]), tenant
            )
        ]

    async def cancel(self, tenant: str, id_: str) -> Job:
        """Cancel a queued job now and a running job between two steps; an ended job stays as it is.

        Raises:
            NotFound: no such job in this tenant.
            Conflict: the job completes a deletion.
        """
        job = await self.get(tenant, id_)
        check_cancel(job)
        await self._write(lambda c: self.stop_one(c, tenant, id_), tenant)
        self.wake_all()  # the ending may have queued a job
        return await self.get(tenant, id_)

    async def retry(self, tenant: str, id_: str) -> Job:
        """Queue a failed job again: it goes on from where it stopped, and its attempts are counted anew. Return it as
        queued, also if a worker has claimed it since.

        Raises:
            NotFound: no such job in this tenant.
            Conflict: it has not failed, the same work is queued already, or its kind is asked for again.
        """
        job = await self.get(tenant, id_)
        kind = self.kinds.get(job.kind)
        check_retry(job, asked_again=kind is not None and kind.asked_again)

        def work(c: Connection) -> Row | None:
            row = c.one("told_job", [tenant, id_])
            payload = json.loads(row[1]) if row else {}
            if kind is not None and kind.retrying is not None:
                payload = kind.retrying(c, tenant, payload) if payload else None
            if payload is None or not c.run("retry_job", [now_micros(), tenant, id_, compact_json(payload)]):
                raise Conflict(
                    f"job {id_!r} is not retried: the same work is queued already, or its data is gone"
                )
            return c.one("get_job", [tenant, id_])

        queued = await self.threads.result(self.db.write(work, self.woken(job.kind), tenant))
        self.wake_all()  # retrying may have queued a job
        assert queued is not None
        return _job(queued)

    def stop_one(self, c: Connection, tenant: str, id_: str) -> None:
        """Cancel a job in the transaction of `c`, whatever its kind. Call `wake_all` after the commit."""
        now, described = now_micros(), c.one("told_job", [tenant, id_])
        if not c.run("cancel_queued_job", [now, tenant, id_]):
            c.run("cancel_running_job", [now, tenant, id_])
        elif described is not None:  # it never runs
            kind, payload = described
            self._end_of(
                c, Run(self, "", tenant, id_, kind, json.loads(payload), None, 0, None, 0), CANCELLED
            )

    def _end_of(self, c: Connection, run: Run, reason: str) -> None:
        """Call the ending of the job's kind, unless what the job is about was erased, and its payload with it."""
        kind = self.kinds.get(run.kind)
        if run.payload and kind is not None and kind.ending is not None:
            kind.ending(c, run, reason)

    async def wait(self, tenant: str, id_: str) -> Job:
        """Wait until the job has ended, in whatever state, and return it."""
        while (job := await self.get(tenant, id_)).state in ("queued", "running"):
            async with self._ended:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._ended.wait(), 0.5)
        return job

    async def until_ended(
        self, check: Callable[[], Awaitable[T]], done: Callable[[T], bool], seconds: float
    ) -> T:
        """Return the result of `check` once `done` accepts it, or after so many seconds. `check` is called whenever a
        job of this process has ended; if other processes run jobs too, also twice a second."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            ended = self._endings_seen
            result = await check()
            left = until - loop.time()
            if done(result) or left <= 0:
                return result
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, 0.5) if self.db.shared else left), self._ended:
                    await self._ended.wait_for(lambda ended=ended: self._endings_seen != ended)  # type: ignore[misc]

    async def finish(
        self, tenant: str, kind: str, wanted: Callable[[dict[str, Any]], bool] | None = None
    ) -> Sequence[Job]:
        """Run a tenant's jobs of a kind now, all or those whose payload is `wanted`, or wait for the workers that run
        them, and return the jobs. A job that fails is left to the workers, which retry it. Jobs without a key are not
        run."""
        ended: dict[str, Job] = {}
        while True:  # a job may place others
            rows = await self.threads.run(
                self.db.read, lambda c: c.all("jobs_under_way", [tenant, kind]), tenant
            )
            chosen = [str(id_) for id_, payload in rows if wanted is None or wanted(json.loads(payload))]
            fresh = [id_ for id_ in chosen if id_ not in ended]
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
                    await self.attempt(run)
                finally:  # given back when the caller is cancelled
                    self.wake(run.kind)
                await self.note_ending()
            elif attempted and job.state == "queued":
                break
            else:
                async with self._ended:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._ended.wait(), OTHERS_WAIT / 10)
        return job

    async def release(self) -> None:
        """Queue all jobs that a killed process left running. For a process that no other shares its database with."""
        await self._write(lambda c: c.run("release_jobs"))

    async def give_back(self) -> None:
        """Queue the jobs that this process has claimed and not ended."""
        mine = [f"{self.owner}-%"]
        await self._write(lambda c: c.run("give_back_jobs", mine))

    async def claim(self, lane: int = DEFAULT_LANE) -> tuple[Run | None, int | None]:
        """Claim a job of a lane that is due. If there is none, return when the next one is, in microseconds."""
        now, lease = now_micros(), f"{self.owner}-{next(self._leases)}"
        furthest = now + int(FURTHEST * SECOND)
        waiting = [lane, furthest]
        next_at = await self.threads.run(self.db.read, lambda c: c.one("next_job_at", waiting))
        # Nothing is written while nothing is due.
        if next_at is None or next_at[0] is None or next_at[0] > now:
            return None, None if next_at is None else next_at[0]

        def work(c: Connection) -> tuple[Row | None, Row | None]:
            row = c.one("claim_job", [lease, now + self.lease, now, lane, furthest])
            return row, c.one("next_job_at", waiting) if row is None else None

        row, due = await self._write(work)
        return None if row is None else self._run_of(lease, row), None if due is None else due[0]

    async def _claim_this(self, tenant: str, id_: str) -> Run | None:
        now, lease = now_micros(), f"{self.owner}-{next(self._leases)}"
        values = [lease, now + self.lease, now, tenant, id_]
        row = await self._write(lambda c: c.one("claim_this_job", values), tenant)
        if row is None:
            return None
        run = self._run_of(lease, row)
        run.awaited = True
        return run

    async def _write(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        return await self.threads.result(self.db.write(work, tenant=tenant))

    # --- attempting --------------------------------------------------------------------------------

    async def note_ending(self) -> None:
        async with self._ended:
            self._endings_seen += 1
            self._ended.notify_all()

    def _run_of(self, lease: str, row: Row) -> Run:
        tenant, id_, kind, payload, cursor, done, total, attempts, deaths = row
        return Run(self, lease, tenant, id_, kind, json.loads(payload), cursor, done, total, attempts, deaths)

    async def attempt(self, run: Run) -> None:
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
        check_deaths(run.kind, run.deaths)
        kind = self.kinds.get(run.kind)
        if kind is None:
            raise NotFound(f"no handler for jobs of kind {run.kind!r} in this version")
        return await kind.handler(run)

    async def _beat(self, run: Run, work: asyncio.Task[Any]) -> None:
        """Renew the lease at intervals; cancel the work when another worker has the job."""
        while not run.lost:
            await asyncio.sleep(self.lease / SECOND / 3)
            until = now_micros() + self.lease

            def renew(c: Connection, until: int = until) -> int:
                return c.run("renew_job", [until, run.tenant, run.id, run.lease])

            try:
                run.lost = not await self._write(renew, run.tenant)
            except StorageError as exc:  # the database may be back before the lease expires
                log.warning("the lease of job %s could not be renewed: %s", run.id, exc)
        work.cancel()

    async def _postpone(self, run: Run, why: Postponed) -> None:
        now = now_micros()
        due = now + int(why.seconds * SECOND)
        values = [str(why), due, now, run.tenant, run.id, run.lease]
        log.info("job postponed", extra=_about(run) | {"again_in": round(why.seconds, 1)})
        await self._insist(
            lambda c: self._ended_as(c, run, "postpone_job", values, CANCELLED), now + self.lease
        )

    async def _failed(self, run: Run, exc: Exception) -> None:
        error = f"{type(exc).__name__}: {exc}"
        delay = retry_delay(run.kind, run.attempts, exc, self.max_attempts)
        if delay is None:
            log.error("job failed", extra=_about(run) | {"error": type(exc).__name__})
            await self._end(run, "failed", error, None)
            return
        log.warning(
            "job retried", extra=_about(run) | {"error": type(exc).__name__, "again_in": round(delay, 1)}
        )
        await self._end(run, "queued", error, None, delay)

    async def _end(
        self, run: Run, state: str, error: str | None, result: dict[str, Any] | None, delay: float = 0.0
    ) -> None:
        now = now_micros()
        stored_result = None if result is None else compact_json(result)
        due, kind = now + int(delay * SECOND), self.kinds.get(run.kind)
        keeps = kind is None or not kind.asked_again
        values = [state, error, stored_result, due, now, run.tenant, run.id, run.lease, keeps]

        def work(c: Connection) -> str | None:
            ended = self._ended_as(c, run, "end_job", values, (state == "failed" and error) or CANCELLED)
            c.run("drop_ended_jobs", [now - KEPT * SECOND, DROPPED])
            return ended

        if await self._insist(work, now + self.lease) is None:
            log.warning("job %s was ended by another worker", run.id)

    def _ended_as(
        self, c: Connection, run: Run, statement: str, values: Sequence[Any], reason: str
    ) -> str | None:
        """Write the end of an attempt and call the ending of its kind if the job is given up. Return the state of the
        job; None if another worker has it."""
        row = c.one(statement, values)
        if row is None:
            return None
        state = str(row[0])
        if state in GIVEN_UP:
            self._end_of(c, run, reason)
        return state

    async def _insist(self, work: Callable[[Connection], str | None], until: int) -> str | None:
        """Write the outcome of an attempt, with retries until the lease expires. Return what `work` returns, the state
        of the job."""
        while True:
            try:
                state = await self._write(work)
            except StorageError:
                if self.stopping or now_micros() > until:
                    raise
                await asyncio.sleep(OTHERS_WAIT)
            else:
                if state in GIVEN_UP:
                    self.wake_all()  # the ending may have queued jobs
                return state

    async def progress(self, run: Run) -> None:
        """See `Run.report`."""
        now = now_micros()
        values = [run.done, run.total, run.cursor, now + self.lease, now, run.tenant, run.id, run.lease]
        row = await self._write(lambda c: c.one("progress_job", values), run.tenant)
        if row is None:
            raise LeaseLost(run.id)
        if row[0]:
            raise Cancelled(run.id)


def _about(run: Run) -> dict[str, Any]:
    """Return the fields of a log record about a job; the error is in the job's row."""
    return {"tenant": run.tenant, "job": run.id, "kind": run.kind, "attempt": run.attempts}


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
