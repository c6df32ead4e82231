"""kill -9 at random moments: what was confirmed is there, whole; nothing is half there; indexes equal rows."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.filters import Compare
from memoranda.providers.embeddings.hash import HashEmbedder
from support.waiting import until

CHILD = Path(__file__).with_name("child.py")
QUICK = {"url": "hash:64"}


@dataclass
class Ledger:
    """What the killed writers had confirmed (text by id, None when deleted), and what was under way."""

    confirmed: dict[str, str | None] = field(default_factory=dict)
    under_way: dict[str, set[str | None]] = field(default_factory=dict)
    batches: list[list[str]] = field(default_factory=list)

    def read(self, path: Path) -> None:
        """Takes in the lines of one life. A line torn by the kill was not confirmed."""
        open_by_writer: dict[int, dict[str, Any]] = {}
        for raw in path.read_bytes().split(b"\n")[:-1]:
            line = json.loads(raw)
            if line["kind"] == "begin":
                open_by_writer[line["writer"]] = line
            elif line["kind"] == "done":
                del open_by_writer[line["writer"]]
                self.confirmed.update(zip(line["ids"], line["texts"], strict=True))
        for line in open_by_writer.values():
            for id_, text in zip(line["ids"], line["texts"], strict=True):
                self.under_way[id_] = {text, self.confirmed.get(id_)}
            if line["verb"] == "batch":
                self.batches.append(line["ids"])


def live_and_die(folder: Path, acks: Path, seed: int, seconds: float, *slow: str) -> None:
    """One life of the writing process, killed `seconds` after it opened the folder."""
    command = [sys.executable, str(CHILD), str(folder), str(acks), str(seed), *slow]
    with subprocess.Popen(command, start_new_session=True) as child:

        def begun() -> bool:
            assert child.poll() is None, "the writer ended by itself"
            return acks.exists() and acks.stat().st_size > 0

        until(begun, "the writer begins", every=0.005)
        time.sleep(seconds)
        assert child.poll() is None, "the writer ended by itself"
        os.killpg(child.pid, signal.SIGKILL)


def check(opened: BlockingMemoranda, ledger: Ledger) -> None:
    """Holds the folder against the ledger, then makes what was under way part of it."""
    held = held_rows(opened)
    for id_, ways in ledger.under_way.items():
        assert held.get(id_) in ways, f"{id_}: {held.get(id_)!r} is half of something"
        ledger.confirmed[id_] = held.get(id_)
    for batch in ledger.batches:
        assert len({id_ in held for id_ in batch}) == 1, "half of a batch"
    ledger.under_way.clear()
    ledger.batches.clear()
    expected = {id_: text for id_, text in ledger.confirmed.items() if text is not None}
    assert held == expected
    check_indexes(opened)


def held_rows(opened: BlockingMemoranda) -> dict[str, str]:
    """Every row's text, by id."""
    held: dict[str, str] = {}
    after = None
    while True:
        page = opened.memories.list(limit=1_000, after=after, order="asc", include_archived=True)
        held.update((one.id, one.content) for one in page.data)
        if not page.has_more:
            return held
        after = page.last_id


def check_indexes(opened: BlockingMemoranda) -> None:
    """Each index holds the rows of SQL, by seq, with the vectors of their present texts."""
    store = opened.inner.core.store
    rows = store.db.read(lambda c: c.select("SELECT seq, id, content FROM memories ORDER BY seq"))
    expected = ([], 0, *[len(rows)] * 3)
    until(lambda: settled(opened), "every index has its rows", accept=lambda told: told == expected)
    vectors = store.db.read(lambda c: c.select("SELECT seq, vector FROM embeddings ORDER BY seq"))
    assert [seq for seq, _ in vectors] == [seq for seq, _, _ in rows]
    stored = dict(vectors)
    for seq, id_, content in random.sample(rows, min(len(rows), 40)):
        found = store.words.search("default", content.split()[0], 1_000)
        assert found.seqs.tolist() == [seq], f"words of {id_}"
        present = HashEmbedder(64, 1).compute([content], "document").vectors[0]
        assert vectors_of(stored[seq]) == pytest.approx(present, abs=1e-6), f"stored vector of {id_}"
        near = store.index.search("default", present, 1, Compare("$seq", "eq", seq))
        assert near.scores.tolist() == pytest.approx([1.0], abs=1e-3), f"indexed vector of {id_}"
    assert opened.memories.search("first again").degraded == []
    if rows:
        near = store.index.search("default", vectors_of(vectors[0][1]), 10 * len(rows))
        assert sorted(near.seqs.tolist()) == [seq for seq, _, _ in rows]


def settled(opened: BlockingMemoranda) -> tuple[Any, ...]:
    """Counts of rows in the indexes. These follow a moment after the transaction that a writer was killed behind."""
    told = opened.memories.stats()
    names = ("behind", "unembedded", "vectors", "indexed_vectors", "indexed_words")
    return tuple(told[name] for name in names)


def vectors_of(data: bytes) -> Any:
    return np.frombuffer(data, dtype="<f4")


def files_of(folder: Path) -> int:
    """How many files the folder has."""
    return sum(path.is_file() for path in folder.rglob("*"))


def run(tmp_path: Path, lives: int, seed: int, *slow: str) -> None:
    print(f"seed {seed}")
    rng = random.Random(seed)
    folder, ledger = tmp_path / "data", Ledger()
    most = 0
    for life in range(lives):
        acks = tmp_path / f"acks-{life}"
        live_and_die(
            folder, acks, seed * 1_000 + life, rng.choice([0.0, 0.05, 0.2, 0.5]) * rng.random() * 2, *slow
        )
        ledger.read(acks)
        with memoranda.open(folder, embedder=QUICK) as opened:
            check(opened, ledger)
        count = files_of(folder)
        most = max(most, count) if life < 5 else most
        assert count <= most + 60, f"{count} files after {life + 1} kills, {most} in the beginning"
    assert ledger.confirmed, "nothing was ever confirmed: the kills came too early"


@pytest.mark.slow
def test_killed_at_any_moment(tmp_path: Path) -> None:
    run(tmp_path, 6, random.randrange(1_000_000))


def test_killed_between_rows_and_indexes(tmp_path: Path) -> None:
    run(tmp_path, 4, random.randrange(1_000_000), "slow")


@pytest.mark.slow
def test_killed_again_and_again_without_a_clean_close(tmp_path: Path) -> None:
    """Each life opens what the kill before it left; only the last one is looked at."""
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    folder, ledger = tmp_path / "data", Ledger()
    for life in range(3):
        acks = tmp_path / f"acks-{life}"
        live_and_die(folder, acks, seed * 1_000 + life, 0.2)
        ledger.read(acks)
    with memoranda.open(folder, embedder=QUICK) as opened:
        check(opened, ledger)


@pytest.mark.slow
@pytest.mark.parametrize("slow", [(), ("slow",)])
def test_a_hundred_kills(tmp_path: Path, slow: tuple[str, ...]) -> None:
    run(tmp_path, 60, random.randrange(1_000_000), *slow)
