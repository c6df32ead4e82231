"""Searches between a commit and the indexes, which take a change right after it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.types import Subject


@contextmanager
def held_up(rc: BlockingMemoranda) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The keyword index is held up with a change: the first event says that it begins, the second lets it go on."""
    begins, goes_on = threading.Event(), threading.Event()
    words = rc.inner.core.store.words
    put = words.put

    def late(*given: Any) -> None:
        begins.set()
        assert goes_on.wait(30)
        put(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "put", late)
        try:
            yield begins, goes_on
        finally:
            goes_on.set()


@pytest.mark.rows_in("sqlite", "postgresql-local")
def test_a_search_has_what_a_reader_of_the_rows_has(rc: BlockingMemoranda) -> None:
    """Another caller than the writer may read that something is written, before the writer's call returns."""
    with ThreadPoolExecutor(2) as threads, held_up(rc) as (begins, goes_on):
        added = threads.submit(rc.memories.add, "quartz lantern")
        assert begins.wait(30)
        assert [memory.content for memory in rc.memories.list().data] == ["quartz lantern"]
        found = threads.submit(rc.memories.search, "quartz", mode="words")
        wait([found], timeout=0.5)
        goes_on.set()
        assert [hit.memory.content for hit in found.result(30).results] == ["quartz lantern"]
        assert added.result(30).created


@pytest.mark.rows_in("sqlite")
def test_a_search_does_not_wait_for_the_changes_of_another_tenant(rc: BlockingMemoranda) -> None:
    rc.memories.add("quartz lantern")
    other = rc.acting_as(Subject(tenant_id="other"))
    with ThreadPoolExecutor(1) as threads, held_up(rc) as (begins, goes_on):
        added = threads.submit(other.add, "quartz lantern")
        assert begins.wait(30)
        assert len(rc.memories.search("quartz", mode="words").results) == 1
        goes_on.set()
        assert added.result(30).created
