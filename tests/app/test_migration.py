"""A live store moves to another index, or to another model, while it is written and searched."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from operator import not_
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import EmbedderUnavailable, Forbidden, InvalidInput
from memoranda.indexes.vector import Index
from memoranda.storage.sql import Connection
from memoranda.store.changes import changed_page, replay
from memoranda.store.index_checks import check_filled
from memoranda.store.index_sync import Mirror
from memoranda.types import Subject
from support.waiting import until

QUICK = {"url": "hash:64"}


def agree(rc: BlockingMemoranda) -> None:
    """The index that answers holds exactly the vectors of the rows: every one is its own nearest, and no more."""
    store = rc.inner.core.store

    def vectors(c: Connection) -> dict[int, list[Any]]:
        found: dict[int, list[Any]] = {}
        while page := changed_page(c, "default", store.space, 0, max(found, default=0)):
            found |= {put.row.seq: put.vectors for put in page}
        return found

    held = store.db.read(vectors)
    assert store.index.count("default") == sum(len(parts) for parts in held.values())
    for seq, parts in list(held.items())[::9]:
        for vector in parts:
            found = store.index.search("default", vector, 20)
            assert seq in found.seqs[np.isclose(found.scores, 1.0, atol=1e-4)].tolist()


class Traffic:
    """Adds, deletes, rewrites and searches from threads of their own until told to stop."""

    def __init__(self, rc: BlockingMemoranda) -> None:
        self.memories = rc.memories
        self.failures: list[BaseException] = []
        self.kept: set[str] = set()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,)) for work in (self._write, self._ask)
        ]

    def __enter__(self) -> Traffic:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _guarded(self, work: Any) -> None:
        try:
            n = 0
            while not self._stop.is_set():
                work(n)
                n += 1
        except BaseException as exc:
            self.failures.append(exc)

    def _write(self, n: int) -> None:
        added = [self.memories.add(f"traffic {n} {k} of words{n % 7}").memory.id for k in range(3)]
        self.memories.delete(added[0])
        self.memories.update(added[1], content=f"rewritten {n} of words{n % 5}")
        self.memories.update(added[2], metadata={"n": n})
        self.kept |= set(added[1:])

    def _ask(self, n: int) -> None:
        assert self.memories.search(f"entry {n % 300} words{n % 7}", limit=5).results


@pytest.mark.parametrize(
    "to", ["memory:?engine=float", "sqlitevec:", pytest.param("lancedb:", marks=pytest.mark.slow)]
)
def test_a_store_moves_while_it_is_written_and_searched(to: str, tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as rc:
        rc.memories.add_many([f"entry {n} of words{n % 7}" for n in range(600)])
        before = rc.inner.core.store.index
        with Traffic(rc) as traffic:
            job = rc.memories.wait(rc.memories.move_index(to).id)
        assert (job.state, job.error) == ("completed", None)
        assert traffic.failures == []
        assert rc.inner.core.store.index is not before
        rc.memories.add("written after the move")
        assert (
            rc.memories.search("written after the move", mode="dense", limit=1).results[0].similarity == 1.0
        )
        agree(rc)
        total = rc.memories.count()
        assert total == 601 + len(traffic.kept)
    for url in (to, "memory:"):
        with memoranda.open(tmp_path, embedder=QUICK, index={"url": url}) as rc:
            assert rc.memories.count() == total
            agree(rc)


def test_what_is_forgotten_after_a_move_is_not_in_the_old_index_either(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as rc:
        rc.memories.add_many([f"entry {n}" for n in range(50)])
        assert rc.memories.wait(rc.memories.move_index("memory:?engine=float").id).state == "completed"
        assert rc.memories.forget(scopes=["all"]).memories == 50
        rc.memories.add("one more")
    with memoranda.open(tmp_path, embedder=QUICK) as rc:  # `index.url` still names the old index
        assert rc.inner.core.store.index.count("default") == 1
        agree(rc)


def test_a_move_that_fails_leaves_the_old_index_answering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with memoranda.open(tmp_path, embedder=QUICK, jobs={"max_attempts": 1}) as rc:
        rc.memories.add_many([f"entry {n}" for n in range(50)])
        before = rc.inner.core.store.index
        monkeypatch.setattr(type(before), "count", lambda *_: 7)
        job = rc.memories.wait(rc.memories.move_index("memory:?engine=float").id)
        monkeypatch.undo()
        assert job.state == "failed"
        assert "7 of 50" in str(job.error)
        assert rc.inner.core.store.index is before
        rc.memories.add("one more")
        agree(rc)
        job = rc.memories.wait(rc.memories.move_index("memory:?engine=float").id)
        assert job.state == "completed"
        agree(rc)


def test_only_the_operator_moves_and_only_to_a_known_index(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK, jobs={"max_attempts": 1}) as rc:
        with pytest.raises(InvalidInput, match=r"to: .*memory"):
            rc.memories.move_index("oracle:")
        for subject in (Subject(tenant_id="acme", role="admin"), Subject(role="member", user_id="u")):
            with pytest.raises(Forbidden):
                rc.as_subject(subject).memories.move_index("memory:?engine=float")
        assert rc.memories.wait(rc.memories.move_index("memory:").id).state == "failed"


def test_another_model_takes_over_under_traffic(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as rc:
        rc.memories.add_many([f"entry {n} of words{n % 7}" for n in range(400)])
        other = rc.as_subject(Subject(tenant_id="acme")).memories
        other.add_many([f"acme {n}" for n in range(30)])
    with memoranda.open(tmp_path, embedder={"url": "hash:128"}) as rc:
        assert rc.inner.core.store.model == "hash-64"
        with Traffic(rc) as traffic:
            job = rc.memories.wait(rc.memories.reembed().id)
        assert (job.state, job.error) == ("completed", None)
        assert traffic.failures == []
        assert rc.inner.core.store.model == "hash-128"
        # what was being written at the very moment follows
        until(lambda: rc.memories.stats()["unembedded"], "no pending embedding", accept=not_)
        assert rc.memories.search("entry 7 of words0").degraded == []
        assert rc.as_subject(Subject(tenant_id="acme")).memories.search("acme 3", mode="dense").results
        agree(rc)
    with memoranda.open(tmp_path, embedder={"url": "hash:128"}) as rc:
        assert rc.inner.core.embedders.next is None
        agree(rc)


@pytest.mark.parametrize("text", ["written beside the switch", "rewritten beside the switch"])
def test_a_write_in_the_commit_group_of_the_switch_is_in_the_new_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """It comes after the switch in its group: it runs while the old index answers and reaches the new one."""
    with memoranda.open(tmp_path, embedder=QUICK) as rc:
        rc.memories.add_many([f"entry {n}" for n in range(20)])
        first = rc.memories.add("the first text").memory.id
    with memoranda.open(tmp_path, embedder={"url": "hash:128"}) as rc:
        store = rc.inner.core.store
        monkeypatch.setattr(store, "refresh", lambda: None)  # the repair of the index would hide a lost write
        switch, write = store.switch, store.db.write
        gate, begun = threading.Event(), threading.Event()

        def change() -> None:
            if text.startswith("rewritten"):
                rc.memories.update(first, content=text)
            else:
                rc.memories.add(text)

        beside, queued = threading.Thread(target=change), list[Any]()

        def hold(_: Connection) -> None:
            begun.set()
            gate.wait(60)

        def in_one_group(*task: Any, **options: Any) -> Any:
            future = write(*task, **options)
            queued.append(future)
            if len(queued) == 1:
                beside.start()
            elif len(queued) == 2:
                gate.set()
            return future

        def switch_beside_a_write(*arguments: Any, **options: Any) -> Any:
            write(hold)
            assert begun.wait(60)
            monkeypatch.setattr(store.db, "write", in_one_group)
            return switch(*arguments, **options)

        monkeypatch.setattr(store, "switch", switch_beside_a_write)
        job = rc.memories.wait(rc.memories.reembed().id)
        beside.join(60)
        assert (job.state, job.error, store.model) == ("completed", None, "hash-128")
        until(lambda: rc.memories.stats()["unembedded"], "no pending embedding", accept=not_)
        found = rc.memories.search(text, mode="dense", limit=1)
        assert (found.degraded, found.results[0].memory.content) == ([], text)
        agree(rc)


def test_a_model_change_that_was_killed_keeps_what_it_made(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as rc:
        rc.memories.add_many([f"entry {n}" for n in range(300)])
    with memoranda.open(tmp_path, embedder={"url": "hash:128"}) as rc:
        job = rc.memories.reembed(rows_per_second=300)
        while rc.memories.job(job.id).done < 64:
            threading.Event().wait(0.02)
        rc.inner.core.jobs.kinds.clear()  # as if the process ended: nothing takes the job up here any more
    with memoranda.open(tmp_path, embedder={"url": "hash:128"}) as rc:
        assert rc.inner.core.store.model in ("hash-64", "hash-128")
        for one in rc.portal.call(rc.inner.core.jobs.list("default")):
            rc.memories.wait(one.id)
        assert rc.inner.core.store.model == "hash-128"
        agree(rc)


def test_a_mirror_takes_changes_of_rows_it_has_already(tmp_path: Path) -> None:
    with memoranda.open(tmp_path, embedder=QUICK) as rc:
        first = rc.memories.add("amber")
        core = rc.inner.core
        index: Index = rc.inner._moves._open_index("memory:?engine=float", core.embedder)
        mirror = Mirror(index, core.store.space)
        core.store.derived.begin_mirror(mirror)
        assert replay(core.store.db, index, core.store.space, "default", 0) == 1
        rc.memories.update(first.memory.id, content="basalt")
        rc.memories.add("cedar")
        assert check_filled(core.store.derived, mirror) == 2
        rc.memories.delete(first.memory.id)
        assert check_filled(core.store.derived, mirror) == 1
        core.store.derived.end_mirror(mirror)
        index.close()


@pytest.fixture
def pair(postgres_url: str) -> Iterator[tuple[BlockingMemoranda, BlockingMemoranda]]:
    """Two processes: one with the earlier model, which runs no jobs, and one with another model."""
    rows = {"url": postgres_url}
    with memoranda.open(":memory:", embedder=QUICK, database=rows, jobs={"workers": 0}) as earlier:
        earlier.memories.add_many([f"entry {n}" for n in range(30)])
        with memoranda.open(
            ":memory:", embedder={"url": "hash:128"}, database=rows, jobs={"max_attempts": 1}
        ) as later:
            yield earlier, later


def vectors_by_model(rc: BlockingMemoranda) -> dict[str, int]:
    sql = "SELECT model, count(*) FROM embeddings JOIN spaces USING (space) GROUP BY model"
    return dict(rc.inner.core.store.db.read(lambda c: c.select(sql)))


def test_a_process_of_the_earlier_model_keeps_the_vectors_of_the_next_when_it_compacts(
    pair: tuple[BlockingMemoranda, BlockingMemoranda], monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = pair
    store = later.inner.core.store
    switch = store.switch

    def compacted_before(*arguments: Any, **options: Any) -> Any:
        earlier.inner.core.store.compact()
        return switch(*arguments, **options)

    monkeypatch.setattr(store, "switch", compacted_before)
    assert later.memories.wait(later.memories.reembed().id).state == "completed"
    earlier.inner.core.store.compact()
    assert vectors_by_model(later)["hash-128"] == 30
    store.compact()
    assert vectors_by_model(later) == {"hash-128": 30}


def test_vectors_that_were_dropped_after_a_failed_change_of_the_model_are_made_again(
    pair: tuple[BlockingMemoranda, BlockingMemoranda], monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier, later = pair

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("the switch failed")

    with monkeypatch.context() as patch:
        patch.setattr(later.inner.core.store, "switch", broken)
        assert later.memories.wait(later.memories.reembed().id).state == "failed"
    earlier.inner.core.store.compact()
    assert vectors_by_model(later) == {"hash-64": 30}
    assert later.memories.wait(later.memories.reembed().id).state == "completed"
    assert vectors_by_model(later)["hash-128"] == 30
    agree(later)


def test_an_attempt_at_a_model_change_marks_no_rows_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits for a model that is away by an attempt every few seconds, and marking reads all rows."""
    monkeypatch.setattr("memoranda.app.migration.RETRY_AFTER", 0.05)
    with memoranda.open(tmp_path, embedder=QUICK) as rc:
        rc.memories.add_many([f"entry {n}" for n in range(100)])
    with memoranda.open(tmp_path, embedder={"url": "hash:128"}) as rc:
        core, marked, refused = rc.inner.core, list[str](), list[str]()
        prepare, embed = core.store.prepare, core.ingest.embed_pending

        def counted(model: str, dim: int) -> None:
            marked.append(model)
            prepare(model, dim)

        async def away(rows: Any, tenant: str, **options: Any) -> int:
            if options.get("embedder") is not None and len(refused) < 3:
                refused.append(tenant)
                raise EmbedderUnavailable("away")
            return await embed(rows, tenant, **options)

        monkeypatch.setattr(core.store, "prepare", counted)
        monkeypatch.setattr(core.ingest, "embed_pending", away)
        assert rc.memories.wait(rc.memories.reembed().id).state == "completed"
        assert (marked, len(refused)) == (["hash-128"], 3)
        agree(rc)
