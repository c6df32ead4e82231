"""Several servers and workers on one PostgreSQL: what one is told all know; what one was doing when it died another
does."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg
import pytest

import memoranda
from memoranda.app import maintenance
from memoranda.app.memoranda import Memoranda
from memoranda.errors import NotFound
from memoranda.store import index_sync
from memoranda.store.job_kinds import JobKind
from support import postgres
from support.live_files import holding
from support.waiting import until

from . import cluster

PLACEMENTS = [
    pytest.param(cluster.LOCAL, id="local", marks=pytest.mark.slow),
    pytest.param(cluster.MIXED, id="mixed", marks=pytest.mark.slow),
    pytest.param(
        cluster.INSIDE,
        id="inside",
        marks=pytest.mark.skipif(
            find_spec("memoranda.indexes.keyword.tsvector") is None, reason="not there yet"
        ),
    ),
]


@pytest.fixture(params=PLACEMENTS, scope="module")
def placement(request: pytest.FixtureRequest) -> Any:
    """Where the two indexes are."""
    return request.param


@pytest.fixture(scope="module")
def pair(placement: tuple[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Any]]:
    """Two servers of one database, each with a folder of its own."""
    url, folder = postgres.fresh_url(), tmp_path_factory.mktemp("pair")
    a, b = (
        cluster.Server(folder, url, *cluster.placed(placement), data=str(folder / name))
        for name in ("a", "b")
    )
    with cluster.running(a, b):
        yield a, b


def found(server: Any, word: str, mode: str = "hybrid") -> list[str]:
    """The ids of the memories with that word among the first answers to it."""
    answer = server.client.search(word, mode=mode, limit=200)
    assert answer.degraded == []
    return [hit.memory.id for hit in answer.results if word in hit.memory.content]


# --- one truth -------------------------------------------------------------------------------------


def test_what_one_server_is_told_the_other_finds_at_once(pair: tuple[Any, Any]) -> None:
    a, b = pair
    for n in range(25):
        writer, reader = (a, b) if n % 2 else (b, a)
        word = f"word{n}x"
        id_ = writer.client.add(f"the {word} is new").memory.id
        assert found(reader, word, "keyword") == [id_]
        assert found(reader, word, "dense") == [id_]
        writer.client.update(id_, content=f"the other{word} is newer")
        assert found(reader, word, "keyword") == []
        assert found(reader, f"other{word}") == [id_]
        if n % 3 == 0:
            reader.client.delete(id_)
            assert found(writer, f"other{word}") == []
            with pytest.raises(NotFound):
                writer.client.get(id_)


def test_a_search_during_many_writes_of_the_other_misses_none(pair: tuple[Any, Any]) -> None:
    a, b = pair
    acknowledged: list[tuple[str, str]] = []
    ended = threading.Event()

    def write(server: Any, name: str) -> None:
        n = 0
        while not ended.is_set():
            word = f"{name}{n}x"
            acknowledged.append((word, server.client.add(f"again {word}").memory.id))
            n += 1

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, s, name) for s, name in ((a, "aa"), (b, "bb"), (a, "ab"), (b, "ba"))]
        try:
            until = time.monotonic() + 3
            while time.monotonic() < until:
                for word, id_ in acknowledged[-3:]:
                    server = random.choice(pair)
                    mode = random.choice(["keyword", "dense"])
                    # deep, because a small hash embedder gives many of the texts the very same vector
                    answer = server.client.search(f"again {word}", mode=mode, limit=1000)
                    assert id_ in [hit.memory.id for hit in answer.results], (word, mode)
        finally:
            ended.set()
        for writer in writers:
            writer.result()
    same_everywhere(*pair)


def same_everywhere(*servers: Any) -> int:
    """Every server has all rows in both indexes, once it has looked; how many."""
    count = servers[0].client.count()
    for server in servers:
        server.client.search("look")
        stats = server.client.stats()
        keys = ("memories", "vectors", "indexed_vectors", "indexed_words", "unembedded")
        assert [stats[key] for key in keys] == [count, count, count, count, 0]
        assert stats["behind"] == []
    return int(count)


def test_the_same_texts_at_the_same_time_are_stored_once(pair: tuple[Any, Any]) -> None:
    texts = [f"said twice {n}" for n in range(60)]

    def add(server: Any, seed: int) -> dict[str, tuple[str, bool]]:
        mine = random.Random(seed).sample(texts, len(texts))
        held = {}
        for at in range(0, len(mine), 3):
            for added in server.client.add_many(mine[at : at + 3]):
                held[added.memory.content] = (added.memory.id, added.created)
        return held

    with ThreadPoolExecutor(4) as pool:
        told = [run.result() for run in [pool.submit(add, pair[n % 2], n // 2) for n in range(4)]]
    for text in texts:
        assert len({each[text][0] for each in told}) == 1, text
        assert sum(each[text][1] for each in told) == 1, text
    same_everywhere(*pair)


def test_what_one_forgets_no_other_keeps(pair: tuple[Any, Any]) -> None:
    a, b = pair
    folder = a.log.parent
    for n in range(3):  # each forgetting must be heard of, not only the first
        word = f"zanzibarquux{n}"
        id_ = b.client.add(f"the {word} is secret").memory.id
        assert found(a, word) == [id_]
        assert found(b, word) == [id_]
        a.client.forget(ids=[id_])
        assert found(b, word) == []
        until(lambda w=word: not holding(folder, w.encode()), f"{word} has left the files")
    same_everywhere(*pair)


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Products that follow others when they search, and not by the clock."""
    monkeypatch.setattr(maintenance, "WATCH_SECONDS", 3600.0)


def test_every_forgetting_is_heard_of(alone: None, postgres_url: str, tmp_path: Path) -> None:
    settings = cluster.local(postgres_url)
    with memoranda.open(tmp_path / "a", **settings) as a, memoranda.open(tmp_path / "b", **settings) as b:
        for n in range(2):  # `a` searches nothing, so it does not know all revisions
            secret, _ = b.memories.add_many([f"the zanzibarquux{n} is secret", f"the kettle{n} is not"])
            b.inner.core.store.words.compact()  # to its files
            assert holding(tmp_path / "b", f"zanzibarquux{n}".encode())
            a.memories.forget(ids=[secret.memory.id])
            b.inner.core.store.refresh()
            assert not holding(tmp_path, f"zanzibarquux{n}".encode())


def test_a_forgetting_that_meets_another_in_the_middle_of_looking(
    alone: None, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = cluster.local(postgres_url)
    with memoranda.open(":memory:", **settings) as a, memoranda.open(tmp_path / "b", **settings) as b:
        secret, _ = b.memories.add_many(["the zanzibarquux is secret", "the kettle is not"])
        b.inner.core.store.words.compact()  # to its files
        assert holding(tmp_path, b"zanzibarquux")
        replay = index_sync.Derived.replay_others

        def replaying(self: index_sync.Derived) -> None:
            replay(self)
            if self is b.inner.core.store.derived:
                monkeypatch.setattr(index_sync.Derived, "replay_others", replay)
                a.memories.forget(ids=[secret.memory.id])

        monkeypatch.setattr(index_sync.Derived, "replay_others", replaying)
        b.inner.core.store.refresh()
        b.inner.core.store.refresh()
        assert not holding(tmp_path, b"zanzibarquux")


def test_what_is_written_while_another_opens_is_in_both_its_indexes(
    alone: None, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = cluster.local(postgres_url)
    open_side = index_sync.Derived._open_side
    with memoranda.open(":memory:", **settings) as a:

        def opening(self: index_sync.Derived, side: str) -> int:
            if side == "words":
                a.memories.add("written in between")
            return open_side(self, side)

        a.memories.add("written before")
        monkeypatch.setattr(index_sync.Derived, "_open_side", opening)
        with memoranda.open(":memory:", **settings) as b:
            for mode in ("keyword", "dense"):
                answer = b.memories.search("written in between", mode=mode)
                assert len(answer.results) == 2, mode


# --- death -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_server_killed_between_rows_and_index(
    placement: tuple[str, str], postgres_url: str, tmp_path: Path
) -> None:
    server = cluster.Server(tmp_path, postgres_url, *cluster.placed(placement))
    with cluster.running(server):
        for _ in range(2):
            writer = cluster.Child(tmp_path, "writer", postgres_url, *placement)
            with cluster.running(writer):
                time.sleep(0.5 + random.random() * 0.5)
            told = [json.loads(line) for line in writer.log.read_text().split("\n")[:-1] if line[0] == "{"]
            assert told
            for line in told[-5:]:
                assert found(server, line["content"].split()[0], "keyword") == [line["id"]]
                near = server.client.search(line["content"], mode="dense", limit=500).results
                assert line["id"] in [hit.memory.id for hit in near]
        with cluster.connect(postgres_url) as raw:
            rows = raw.execute("SELECT id, content FROM memories").fetchall()
        for id_, content in random.sample(rows, min(10, len(rows))):
            assert found(server, content.split()[0], "keyword") == [id_]
        assert same_everywhere(server) == len(rows)


@pytest.mark.slow
def test_what_a_dead_process_did_not_bring_to_a_shared_index_another_brings(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is in a server of its own: the journal says what has not arrived."""
    own = postgres_url.replace("schema=", "schema=x")
    index = f"pgvector:{own}"
    for _ in range(3):
        writer = cluster.Child(tmp_path, "writer", postgres_url, index, "tantivy:")
        with cluster.running(writer):
            time.sleep(0.3 + random.random() * 0.3)
    monkeypatch.setattr(index_sync, "SETTLED_WITHIN", 0)
    settings = cluster.local(postgres_url) | {"index": {"url": index}}
    with memoranda.open(":memory:", **settings) as opened:
        opened.inner.core.store.refresh()
        stats = opened.memories.stats()
        assert stats["memories"] == stats["indexed_vectors"] == stats["indexed_words"] > 0
        with cluster.connect(postgres_url) as raw:
            assert raw.execute("SELECT count(*) FROM unsettled").fetchone() == (0,)


# --- jobs ------------------------------------------------------------------------------------------


async def enqueue(url: str, count: int, seconds: float) -> list[str]:
    """Queues `count` jobs of `seconds` each."""
    settings = cluster.local(url) | {"jobs": {"workers": 0}}
    async with await Memoranda.open(":memory:", **settings) as opened:
        opened.core.jobs.kinds["test.tick"] = JobKind(None)  # type: ignore[arg-type]
        payload = {"seconds": seconds}
        queued = [opened.core.jobs.enqueue("default", "test.tick", payload) for _ in range(count)]
        return await asyncio.gather(*queued)


@pytest.mark.slow
def test_jobs_of_a_killed_worker_are_taken_over_and_each_is_done_once(
    postgres_url: str, tmp_path: Path
) -> None:
    table = f"{postgres_url.partition('schema=')[2]}_ticks"
    asyncio.run(enqueue(postgres_url, 1, 0.02))  # makes the tables
    with cluster.connect(postgres_url) as raw:
        raw.execute(f"CREATE TABLE {table} (job TEXT, pid BIGINT, attempt BIGINT)")
        workers = [cluster.Child(tmp_path, "jobs", postgres_url, "1", table) for _ in range(3)]
        with cluster.running(*workers):
            jobs = asyncio.run(enqueue(postgres_url, 199, 0.1))
            held = killed_at_work(raw, workers[0])
            left = "SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"
            until(lambda: raw.execute(left).fetchone() == (0,), "every job ended")
        states = dict(raw.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())
        ticks = raw.execute(f"SELECT job, pid FROM {table}").fetchall()
        again = raw.execute("SELECT id FROM jobs WHERE attempts > 1").fetchall()
    assert states == {"completed": 200}
    assert {id_ for (id_,) in again} == held
    assert {job for job, _ in ticks} > set(jobs)
    survivors = Counter(job for job, pid in ticks if pid != workers[0].process.pid)
    assert max(survivors.values()) == 1
    assert len({pid for _, pid in ticks}) > 1
    twice = {job for job, n in Counter(job for job, _ in ticks).items() if n > 1}
    assert twice <= held  # it had done them and could not say so any more


def killed_at_work(raw: psycopg.Connection[Any], worker: Any) -> set[str]:
    """Kills a worker at a moment when it holds jobs and has ended some; the jobs it held."""
    owner = worker.ready()

    def held() -> set[str]:
        sql = "SELECT id FROM jobs WHERE state = 'running' AND starts_with(lease_owner, %s)"
        return {id_ for (id_,) in raw.execute(sql, [owner]).fetchall()}

    def ended() -> bool:
        worker.signal(signal.SIGSTOP)
        time.sleep(0.05)  # a commit under way comes to its end
        done = raw.execute("SELECT count(*) FROM jobs WHERE state = 'completed'").fetchone()
        if held() and done and done[0] > 20:
            return True
        worker.signal(signal.SIGCONT)
        return False

    until(ended, "the worker is in the middle of jobs", every=0.1)
    jobs = held()
    worker.kill()
    return jobs


@pytest.mark.slow
def test_a_worker_thought_dead_does_not_end_the_job_of_its_successor(
    postgres_url: str, tmp_path: Path
) -> None:
    table = f"{postgres_url.partition('schema=')[2]}_ticks"
    (job,) = asyncio.run(enqueue(postgres_url, 1, 2.0))
    sql = "SELECT state, split_part(lease_owner, '-', 1), attempts, result FROM jobs WHERE id = %s"
    with cluster.connect(postgres_url) as raw:
        raw.execute(f"CREATE TABLE {table} (job TEXT, pid BIGINT, attempt BIGINT)")
        first = cluster.Child(tmp_path, "jobs", postgres_url, "1", table)
        with cluster.running(first):
            owner = first.ready()
            until(lambda: raw.execute(sql, [job]).fetchone()[1] == owner, "the job is taken")
            first.signal(signal.SIGSTOP)
            second = cluster.Child(tmp_path, "jobs", postgres_url, "1", table)
            with cluster.running(second):
                heir = second.ready()
                until(lambda: raw.execute(sql, [job]).fetchone()[1] == heir, "the job is taken over")
                first.signal(signal.SIGCONT)
                until(lambda: raw.execute(sql, [job]).fetchone()[0] == "completed", "the job ended")
                state, _, attempts, result = raw.execute(sql, [job]).fetchone()
        ticks = raw.execute(f"SELECT pid FROM {table}").fetchall()
    assert (state, attempts, json.loads(result)) == ("completed", 2, {"pid": second.process.pid})
    assert ticks == [(second.process.pid,)]  # the first one stopped when it heard


@pytest.mark.slow
def test_servers_without_workers_leave_jobs_to_workers(postgres_url: str, tmp_path: Path) -> None:
    local = cluster.placed(cluster.LOCAL)
    server = cluster.Server(tmp_path, postgres_url, *local, "jobs.workers=0")
    with cluster.running(server):
        server.client.add("one")
        job = server.client.compact()
        time.sleep(2.5)
        assert server.client.job(job.id).state == "queued"
        with cluster.running(cluster.Worker(tmp_path, postgres_url, *local)):
            ended = server.client.wait(job.id)
        assert ended.state == "completed", ended.error
