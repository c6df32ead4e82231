"""How the memory index keeps itself in shape."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from memoranda.filters import EVERYTHING, Compare, matches
from memoranda.indexes.vector import IndexLocation, VectorBatch, memory, open_index
from memoranda.indexes.vector.floats import FileFloats
from memoranda.indexes.vector.memory import MemoryIndex
from memoranda.indexes.vector.quantised import BLOCK_ROWS, NO_BLOCKS, open_engine
from support.waiting import until

DIM = 16


def filled(rows: int, url: str = "memory:") -> MemoryIndex:
    index = open_index(url, DIM, None)
    assert isinstance(index, MemoryIndex)
    vectors = np.random.default_rng(0).standard_normal((rows, DIM), np.float32)
    for start in range(0, rows, 1000):
        seqs = np.arange(start, min(start + 1000, rows))
        attributes = [{"$seq": int(seq), "n": int(seq)} for seq in seqs]
        index.put("t", VectorBatch(seqs, np.zeros(len(seqs), np.int32), vectors[seqs], attributes))
    return index


def test_searches_that_pay_for_a_long_tail_get_it_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "COPY_COST", 0)
    monkeypatch.setattr(memory, "QUANTISE_COST", 2)
    index = filled(6500)
    assert index.health()["quantised_vectors"] == 5000
    query = np.ones(DIM, np.float32)
    before = index.search("t", query, 10)

    def sealed() -> bool:
        assert index.search("t", query, 10).seqs.tolist() == before.seqs.tolist()
        return bool(index.health()["quantised_vectors"] == 6500)

    until(sealed, "a sealed tail")
    index.close()


def test_a_quarter_dead_is_compacted_away() -> None:
    index = filled(8000)
    index.remove("t", list(range(2000)))
    assert index.health()["removed_vectors"] == 2000
    index.remove("t", [2000])
    assert (index.health()["removed_vectors"], index.count("t")) == (0, 5999)
    index.close()


@pytest.mark.parametrize("name", ["turbovec", "numkong"])
def test_texts_that_are_all_the_same_are_taken(name: str) -> None:
    """A document of one line, thousands of times; and others after it."""
    if name == "numkong":
        pytest.importorskip("numkong")
    index, same = filled(0, f"memory:?engine={name}"), np.ones((9000, DIM), np.float32)
    for start in (0, 4500):
        seqs = np.arange(start, start + 4500)
        index.put(
            "t", VectorBatch(seqs, np.zeros(4500, np.int32), same[:4500], [{"$seq": int(n)} for n in seqs])
        )
    assert index.health()["quantised_vectors"] == 9000
    others = np.random.default_rng(0).standard_normal((9000, DIM), np.float32)
    seqs = np.arange(9000, 18_000)
    index.put("t", VectorBatch(seqs, np.zeros(9000, np.int32), others, [{"$seq": int(n)} for n in seqs]))
    assert index.search("t", same[0], 3).scores.tolist() == pytest.approx([1.0] * 3, abs=1e-3)
    assert index.search("t", others[7], 1).seqs.tolist() == [9007]
    index.close()


@pytest.mark.parametrize("name", ["turbovec", "numkong"])
def test_blocks_split_and_cover_every_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "numkong":
        pytest.importorskip("numkong")
    assert BLOCK_ROWS % 8 == 0
    monkeypatch.setattr("memoranda.indexes.vector.quantised.BLOCK_ROWS", 1000)
    engine = open_engine(name, DIM)
    assert engine is not None
    rows = np.random.default_rng(0).standard_normal((3500, DIM), np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    blocks = NO_BLOCKS
    for n in (300, 700, 1000, 2600, 3500):
        blocks = blocks.cover(n, engine, rows)
        assert blocks.sealed == n
        assert [piece.start for piece in blocks.pieces] == list(range(0, n, 1000))
    for wanted in (0, 999, 1000, 2600, 3499):
        slots, _ = blocks.nearest(rows[wanted], 20, None)
        assert wanted in slots
        alone = np.zeros(3500, np.bool_)
        alone[[wanted, 17]] = True
        slots, _ = blocks.nearest(rows[wanted], 20, alone)
        assert set(slots.tolist()) == {wanted, 17}


@pytest.mark.parametrize("name", ["turbovec", "numkong"])
@pytest.mark.parametrize("dim", [8, 20, 100])
def test_a_block_comes_back_from_its_bytes(name: str, dim: int) -> None:
    if name == "numkong":
        pytest.importorskip("numkong")
    engine = open_engine(name, dim)
    assert engine is not None
    rows = np.random.default_rng(0).standard_normal((500, dim), np.float32)
    block = engine.empty(rows).extended(rows)
    again = engine.load(block.dump())
    assert again.rows == 500
    for k, mask in ((5, None), (500, None), (5, np.arange(500) % 3 > 0), (400, np.arange(500) % 9 > 0)):
        mine, theirs = block.nearest(rows[3], k, mask), again.nearest(rows[3], k, mask)
        assert sorted(mine[0].tolist()) == sorted(theirs[0].tolist())
        assert mask is None or mask[mine[0]].all()
    with pytest.raises(ValueError, match=r".+"):
        engine.load(block.dump()[:-3])


def test_rows_of_a_long_file_are_those_of_the_mapping(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    floats = FileFloats(tmp_path / "f", DIM, 0)
    rows = np.random.default_rng(0).standard_normal((9000, DIM), np.float32)
    floats.write(0, rows[:5000])
    floats.write(5000, rows[5000:])
    slots = np.array([8999, 0, 4999, 5000, 0])
    for mapped in (2**30, 0):
        monkeypatch.setattr("memoranda.indexes.vector.floats.MAPPED_READS", mapped)
        assert (floats.gather(slots) == rows[slots]).all()
        floats.drop_pages()
    assert (floats.rows()[:9000] == rows).all()


def test_an_index_lets_go_of_its_files(tmp_path: Path) -> None:
    for _ in range(5):
        index = MemoryIndex("memory:", DIM, IndexLocation(tmp_path))
        seqs = np.arange(3000)
        vectors = np.random.default_rng(0).standard_normal((3000, DIM), np.float32)
        index.put("t", VectorBatch(seqs, np.zeros(3000, np.int32), vectors, [{}] * 3000))
        index.flush(1)
        index.compact()
        index.close()
    assert [file for file in open_files() if file.is_relative_to(tmp_path)] == []


def open_files() -> Iterator[Path]:
    """What the descriptors of this process are of; those of other threads may close meanwhile."""
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield descriptor.readlink()


def test_filters_over_sealed_rows_and_tail_mean_what_matches_says() -> None:
    index = filled(6500)
    query = np.ones(DIM, np.float32)
    for where in (Compare("n", "gt", 1000), Compare("n", "in", tuple(range(0, 6500, 40))), EVERYTHING):
        passing = [n for n in range(6500) if matches(where, {"n": n, "$seq": n})]
        assert set(index.search("t", query, 6500, where).seqs.tolist()) == set(passing)
    index.close()


def test_only_quick_searches_are_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "READY_ROWS", 3000)
    index = filled(3000)
    assert index.ready("t")
    assert index.ready("nobody")
    index.put("t", VectorBatch(np.array([9000]), np.zeros(1, np.int32), np.ones((1, DIM), np.float32), [{}]))
    locked, done = threading.Event(), threading.Event()

    def write() -> None:
        with index._lock:
            locked.set()
            done.wait(20)

    writer = threading.Thread(target=write)
    writer.start()
    locked.wait(20)
    assert not index.ready("t"), "a search would wait for the writer"
    done.set()
    writer.join()
    assert index.ready("t")
    index.search("t", np.ones(DIM, np.float32), 1)
    assert not index.ready("t"), "the tenant has grown"
    index.close()
