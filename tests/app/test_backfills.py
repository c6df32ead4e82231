"""Work over what is there already: it misses nothing, keeps its pace, goes on where it stopped, is done once."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from memoranda.app.backfills import SUMMARIES_JOB
from memoranda.app.blocking import BlockingMemoranda
from memoranda.cli.app import app
from memoranda.errors import EmbedderUnavailable, Forbidden, InvalidInput
from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task
from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.types import Job, Subject
from support.waiting import until

OFF = {"sessions": {"summarize": False}}


class Fragile(Embedder):
    """The hash embedder, which can be taken away."""

    def __init__(self) -> None:
        self.inner = HashEmbedder(64, 1)
        self.model, self.dim, self.max_tokens = self.inner.model, 64, self.inner.max_tokens
        self.calibration = self.inner.calibration
        self.away = False

    async def embed(self, texts: Any, task: Task = "document") -> Embedded:
        if self.away:
            raise EmbedderUnavailable("switched off")
        return await self.inner.embed(texts, task)

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)


def done(rc: BlockingMemoranda, job: Job) -> Job:
    ended = rc.memories.wait(job.id)
    assert ended.state == "completed", ended
    return ended


def talk(rc: BlockingMemoranda, sessions: int) -> None:
    """Closed sessions of four messages each, and one that is too small."""
    for n in range(sessions):
        said = [f"In talk {n} we spoke of the fence and of paint, part {part}." for part in range(4)]
        id_ = rc.observe(said, session_id=f"talk {n}")[0].message.session_id
        rc.sessions.close(id_)
    rc.observe(["A short word about the gate."], session_id="short")
    rc.sessions.close("short")


def summarized(rc: BlockingMemoranda) -> dict[str, int | None]:
    return {one.id: one.summary_version for one in rc.sessions.list(limit=100).data if one.summary}


def hurry(rc: BlockingMemoranda) -> None:
    """Lets jobs that wait go on now."""

    async def wake() -> None:
        rc.inner.core.jobs.wake_all()

    sql = "UPDATE jobs SET run_at = 0 WHERE state = 'queued' RETURNING 1"
    rc.inner.core.store.db.write(lambda c: c.select(sql)).result()
    rc.portal.call(wake())


def test_missing_vectors_are_all_made_through_an_outage_and_a_restart(home: Any) -> None:
    with home.open() as rc:
        fragile = rc.inner.core.embedder.inner = Fragile()  # type: ignore[attr-defined]
        fragile.away = True
        rc.memories.add_many([f"note number {n}" for n in range(150)])
        job = rc.backfill("embeddings", rows_per_second=100_000)
        assert rc.memories.stats()["unembedded"] == 150
    with home.open() as rc:
        hurry(rc)
        again = rc.backfill("embeddings")
        ended = done(rc, again)
        assert again.id == job.id or rc.memories.stats()["unembedded"] == 0
        stats = rc.memories.stats()
        assert (stats["unembedded"], stats["vectors"]) == (0, 150)
        assert ended.done == (ended.total or ended.done)
        assert (done(rc, rc.backfill("embeddings")).result or {})["embedded"] == 0


def test_a_job_for_the_missing_vectors_takes_nothing_from_one_for_all(home: Any) -> None:
    zeros = np.zeros(64, "<f4").tobytes()
    with home.open(jobs={"workers": 0}) as rc:
        db = rc.inner.core.store.db
        rc.memories.add_many([f"note number {n}" for n in range(100)])
        spoil = "UPDATE embeddings SET vector = ? RETURNING 1"
        assert len(db.write(lambda c: c.select(spoil, [zeros])).result()) == 100
        less = rc.backfill("embeddings")
        whole = rc.backfill("embeddings", everything=True)
        assert rc.backfill("embeddings", everything=True).id == whole.id != less.id
        assert rc.memories.search("note number 7").degraded == []
    with home.open() as rc:
        assert done(rc, less).done == 0
        ended = done(rc, whole)
        assert (ended.done, ended.total, (ended.result or {})["embedded"]) == (100, 100, 100)
        left = "SELECT count(*) FROM embeddings WHERE vector = ?"
        assert rc.inner.core.store.db.read(lambda c: c.select(left, [zeros])) == [(0,)]
        found = rc.memories.search("note number 7", mode="dense", limit=1).results
        assert found[0].memory.content == "note number 7"


def test_all_vectors_are_made_again_once_through_a_restart(home: Any) -> None:
    with home.open() as rc:
        rc.memories.add_many([f"note number {n}" for n in range(200)])
        job = rc.backfill("embeddings", everything=True, rows_per_second=200)
        until(lambda: rc.memories.job(job.id).done, "the first step", accept=lambda rows: rows >= 64)
    with home.open() as rc:
        hurry(rc)
        ended = done(rc, job)
        assert (ended.done, ended.total) == (200, 200)


def test_other_jobs_run_while_one_keeps_its_pace(home: Any) -> None:
    with home.open(jobs={"workers": 1}) as rc:
        rc.memories.add_many([f"note number {n}" for n in range(60)])
        slow = rc.backfill("embeddings", everything=True, rows_per_second=1)
        until(lambda: rc.memories.job(slow.id).done, "the first step")
        assert done(rc, rc.memories.compact()).kind == "store.compact"
        assert rc.memories.job(slow.id).state == "running"


def test_summaries_of_times_when_none_were_made_and_of_an_earlier_version(home: Any) -> None:
    with home.open(**OFF) as rc:
        talk(rc, 5)
        assert summarized(rc) == {}
        with pytest.raises(InvalidInput, match=r"sessions\.summarize"):
            rc.backfill("summaries")
    with home.open() as rc:
        began = time.monotonic()
        job = done(rc, rc.backfill("summaries", rows_per_second=10))
        assert time.monotonic() - began >= 0.4
        assert (job.done, job.total, (job.result or {})["created"]) == (5, 5, 5)
        assert set(summarized(rc)) == {f"talk {n}" for n in range(5)}
        assert set(summarized(rc).values()) == {1}
        assert (done(rc, rc.backfill("summaries")).result or {}) == {"looked_at": 0}
        rows = "UPDATE sessions SET summary_version = 0 WHERE id IN ('talk 1', 'talk 3') RETURNING 1"
        rc.inner.core.store.db.write(lambda c: c.select(rows)).result()
        assert (done(rc, rc.backfill("summaries")).result or {})["created"] == 2
        assert set(summarized(rc).values()) == {1}
        assert rc.memories.count(kinds=["session_summary"]) == 5


def test_it_goes_on_behind_the_last_one(home: Any) -> None:
    with home.open(**OFF) as rc:
        talk(rc, 4)
    with home.open() as rc:
        order = [one.id for one in rc.sessions.list(limit=100, order="asc").data]
        seqs = rc.inner.core.store.db.read(lambda c: c.select("SELECT id, seq FROM sessions"))
        after = dict(seqs)[order[1]]
        jobs = rc.inner.core.jobs

        async def resumed() -> str:
            id_ = await jobs.enqueue("default", SUMMARIES_JOB, {"rows_per_second": None}, delay=60.0)
            sql = "UPDATE jobs SET cursor = ?, done = 2, total = 4 WHERE id = ? RETURNING 1"
            await jobs.threads.result(jobs.db.write(lambda c: c.select(sql, [str(after), id_])))
            return id_

        id_ = rc.portal.call(resumed())
        hurry(rc)
        ended = rc.memories.wait(id_)
        assert (ended.done, ended.total) == (4, 4)
        assert set(summarized(rc)) == {"talk 2", "talk 3"}


def test_who_may_and_what_there_is(home: Any) -> None:
    with home.empty() as rc:
        for role in ("member", "reader", "service"):
            subject = Subject(user_id="u", role=role)  # type: ignore[arg-type]
            with pytest.raises(Forbidden):
                rc.portal.call(rc.inner.as_subject(subject).backfills.start("summaries"))
        for fields in ({"what": "cups"}, {"what": "summaries", "everything": True}):
            with pytest.raises(InvalidInput):
                rc.backfill(**fields)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput, match="rows_per_second"):
            rc.backfill("embeddings", rows_per_second=0)
        assert (done(rc, rc.backfill("query_logs")).result or {}) == {"read": 0, "memories": 0}


@pytest.mark.rows_in("sqlite")
def test_on_the_command_line(home: Any) -> None:
    with home.open(**OFF) as rc:
        talk(rc, 2)
    words = ["--data", str(home.folder / "data"), "--set", "embedder.url=hash:64"]
    told = CliRunner().invoke(app, ["backfill", "--json", *words])
    assert '"summaries":2,"query_logs":0}' in told.output
    for what, says in (
        ("summaries", "created: 2"),
        ("embeddings", "model: hash-64"),
        ("query-logs", "read: 0"),
    ):
        told = CliRunner().invoke(app, ["backfill", what, "--rows-per-second", "1000", *words])
        assert told.exit_code == 0, told.output
        assert says in told.output
