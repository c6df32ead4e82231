"""Jobs: once each, resumed by their cursor, retried, cancelled between steps, taken over when a lease ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from memoranda.clock import now_micros
from memoranda.concurrency.threads import Threads
from memoranda.errors import Conflict, InvalidInput, NotFound
from memoranda.storage.sql.base import Connection
from memoranda.store import job_kinds
from memoranda.store import job_kinds as module
from memoranda.store.job_kinds import RELEASE_JOB, JobKind, Postponed, Run, backoff
from memoranda.store.jobs import Jobs
from memoranda.store.workers import Workers
from support.waiting import until_async


@asynccontextmanager
async def house(home: Any, **settings: float) -> AsyncIterator[tuple[Jobs, Workers]]:
    db, threads = home.database(), Threads(4)
    jobs = Jobs(db, threads, **settings)  # type: ignore[arg-type]
    workers = Workers(jobs)
    try:
        yield jobs, workers
    finally:
        await workers.stop()
        await threads.run(db.close)
        threads.close()


def run(work) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_kinds, "backoff", lambda attempt: 0.01)


@pytest.mark.rows_in("sqlite")
def test_waiting_asks_when_a_job_ends_and_not_in_between(home: Any) -> None:
    async def story() -> None:
        asked: list[int] = []

        async def handler(job: Run) -> None:
            return None

        async def check() -> int:
            asked.append(len(asked))
            return len(asked)

        async with house(home) as (jobs, workers):
            jobs.kinds["any"] = JobKind(handler)
            assert await jobs.until_ended(check, lambda held: held == 1, 10) == 1
            assert (
                await jobs.until_ended(check, lambda held: False, 0.05) == 3
            )  # once, and when the time is over
            await workers.start(1)
            waiting = asyncio.create_task(jobs.until_ended(check, lambda held: held == 6, 10))
            for number in (4, 5):
                await until_async(lambda number=number: len(asked) == number, "the check")  # type: ignore[misc]
                await jobs.enqueue("t", "any", {})
            assert await waiting == 6

    run(story())


def test_a_job_runs_once_and_keeps_its_result(home: Any) -> None:
    async def story() -> None:
        seen = []

        async def handler(job: Run) -> dict[str, int]:
            seen.append(job.payload["n"])
            await job.report(1, 1)
            return {"sum": 7}

        async with house(home) as (jobs, workers):
            jobs.kinds["count"] = JobKind(handler)
            ids = [await jobs.enqueue("t", "count", {"n": n}) for n in range(5)]
            await workers.start(2)
            ended = [await jobs.wait("t", id_) for id_ in ids]
        assert sorted(seen) == [0, 1, 2, 3, 4]
        assert {job.state for job in ended} == {"completed"}
        assert ended[0].result == {"sum": 7}
        assert (ended[0].done, ended[0].total) == (1, 1)

    run(story())


def test_a_failing_job_is_tried_again_and_then_failed_with_its_reason(home: Any) -> None:
    async def story() -> None:
        async def handler(job: Run) -> None:
            raise ValueError("the disk is haunted")

        async with house(home, max_attempts=3) as (jobs, workers):
            jobs.kinds["bad"] = JobKind(handler)
            id_ = await jobs.enqueue("t", "bad", {})
            await workers.start(1)
            job = await jobs.wait("t", id_)
        assert (job.state, job.attempts) == ("failed", 3)
        assert job.error == "ValueError: the disk is haunted"

    run(story())


def test_a_job_that_completes_a_deletion_never_gives_up(home: Any) -> None:
    """Neither after failures, whatever they are, nor after attempts that died with their process."""

    async def story() -> None:
        failures = [ValueError("once"), Conflict("twice"), ValueError("again"), Conflict("and again")]

        async def handler(job: Run) -> dict[str, int]:
            if failures:
                raise failures.pop()
            return {"memories": 3}

        async with house(home, max_attempts=2, lease_seconds=0.01) as (jobs, workers):
            jobs.kinds[RELEASE_JOB] = JobKind(handler)
            id_ = await jobs.enqueue("t", RELEASE_JOB, {})
            for _ in range(3):
                await until_async(jobs.claim, "a claim", accept=lambda claim: claim[0] is not None)
            jobs.lease = 60_000_000
            await workers.start(1)
            job = await jobs.wait("t", id_)
        assert (job.state, job.attempts, job.result) == ("completed", 5, {"memories": 3})

    run(story())


def test_the_cursor_survives_a_failure(home: Any) -> None:
    async def story() -> None:
        starts = []

        async def handler(job: Run) -> None:
            starts.append(job.cursor)
            if job.cursor is None:
                await job.report(10, 20, "row-10")
                raise ConnectionError("gone")

        async with house(home) as (jobs, workers):
            jobs.kinds["walk"] = JobKind(handler)
            id_ = await jobs.enqueue("t", "walk", {})
            await workers.start(1)
            job = await jobs.wait("t", id_)
        assert starts == [None, "row-10"]
        assert job.state == "completed"

    run(story())


def test_cancel_stops_between_two_steps(home: Any) -> None:
    async def story() -> None:
        steps = []
        begun = asyncio.Event()

        async def handler(job: Run) -> None:
            for step in range(10_000):
                steps.append(step)
                begun.set()
                await job.report(step)

        async with house(home) as (jobs, workers):
            jobs.kinds["long"] = JobKind(handler)
            id_ = await jobs.enqueue("t", "long", {})
            await workers.start(1)
            await begun.wait()
            await jobs.cancel("t", id_)
            job = await jobs.wait("t", id_)
        assert job.state == "cancelled"
        assert len(steps) < 10_000

    run(story())


@pytest.mark.parametrize("way", ["reports", "is postponed", "fails", "waits"])
def test_whichever_way_a_job_is_cancelled_its_ending_is_called_once(home: Any, way: str) -> None:
    async def story() -> None:
        told: list[str] = []
        begun, cancelled = asyncio.Event(), asyncio.Event()

        async def handler(job: Run) -> None:
            begun.set()
            await cancelled.wait()
            if way == "is postponed":
                raise Postponed("the model is away", 0.0)
            if way == "fails":
                raise OSError("once more")
            await job.report(1)

        async with house(home) as (jobs, workers):
            jobs.kinds["any"] = JobKind(
                handler, ending=lambda c, job, reason: told.append(f"{job.payload['of']}: {reason}")
            )
            erased = await jobs.enqueue("t", "any", {"of": "what was erased"}, delay=3600.0)
            jobs.db.write(lambda c: c.run("blank_jobs", ["t", f'["{erased}"]'])).result()
            await jobs.cancel("t", erased)
            id_ = await jobs.enqueue("t", "any", {"of": "it"})
            if way != "waits":
                await workers.start(1)
                await begun.wait()
            await jobs.cancel("t", id_)
            cancelled.set()
            assert (await jobs.wait("t", id_)).state == "cancelled"
        assert told == ["it: the job was cancelled"]

    run(story())


def test_a_failed_job_goes_on_where_it_stopped_when_it_is_retried(home: Any) -> None:
    async def story() -> None:
        starts: list[tuple[str | None, int, str]] = []
        away = [True]

        async def handler(job: Run) -> None:
            starts.append((job.cursor, job.attempts, job.payload["of"]))
            await job.report(10, 20, cursor="row-10")
            if away[0]:
                raise InvalidInput("model.url", "nothing answers there")

        async with house(home) as (jobs, workers):
            jobs.kinds["any"] = JobKind(handler)
            id_ = await jobs.enqueue("t", "any", {"of": "it"}, dedup_key="k")
            await workers.start(1)
            assert (await jobs.wait("t", id_)).state == "failed"
        away[0] = False
        async with house(home) as (jobs, workers):  # no worker runs yet: what is queued stays so
            jobs.kinds["any"] = JobKind(handler)
            twin = await jobs.enqueue("t", "any", {"of": "it"}, dedup_key="k", delay=3600.0)
            with pytest.raises(Conflict, match="queued already"):
                await jobs.retry("t", id_)
            await jobs.cancel("t", twin)
            again = await jobs.retry("t", id_)
            assert (again.state, again.error, again.attempts) == ("queued", None, 0)
            await workers.start(1)
            done = await jobs.wait("t", id_)
            assert (done.state, done.done, done.attempts) == ("completed", 10, 1)
            for ended in (id_, twin):
                with pytest.raises(Conflict, match="only a failed job"):
                    await jobs.retry("t", ended)
        assert starts == [(None, 1, "it"), ("row-10", 1, "it")]

    run(story())


def test_a_retried_job_is_returned_as_queued_also_if_a_worker_claims_it_at_once(home: Any) -> None:
    async def story() -> None:
        async def handler(job: Run) -> None:
            if not job.done:
                await job.report(1)
                raise InvalidInput("file", "cannot be read")

        async with house(home) as (jobs, workers):
            jobs.kinds["any"] = JobKind(handler)
            id_ = await jobs.enqueue("t", "any", {"of": "it"})
            await workers.start(1)
            assert (await jobs.wait("t", id_)).state == "failed"
        async with house(home) as (jobs, workers):
            jobs.kinds["any"] = JobKind(handler)
            claimed = []

            def claim() -> None:
                values = ["another", now_micros() + 60_000_000, now_micros(), "t", id_]
                claimed.append(jobs.db.write(lambda c: c.one("claim_this_job", values)).result())

            jobs.wake_all = claim  # type: ignore[method-assign]
            assert (await jobs.retry("t", id_)).state == "queued"
            assert len(claimed) == 1
            assert (await jobs.get("t", id_)).state == "running"

    run(story())


def test_a_failed_job_is_not_retried_if_it_is_asked_for_again_or_its_data_was_erased(home: Any) -> None:
    async def story() -> None:
        async def handler(job: Run) -> None:
            raise InvalidInput("file", "cannot be read")

        def payload(c: Connection) -> str:
            row = c.one("told_job", ["t", ended])
            assert row is not None
            return str(row[1])

        async with house(home) as (jobs, workers):
            jobs.kinds |= {"ended": JobKind(handler, asked_again=True), "erased": JobKind(handler)}
            ended = await jobs.enqueue("t", "ended", {"of": "it"})
            erased = await jobs.enqueue("t", "erased", {"of": "it"})
            await workers.start(1)
            for id_ in (ended, erased):
                assert (await jobs.wait("t", id_)).state == "failed"
            assert jobs.db.read(payload, "t") == "{}"
            jobs.db.write(lambda c: c.run("blank_jobs", ["t", f'["{erased}"]'])).result()
            for id_, why in ((ended, "create the response"), (erased, "is gone")):
                with pytest.raises(Conflict, match=why):
                    await jobs.retry("t", id_)

    run(story())


def test_a_waiting_job_is_cancelled_at_once(home: Any) -> None:
    async def story() -> None:
        async def handler(job: Run) -> None:
            raise AssertionError("must not run")

        async with house(home) as (jobs, workers):
            jobs.kinds["never"] = JobKind(handler)
            id_ = await jobs.enqueue("t", "never", {})
            assert (await jobs.cancel("t", id_)).state == "cancelled"
            await workers.start(1)
            await asyncio.sleep(0.1)

    run(story())


def test_twins_are_one(home: Any) -> None:
    async def story() -> None:
        async def handler(job: Run) -> None:
            return None

        async with house(home) as (jobs, workers):
            jobs.kinds["once"] = JobKind(handler)
            first = await jobs.enqueue("t", "once", {}, dedup_key="k")
            assert await jobs.enqueue("t", "once", {}, dedup_key="k") == first
            assert await jobs.enqueue("other", "once", {}, dedup_key="k") != first
            await workers.start(1)
            await jobs.wait("t", first)
            assert await jobs.enqueue("t", "once", {}, dedup_key="k") != first

    run(story())


def test_a_job_left_running_by_a_dead_process_is_taken_up(home: Any) -> None:
    async def story() -> None:
        seen = []

        async def handler(job: Run) -> None:
            seen.append((job.attempts, job.deaths))

        # Alone with its folder a process need not wait for the lease to end; beside others it must.
        lease = 60.0 if home.rows_in == "sqlite" else 0.3
        async with house(home, lease_seconds=lease) as (jobs, workers):
            jobs.kinds["kept"] = JobKind(handler)
            id_ = await jobs.enqueue("t", "kept", {})
            assert (await jobs.claim())[0] is not None
            jobs.owner = "nobody"  # the process dies here: it gives nothing back
        async with house(home) as (jobs, workers):
            jobs.kinds["kept"] = JobKind(handler)
            await workers.start(1)
            assert (await jobs.wait("t", id_)).state == "completed"
        assert seen == [(1, 1)], "a death is no attempt"

    run(story())


def test_an_expired_lease_is_taken_over_and_the_late_worker_is_told(home: Any) -> None:
    async def story() -> None:
        async with house(home, lease_seconds=0.05) as (jobs, _):
            jobs.kinds["slow"] = JobKind(lambda job: asyncio.sleep(0))  # type: ignore[arg-type, return-value]
            await jobs.enqueue("t", "slow", {})
            late, _ = await jobs.claim()
            assert late is not None
            await asyncio.sleep(0.1)
            other = Jobs(jobs.db, jobs.threads)
            taken, _ = await other.claim()
            assert taken is not None
            assert taken.id == late.id
            with pytest.raises(module.LeaseLost):
                await late.report(1)

    run(story())


def test_others_run_while_a_job_pauses_and_it_waits_for_its_place(home: Any) -> None:
    async def story() -> None:
        steps: list[str] = []

        async def paced(job: Run) -> None:
            steps.append("paced")
            await job.pause(0.01)
            steps.append("paced goes on")

        async def other(job: Run) -> None:
            steps.append("other")
            await asyncio.sleep(0.1)
            steps.append("other ends")

        async with house(home) as (jobs, workers):
            jobs.kinds |= {"paced": JobKind(paced), "other": JobKind(other)}
            ids = [await jobs.enqueue("t", kind, {}) for kind in ("paced", "other")]
            await workers.start(1)
            ended = [await jobs.wait("t", id_) for id_ in ids]
            assert [(job.state, job.attempts) for job in ended] == [("completed", 1)] * 2
            assert steps == ["paced", "other", "other ends", "paced goes on"]

    run(story())


@pytest.mark.parametrize("pauses", [False, True])
def test_stopping_gives_back_what_is_under_way(home: Any, pauses: bool) -> None:
    async def story() -> None:
        begun = asyncio.Event()

        async def handler(job: Run) -> None:
            begun.set()
            await (job.pause(60) if pauses else asyncio.sleep(60))

        async with house(home) as (jobs, workers):
            jobs.kinds["long"] = JobKind(handler)
            id_ = await jobs.enqueue("t", "long", {})
            await workers.start(1)
            await begun.wait()
            await workers.stop()
            assert (await jobs.get("t", id_)).state == "queued"

    run(story())


def test_a_worker_stopped_while_it_claims_gives_the_job_back(home: Any) -> None:
    async def story() -> None:
        async def handler(job: Run) -> None:
            await asyncio.sleep(60)

        async with house(home) as (jobs, workers):
            jobs.kinds["long"] = JobKind(handler)
            for _ in range(20):
                id_ = await jobs.enqueue("t", "long", {})
                await workers.start(1)
                await asyncio.sleep(0)
                await workers.stop()
                assert (await jobs.get("t", id_)).state == "queued"
                jobs.stopping = False

    run(story())


def test_another_tenants_job_does_not_exist(home: Any) -> None:
    async def story() -> None:
        async with house(home) as (jobs, _):
            jobs.kinds["mine"] = JobKind(lambda job: asyncio.sleep(0))  # type: ignore[arg-type, return-value]
            id_ = await jobs.enqueue("t", "mine", {})
            for tenant, asked in (("other", id_), ("t", "\x00"), ("t", "\ud800"), ("t", "'")):
                with pytest.raises(NotFound):
                    await jobs.get(tenant, asked)
                with pytest.raises(NotFound):
                    await jobs.cancel(tenant, asked)
            assert (await jobs.get("t", id_)).state == "queued"

    run(story())


def test_unknown_kinds_are_refused(home: Any) -> None:
    async def story() -> None:
        async with house(home) as (jobs, _):
            with pytest.raises(NotFound, match="no handler"):
                await jobs.enqueue("t", "typo", {})

    run(story())


def test_backoff_grows_and_stays_bounded() -> None:
    assert 0.8 <= backoff(1) <= 1.2
    assert 3.2 <= backoff(3) <= 4.8
    assert backoff(50) <= 360
