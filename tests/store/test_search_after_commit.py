"""Searches between a commit and the indexes, which take a change right after it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.store import index_sync
from memoranda.types import Subject


@contextmanager
def delayed(rc: BlockingMemoranda) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The keyword index does not take changes until the second event is set; the first is set when one has come."""
    came, taken = threading.Event(), threading.Event()
    words = rc.inner.core.store.words
    put = words.put

    def late(*given: Any) -> None:
        came.set()
        assert taken.wait(30)
        put(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "put", late)
        try:
            yield came, taken
        finally:
            taken.set()


@pytest.mark.rows_in("sqlite", "postgresql-local")
def test_a_search_has_what_a_reader_of_the_rows_has(rc: BlockingMemoranda) -> None:
    """Another caller than the writer may read that something is written, before the writer's call returns."""
    with ThreadPoolExecutor(2) as threads, delayed(rc) as (came, take):
        added = threads.submit(rc.memories.add, "quartz lantern")
        assert came.wait(30)
        assert [memory.content for memory in rc.memories.list().data] == ["quartz lantern"]
        found = threads.submit(rc.memories.search, "quartz", mode="keyword")
        wait([found], timeout=0.5)
        take.set()
        assert [hit.memory.content for hit in found.result(30).results] == ["quartz lantern"]
        assert added.result(30).created


@pytest.mark.rows_in("sqlite")
def test_a_search_does_not_wait_for_the_changes_of_another_tenant(rc: BlockingMemoranda) -> None:
    rc.memories.add("quartz lantern")
    other = rc.as_subject(Subject(tenant_id="other")).memories
    with ThreadPoolExecutor(1) as threads, delayed(rc) as (came, take):
        added = threads.submit(other.add, "quartz lantern")
        assert came.wait(30)
        assert len(rc.memories.search("quartz", mode="keyword").results) == 1
        take.set()
        assert added.result(30).created


@pytest.mark.rows_in("sqlite")
def test_a_search_does_not_wait_for_ever_for_an_index_that_does_not_answer(
    rc: BlockingMemoranda, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers from what the indexes have, and says which ones may miss something."""
    monkeypatch.setattr(index_sync, "CHANGE_SECONDS", 0.1)
    rc.memories.add("quartz lantern")
    with ThreadPoolExecutor(2) as threads, delayed(rc) as (came, take):
        added = threads.submit(rc.memories.add, "quartz kettle")
        assert came.wait(30)
        found = threads.submit(rc.memories.search, "quartz", mode="keyword").result(30)
        assert [hit.memory.content for hit in found.results] == ["quartz lantern"]
        assert "words" in found.degraded
        take.set()
        assert added.result(30).created
    found = rc.memories.search("quartz", mode="keyword")
    assert (len(found.results), found.degraded) == (2, [])
