"""Jobs that were queued while the clock was ahead, and jobs whose processes died."""

from __future__ import annotations

from typing import Any

import pytest

from memoranda.clock import now_micros
from memoranda.store.job_kinds import MOST_DEATHS, JobKind, Run
from memoranda.store.jobs import FURTHEST, SECOND

TENANT = "default"


@pytest.fixture
def jobs(home: Any) -> Any:
    with home.open(jobs={"workers": 0}) as opened:
        yield Queue(opened)


class Queue:
    """Jobs of a kind that only counts, without workers."""

    def __init__(self, rc: Any) -> None:
        self.rc, self.jobs = rc, rc.inner.core.jobs
        self.runs: list[str] = []
        self.jobs.kinds["count"] = JobKind(self.count)

    async def count(self, run: Run) -> dict[str, Any]:
        self.runs.append(run.id)
        return {}

    def call(self, work: Any) -> Any:
        return self.rc.portal.call(work)

    def enqueue(self) -> str:
        return str(self.call(self.jobs.enqueue(TENANT, "count", {})))

    def change(self, sql: str, *params: Any) -> None:
        db = self.rc.inner.core.store.db
        db.write(lambda c: c.select(f"UPDATE jobs SET {sql} RETURNING 1", list(params))).result()

    def claim(self) -> Run | None:
        run, _ = self.call(self.jobs.claim())
        return run  # type: ignore[no-any-return]


@pytest.mark.parametrize(("days", "due"), [(0.5, False), (1.5, True), (400.0, True), (40_000.0, True)])
def test_a_job_of_the_far_future_is_due(jobs: Queue, days: float, due: bool) -> None:
    id_ = jobs.enqueue()
    jobs.change("run_at = ?", now_micros() + int(days * 86_400 * SECOND))
    run = jobs.claim()
    assert (run is not None) is due
    if run is not None:
        assert run.id == id_
        jobs.call(jobs.jobs.attempt(run))
        assert jobs.call(jobs.jobs.get(TENANT, id_)).state == "completed"
    assert FURTHEST < 1.5 * 86_400


def test_a_lease_of_the_far_future_has_ended(jobs: Queue) -> None:
    id_ = jobs.enqueue()
    assert jobs.claim() is not None
    assert jobs.claim() is None
    jobs.change("lease_until = ?", now_micros() + int(400 * 86_400 * SECOND))
    run = jobs.claim()
    assert run is not None
    assert (run.id, run.attempts, run.deaths) == (id_, 1, 1)


def test_a_death_is_no_attempt_and_too_many_end_the_job(jobs: Queue) -> None:
    id_ = jobs.enqueue()
    for deaths in range(MOST_DEATHS + 1):
        run = jobs.claim()
        assert run is not None
        assert (run.attempts, run.deaths) == (1, deaths)
        jobs.call(jobs.jobs.release())  # as at the start after a kill
    run = jobs.claim()
    assert run is not None
    jobs.call(jobs.jobs.attempt(run))
    job = jobs.call(jobs.jobs.get(TENANT, id_))
    assert job.state == "failed"
    assert f"its process has died {MOST_DEATHS + 1} times while it ran" in str(job.error)
    assert jobs.runs == []
    jobs.call(jobs.jobs.retry(TENANT, id_))
    run = jobs.claim()
    assert run is not None
    jobs.call(jobs.jobs.attempt(run))
    assert jobs.call(jobs.jobs.get(TENANT, id_)).state == "completed"
    assert jobs.runs == [id_]
