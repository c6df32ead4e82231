"""Two processes that change the same memory at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import memoranda
from memoranda.errors import NotFound
from support import postgres
from support.waiting import until

LOCKED = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"


@pytest.fixture
def pair(postgres_url: str) -> Iterator[tuple[Any, Any]]:
    """Two processes of one database."""
    settings: Any = {"database": {"url": postgres_url}, "embedder": {"url": "hash:64"}}
    with memoranda.open(":memory:", **settings) as a, memoranda.open(":memory:", **settings) as b:
        yield a, b


@pytest.fixture
def during(
    pair: tuple[Any, Any], postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], object], Callable[[], Any]], Any]:
    """Runs a change of the first process, and a call that begins before the commit of it; the result of the call."""
    derived, written, gate = pair[0].inner.core.store.derived, threading.Event(), threading.Event()
    inside = derived.inside

    def hold(*arguments: Any) -> None:
        inside(*arguments)
        written.set()
        assert gate.wait(60)

    def run(change: Callable[[], object], call: Callable[[], Any]) -> Any:
        monkeypatch.setattr(derived, "inside", hold)
        with ThreadPoolExecutor(2) as pool, postgres.server().admin() as raw:
            first = pool.submit(change)
            try:
                assert written.wait(60)
                second = pool.submit(call)
                database = [postgres.database(postgres_url)]
                until(
                    lambda: raw.execute(LOCKED, database).fetchone(), "the second process waits for the first"
                )
            finally:
                gate.set()
            first.result()
            return second.result()

    return run


def words(process: Any) -> list[str]:
    """The terms of every document of the keyword index."""
    rows = process.inner.core.store.db.read(lambda c: c.select("SELECT terms FROM words ORDER BY seq"))
    return [terms for (terms,) in rows]


def test_tags_that_are_set_during_an_edit_keep_the_new_text(pair: tuple[Any, Any], during: Any) -> None:
    a, b = pair
    id_ = a.memories.add("amber").memory.id
    during(lambda: a.memories.update(id_, content="basalt"), lambda: b.memories.update(id_, tags=["t"]))
    memory = a.memories.get(id_)
    assert (memory.content, memory.tags) == ("basalt", ["t"])
    assert words(a) == ["basalt"]


def test_an_edit_while_tags_are_set_keeps_the_tags(pair: tuple[Any, Any], during: Any) -> None:
    a, b = pair
    id_ = a.memories.add("amber").memory.id
    during(lambda: a.memories.update(id_, tags=["t"]), lambda: b.memories.update(id_, content="basalt"))
    memory = a.memories.get(id_)
    assert (memory.content, memory.tags) == ("basalt", ["t"])
    assert words(a) == ["basalt"]


def test_an_update_during_a_deletion_finds_no_memory(pair: tuple[Any, Any], during: Any) -> None:
    a, b = pair
    id_ = a.memories.add("amber").memory.id
    with pytest.raises(NotFound):
        during(lambda: a.memories.delete(id_), lambda: b.memories.update(id_, tags=["t"]))
    assert words(a) == []


def test_a_mark_during_a_deletion_does_not_restore_the_words(pair: tuple[Any, Any], during: Any) -> None:
    a, b = pair
    id_ = a.memories.add("amber").memory.id
    store = b.inner.core.store
    seq = store.by_id("default", [id_])[id_].seq

    def mark() -> Any:
        return store.rewrite("default", [seq], lambda row: row._replace(importance=7)).result()

    assert during(lambda: a.memories.delete(id_), mark) == []
    assert words(a) == []


def test_a_replay_during_an_edit_puts_the_new_text(pair: tuple[Any, Any], during: Any) -> None:
    a, b = pair
    id_ = a.memories.add("amber").memory.id
    replay = lambda: b.inner.core.store.derived.catch_up("words", 0)  # noqa: E731
    assert during(lambda: a.memories.update(id_, content="basalt"), replay) == 1
    assert words(a) == ["basalt"]


def test_jobs_are_changed_in_the_order_of_other_changes(pair: tuple[Any, Any], during: Any) -> None:
    """A process that places a job has locked the revisions, and waits for a change of a job with the same key."""
    a, b = pair
    jobs = b.inner.core.jobs
    id_ = a.portal.call(
        a.inner.core.jobs.enqueue("default", "facts.extract", {"session_id": "s"}, delay=3600.0)
    )
    during(lambda: a.memories.add("amber"), lambda: b.portal.call(jobs.cancel("default", id_)))
    assert a.portal.call(a.inner.core.jobs.get("default", id_)).state == "cancelled"
