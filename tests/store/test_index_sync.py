"""Processes of one database that are configured otherwise: said by the one, mended for the other."""

from __future__ import annotations

import time
from typing import Any

import pytest

import memoranda
from memoranda.app import maintenance
from memoranda.storage.sql import Database
from memoranda.store import index_sync
from support.waiting import until

QUICK = {"url": "hash:64"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "WATCH_SECONDS", 0.1)
    monkeypatch.setattr(index_sync, "SETTLED_WITHIN", 0)


def process(url: str, **settings: Any) -> Any:
    return memoranda.open(":memory:", database={"url": url}, embedder=QUICK, **settings)


def test_a_process_whose_index_nobody_keeps_any_more_says_so(postgres_url: str) -> None:
    with process(postgres_url) as old:
        old.memories.add("amber one")
        assert old.memories.search("amber").degraded == []
        with process(postgres_url, index={"url": "pgvector:?type=halfvec"}) as new:
            assert new.memories.search("amber", mode="dense").results
            until(lambda: old.memories.search("amber").degraded == ["index"], "a degraded search")
            late = old.memories.add("basalt two, written by the old one")
            seen = lambda: {hit.memory.id for hit in new.memories.search("basalt", mode="dense").results}  # noqa: E731
            until(seen, "the new memory", accept=lambda ids: late.memory.id in ids)
            old.memories.delete(late.memory.id)
            assert late.memory.id not in seen()
            until(lambda: new.inner.core.store.index.count("default") == 1, "one vector")
            assert new.memories.search("amber").degraded == []
    with process(postgres_url, index={"url": "pgvector:?type=halfvec"}) as again:
        assert again.inner.core.store.index.count("default") == 1
        assert again.memories.search("amber").degraded == []
    with process(postgres_url) as back:
        back.memories.add("cedar three")
        assert back.inner.core.store.index.count("default") == 2
        assert back.memories.search("cedar", mode="dense").results[0].memory.content == "cedar three"


def test_processes_of_one_configuration_leave_nothing_in_the_journal(postgres_url: str) -> None:
    with process(postgres_url) as one, process(postgres_url) as two:
        one.memories.add("amber")
        two.memories.add("basalt")
        time.sleep(0.5)
        store = one.inner.core.store
        assert store.db.read(lambda c: c.select("SELECT count(*) FROM unsettled"))[0][0] == 0
        assert store.derived.displaced == two.inner.core.store.derived.displaced == {}


def test_what_a_process_with_its_own_index_writes_reaches_the_index_that_is_kept(postgres_url: str) -> None:
    with process(postgres_url) as kept:
        kept.memories.add("amber one")
        with process(postgres_url, index={"url": "memory:"}, words={"url": "tantivy:"}) as own:
            late = own.memories.add("basalt two").memory.id
            assert own.memories.search("basalt").degraded == []
            assert {hit.memory.content for hit in own.memories.search("amber basalt").results} == {
                "amber one",
                "basalt two",
            }
            until(lambda: kept.inner.core.store.index.count("default") == 2, "two vectors")
            until(lambda: kept.memories.search("basalt", mode="keyword").results, "a keyword result")
            own.memories.delete(late)
            until(lambda: kept.inner.core.store.index.count("default") == 1, "one vector")
            assert kept.memories.search("amber").degraded == []
        store = kept.inner.core.store
        until(
            lambda: store.db.read(lambda c: c.select("SELECT count(*) FROM unsettled")),
            "no unsettled row",
            accept=lambda rows: rows[0][0] == 0,
        )


def interrupt(*_: object) -> int:
    raise RuntimeError("interrupted")


def filling(opened: Any) -> list[Any]:
    """The records of indexes that are being filled."""
    rows: list[Any] = opened.inner.core.store.db.read(
        lambda c: c.select("SELECT key FROM meta WHERE key LIKE 'filling.%'")
    )
    return rows


def has_all(opened: Any, count: int) -> None:
    stats = opened.memories.stats()
    assert [stats[key] for key in ("memories", "indexed_vectors", "indexed_words")] == [count] * 3
    assert filling(opened) == []


def test_a_first_fill_that_is_interrupted_is_finished_at_the_next_start(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with process(postgres_url, index={"url": "memory:"}, words={"url": "tantivy:"}) as own:
        own.memories.add_many([f"amber {n}" for n in range(20)])
    for side in ("vectors", "words"):
        replay = index_sync.replay

        def interrupted(*arguments: Any, side: str = side, replay: Any = replay) -> int:
            space = arguments[2]
            return interrupt() if (space is None) == (side == "words") else replay(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(index_sync, "replay", interrupted)
            with pytest.raises(RuntimeError, match="interrupted"):
                process(postgres_url)
    with process(postgres_url) as opened:
        has_all(opened, 20)


def test_a_rebuild_of_an_index_in_the_database_is_finished_at_the_next_start(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with process(postgres_url) as opened:
        opened.memories.add_many([f"amber {n}" for n in range(20)])
        derived = opened.inner.core.store.derived
        monkeypatch.setattr(derived, "repair", dict)  # as if the process died
        for side in ("index", "words"):
            with monkeypatch.context() as patch:
                patch.setattr(index_sync, "replay", interrupt)
                with pytest.raises(RuntimeError, match="interrupted"):
                    derived.catch_up(side, 0, clear=True)
    with process(postgres_url) as opened:
        has_all(opened, 20)


def test_a_process_that_has_filled_an_index_leaves_the_record_of_another_that_fills_it(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with process(postgres_url) as one, process(postgres_url) as two:
        one.memories.add("amber")
        first, second = (opened.inner.core.store.derived for opened in (one, two))
        monkeypatch.setattr(second, "repair", dict)
        replay = index_sync.replay

        def meanwhile(db: Database, index: Any, *arguments: Any) -> int:
            if index is second.words:
                interrupt()
            with pytest.raises(RuntimeError, match="interrupted"):
                second.catch_up("words", 0, clear=True)
            return replay(db, index, *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(index_sync, "replay", meanwhile)
            first.catch_up("words", 0, clear=True)
        assert filling(one) == [("filling.words",)]
    with process(postgres_url) as opened:
        has_all(opened, 1)


def test_a_vector_that_arrives_after_its_memory_was_forgotten_is_removed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "WATCH_SECONDS", 3600.0)
    index = {"url": f"pgvector:{postgres_url.replace('schema=', 'schema=x')}"}
    with process(postgres_url, index=index) as one, process(postgres_url, index=index) as two:
        store = one.inner.core.store
        put = store.index.put

        def late(*arguments: Any) -> None:
            two.memories.forget(scopes=["all"])
            put(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr(store.index, "put", late)
            one.memories.add("amber")
        assert two.memories.count() == 0
        two.inner.core.store.refresh()
        assert store.index.count("default") == 0
