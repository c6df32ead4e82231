"""A keyword index that lacks many rows at the start: nothing waits for it, and nothing is lost, doubled or brought back
meanwhile."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

import memoranda
from memoranda.app import maintenance
from memoranda.app.blocking import BlockingMemoranda
from memoranda.cli import checks
from memoranda.errors import IndexUnavailable
from memoranda.indexes.keyword.tantivy import TantivyWords
from memoranda.store import index_sync
from support.live_files import holding
from support.waiting import until

QUICK = {"url": "hash:64"}
ROWS = 4_000
STEP = 1_000


def own(n: int) -> str:
    """The word that only one row has."""
    return f"own{n:04}"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed folder of many rows, each with a word of its own."""
    folder = tmp_path_factory.mktemp("saved") / "data"
    with memoranda.open(folder, embedder=QUICK) as opened:
        opened.memories.add_many([{"id": f"m{n}", "content": f"amber {own(n)}"} for n in range(ROWS)])
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy without its keyword index."""
    copied = tmp_path / "data"
    shutil.copytree(saved, copied)
    shutil.rmtree(words_in(copied))
    return copied


def words_in(folder: Path) -> Path:
    return next(folder.glob("words-*"))


class Hold:
    """Holds the filling of keyword indexes up before its page `at`, until it is released or the process ends."""

    def __init__(self, patch: pytest.MonkeyPatch, at: int) -> None:
        self.reached, self.released = Event(), Event()
        self.begun_from: list[int] = []
        pages = 0
        replay = index_sync.replay

        def held(db: Any, index: Any, space: Any, tenant: str, since: int, *within: Any) -> int:
            nonlocal pages
            if space is None:
                self.begun_from.append(since)
                pages += 1
                if pages == at:
                    self.reached.set()
                    until(lambda: self.released.is_set() or self.stopped(), "the release", every=0.01)
            return replay(db, index, space, tenant, since, *within)

        patch.setattr(index_sync, "replay", held)
        patch.setattr(index_sync, "STEP", STEP)
        patch.setattr(index_sync, "FEW", 100)
        self.stopped: Callable[[], bool] = lambda: False

    def open(self, folder: Path, **settings: Any) -> BlockingMemoranda:
        opened = memoranda.open(folder, embedder=QUICK, **settings)
        self.stopped = opened.inner.core.store.derived.stopped.is_set
        return opened


@pytest.fixture
def hold(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], Hold]]:
    made: list[Hold] = []

    def holding_at(at: int) -> Hold:
        made.append(Hold(monkeypatch, at))
        return made[-1]

    yield holding_at
    for one in made:
        one.released.set()


def is_whole(opened: BlockingMemoranda, count: int) -> None:
    """The keyword index has every row once, and searches say nothing of it."""
    stats = until(opened.memories.stats, "no index behind", accept=lambda stats: stats["behind"] == [])
    assert stats["indexed_words"] == stats["memories"] == count
    assert stats["words"]["documents"] + stats["words"]["uncommitted"] >= count
    store = opened.inner.core.store
    rows = store.db.read(lambda c: c.select("SELECT seq, content FROM memories ORDER BY seq"))
    assert len(rows) == count
    for seq, content in [*rows[::97], *rows[-20:]]:
        assert store.words.search("default", content.split()[1], 10).seqs.tolist() == [seq], content
    assert opened.memories.search(f"amber {own(7)}").degraded == []


def ids(opened: BlockingMemoranda, query: str) -> list[str]:
    return [hit.memory.id for hit in opened.memories.search(query, mode="keyword", limit=5).results]


def lost(folder: Path) -> None:
    shutil.rmtree(words_in(folder))


def old(folder: Path) -> None:
    """Written by an earlier version."""
    path = words_in(folder) / "checkpoint"
    body = json.dumps({"rev": ROWS, "stamp": "tantivy 0.1"}).encode()
    path.write_bytes(b"%08x\n" % zlib.crc32(body) + body)


def damaged(folder: Path) -> None:
    path = max(words_in(folder).glob("segments/*.store"), key=lambda path: path.stat().st_size)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


@pytest.mark.parametrize("what", [lost, old, damaged])
def test_opening_does_not_wait_for_words(
    saved: Path, tmp_path: Path, hold: Callable[[int], Hold], what: Callable[[Path], None]
) -> None:
    folder = tmp_path / "data"
    shutil.copytree(saved, folder)
    what(folder)
    held = hold(1)
    with held.open(folder) as opened:
        found = opened.memories.search(f"amber {own(5)}")
        assert found.degraded == ["words"]
        assert found.results, "vectors answer"
        told = opened.memories.stats()
        assert (told["behind"], told["indexed_words"]) == (["words"], 0)
        names = {finding.name: finding.state for finding in checks.rows(opened.inner.core.store)}
        assert names["behind"] == names["words"] == "broken"
        held.released.set()
        is_whole(opened, ROWS)
        assert ids(opened, own(5)) == ["m5"]
    with memoranda.open(folder, embedder=QUICK) as again:
        assert again.memories.search(own(5), mode="keyword").degraded == []


def test_the_other_local_index_is_filled_in_the_background_too(
    folder: Path, hold: Callable[[int], Hold]
) -> None:
    held = hold(2)
    with held.open(folder, words={"url": "fts5:"}) as opened:
        assert opened.memories.search(f"amber {own(5)}").degraded == ["words"]
        held.released.set()
        until(lambda: not opened.inner.core.store.behind, "no index behind")
        assert ids(opened, own(5)) == ["m5"]
        assert opened.memories.stats()["indexed_words"] == ROWS


def test_a_few_rows_are_brought_up_to_date_at_opening(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_sync, "FEW", ROWS)
    with memoranda.open(folder, embedder=QUICK) as opened:
        assert opened.memories.search(f"amber {own(5)}").degraded == []
        is_whole(opened, ROWS)


def test_writes_meanwhile_are_neither_lost_nor_doubled_nor_undone(
    folder: Path, hold: Callable[[int], Hold]
) -> None:
    held = hold(3)
    with held.open(folder) as opened:
        assert held.reached.wait(60)
        memories = opened.memories
        memories.add("amber brandnew", id="new")
        for n, done in ((10, True), (ROWS - 10, False)):  # before and beyond the page that is held up
            assert bool(ids(opened, own(n))) == done
            memories.delete(f"m{n}")
            memories.update(f"m{n + 1}", content=f"amber rewritten{n}")
            memories.update(f"m{n + 2}", content=f"amber passing{n}")
            memories.delete(f"m{n + 2}")
        memories.add("amber passing", id="gone")
        memories.delete("gone")
        assert ids(opened, "brandnew") == ["new"], "what is written now is found by its words"
        held.released.set()
        is_whole(opened, ROWS - 4 + 1)
        assert ids(opened, "brandnew") == ["new"]
        for n in (10, ROWS - 10):
            assert ids(opened, f"rewritten{n}") == [f"m{n + 1}"]
            for word in (own(n), own(n + 1), own(n + 2), f"passing{n}", "passing"):
                assert ids(opened, word) == [], word
    with memoranda.open(folder, embedder=QUICK) as again:
        is_whole(again, ROWS - 3)


def test_closing_in_the_middle_waits_for_no_more_and_the_next_start_goes_on(
    folder: Path, hold: Callable[[int], Hold]
) -> None:
    held = hold(3)
    opened = held.open(folder)
    assert held.reached.wait(60)
    opened.memories.add("amber brandnew", id="new")
    opened.memories.delete("m3")
    opened.memories.delete(f"m{ROWS - 3}")
    opened.close()
    assert len(held.begun_from) == 3, "the step under way is the last"
    words = TantivyWords("tantivy:", words_in(folder))
    words.close()
    assert words.watermark == 3 * STEP
    held = hold(1)
    with held.open(folder) as again:
        assert again.memories.search(f"amber {own(5)}").degraded == ["words"]
        assert ids(again, own(5)) == ["m5"], "what the index has answers"
        held.released.set()
        is_whole(again, ROWS - 1)
        assert set(held.begun_from) == {3 * STEP}
        assert ids(again, "brandnew") == ["new"]
        assert ids(again, own(3)) == ids(again, own(ROWS - 3)) == []


def test_a_failure_in_the_middle_is_repaired_by_a_job(
    folder: Path, monkeypatch: pytest.MonkeyPatch, hold: Callable[[int], Hold]
) -> None:
    monkeypatch.setattr(maintenance, "RETRY_AFTER", 0.1)
    held = hold(-1)
    inner, failures = index_sync.replay, [True]

    def failing(*arguments: Any) -> int:
        if arguments[2] is None and len(held.begun_from) == 2 and failures:
            failures.pop()
            raise IndexUnavailable("No space left.")
        return inner(*arguments)

    monkeypatch.setattr(index_sync, "replay", failing)
    with held.open(folder) as opened:
        opened.memories.add("amber brandnew", id="new")
        is_whole(opened, ROWS + 1)
        assert not failures
        assert held.begun_from[2] == 2 * STEP, "it goes on from where it was"
        assert opened.inner.core.tally["background_failures.indexes"] == 1


@pytest.mark.parametrize("at", [1, 3])
def test_what_is_forgotten_meanwhile_is_in_no_file(
    folder: Path, hold: Callable[[int], Hold], at: int
) -> None:
    forgotten = [own(17).encode(), own(3917).encode(), b"brandnew"]
    held = hold(at)
    opened = held.open(folder)
    assert held.reached.wait(60)
    opened.memories.add("amber brandnew", id="new")
    assert opened.memories.forget(["m17", "m3917", "new"]).memories == 3
    assert holding(words_in(folder), *forgotten) == set()
    opened.close()
    assert holding(words_in(folder), *forgotten) == set()
    held = hold(1)
    with held.open(folder) as again:
        assert held.reached.wait(60)
        again.memories.forget(["m18", "m3918"])
        held.released.set()
        is_whole(again, ROWS - 4)
        again.memories.add("amber last")
    assert holding(words_in(folder), *forgotten, own(18).encode(), own(3918).encode()) == set()


CHILD = """
import sys, threading, time
import memoranda
from memoranda.store import index_sync

replay, pages = index_sync.replay, []
index_sync.STEP = 1_000

def held(db, index, space, *rest):
    if space is None:
        pages.append(rest)
        if len(pages) == int(sys.argv[2]):
            opened.wait(60)
            memories = product.memories
            memories.add("amber brandnew", id="new")
            memories.delete("m3")
            memories.delete("m3003")
            time.sleep(float(sys.argv[3]))
            print("now", flush=True)
            time.sleep(600)
    return replay(db, index, space, *rest)

index_sync.replay = held
opened = threading.Event()
product = memoranda.open(sys.argv[1], embedder={"url": "hash:64"})
opened.set()
time.sleep(600)
"""


@pytest.mark.parametrize(("page", "pause"), [(1, 0.0), (3, 0.0), (4, 1.5)])
def test_killed_in_the_middle(folder: Path, monkeypatch: pytest.MonkeyPatch, page: int, pause: float) -> None:
    """With a pause, what was filled is durable by then."""
    arguments = [sys.executable, "-c", CHILD, str(folder), str(page), str(pause)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"now\n"
        os.killpg(child.pid, signal.SIGKILL)
    hold = Hold(monkeypatch, -1)
    with hold.open(folder) as opened:
        is_whole(opened, ROWS - 1)
        assert ids(opened, "brandnew") == ["new"]
        assert ids(opened, own(3)) == ids(opened, own(3003)) == []
        assert not pause or set(hold.begun_from) == {(page - 1) * STEP}
