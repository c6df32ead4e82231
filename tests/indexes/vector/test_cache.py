"""The memory index on disk: whole, or not there; and free of what was forgotten."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memoranda.errors import IndexUnavailable
from memoranda.filters import Compare
from memoranda.indexes.vector import IndexLocation, VectorBatch, memory
from memoranda.indexes.vector.memory import MemoryIndex

DIM, ROWS = 16, 6000
SECRET = "the-forgotten-word"


def batch(seqs: range, secret: str = "plain") -> VectorBatch:
    vectors = np.random.default_rng(seqs.start).standard_normal((len(seqs), DIM), np.float32)
    attributes = [{"$seq": seq, "word": secret, "n": seq} for seq in seqs]
    return VectorBatch(np.array(seqs), np.zeros(len(seqs), np.int32), vectors, attributes)


def opened(folder: Path, url: str = "memory:") -> MemoryIndex:
    return MemoryIndex(url, DIM, IndexLocation(folder))


def filled(folder: Path) -> Path:
    """The folder of a closed index at revision 7: a large tenant (mapped floats, codes) and a small one."""
    index = opened(folder)
    index.put("large", batch(range(ROWS)))
    index.put("small", batch(range(50)))
    index.flush(7)
    index.close()
    return folder


def truncate(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 50)


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 100] ^= 0x10
    path.write_bytes(data)


def empty(path: Path) -> None:
    path.write_bytes(b"")


DAMAGE: list[Callable[[Path], None]] = [truncate, flip, empty, Path.unlink]


@pytest.mark.parametrize("damage", DAMAGE, ids=["truncated", "flipped", "emptied", "deleted"])
@pytest.mark.parametrize("pattern", ["manifest.json", "*.f32", "p1-*.columns", "p2-*.columns", "*.codes"])
def test_a_damaged_file_means_an_empty_index_that_works(
    tmp_path: Path, pattern: str, damage: Callable[[Path], None]
) -> None:
    (path,) = filled(tmp_path).glob(pattern)
    damage(path)
    index = opened(tmp_path)
    assert (index.watermark, index.count("large"), index.count("small")) == (0, 0, 0)
    index.put("large", batch(range(ROWS)))
    index.flush(9)
    index.close()
    again = opened(tmp_path)
    assert (again.watermark, again.count("large"), again.count("small")) == (9, ROWS, 0)
    again.close()


def test_damage_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    flip(filled(tmp_path) / "manifest.json")
    with caplog.at_level(logging.WARNING):
        opened(tmp_path).close()
    assert "made again" in caplog.text


def test_another_dimension_or_engine_starts_empty(tmp_path: Path) -> None:
    for name, url, dim in (("a", "memory:", DIM + 8), ("b", "memory:?engine=float", DIM)):
        filled(tmp_path / name)
        index = MemoryIndex(url, dim, IndexLocation(tmp_path / name))
        assert (index.watermark, index.count("large")) == (0, 0)
        index.close()


def test_a_crash_between_checkpoints_gives_the_last_one(tmp_path: Path) -> None:
    folder = filled(tmp_path / "live")
    index = opened(folder)
    query = batch(range(ROWS)).vectors[0]
    before = index.search("large", query, 10)
    index.put("large", batch(range(ROWS, ROWS + 3000)))
    index.remove("small", list(range(10)))
    index.flush(8)
    crashed = tmp_path / "crashed"
    shutil.copytree(folder, crashed)
    index.close()
    again = opened(crashed)
    assert (again.watermark, again.count("large"), again.count("small")) == (7, ROWS, 50)
    found = again.search("large", query, 10)
    assert (found.seqs.tolist(), found.scores.tolist()) == (before.seqs.tolist(), before.scores.tolist())
    again.put("large", batch(range(ROWS, ROWS + 3000)))
    assert again.count("large", Compare("n", "gte", ROWS)) == 3000
    again.close()


def test_a_crash_after_compaction_gives_the_last_checkpoint(tmp_path: Path) -> None:
    folder = filled(tmp_path / "live")
    index = opened(folder)
    index.remove("large", list(range(0, ROWS, 2)))
    assert index.health()["removed_vectors"] == 0, "half of it dead: compacted by itself"
    crashed = tmp_path / "crashed"
    shutil.copytree(folder, crashed)
    index.close()
    again = opened(crashed)
    assert (again.watermark, again.count("large")) == (7, ROWS)
    again.close()


def test_checkpoints_come_by_count_of_changes(tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.put("t", batch(range(1000)))
    index.flush(1)
    assert index.watermark == 0
    index.put("t", batch(range(1000, 1000 + memory.CHECKPOINT_FROM)))
    index.flush(2)
    assert index.watermark == 2
    index.close()


@pytest.mark.parametrize("rows", [100, ROWS])
def test_what_was_removed_leaves_no_byte_behind(tmp_path: Path, rows: int) -> None:
    index = opened(tmp_path)
    index.put("t", batch(range(rows)))
    index.put("t", batch(range(rows, rows + 60), SECRET))
    index.flush(1)
    index.compact()
    unit = batch(range(rows, rows + 60)).vectors
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    needles = [SECRET.encode(), *(vector.tobytes()[:12] for vector in unit)]

    def found() -> int:
        held = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        return sum(needle in held for needle in needles)

    assert found() > 40, "the test can see what it looks for"
    index.remove("t", list(range(rows, rows + 60)))
    index.compact()
    assert found() == 0
    assert index.count("t") == rows
    index.close()


def test_an_unwritable_folder_is_said(tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.put("t", batch(range(10)))
    index.flush(1)
    shutil.rmtree(tmp_path)
    with pytest.raises(IndexUnavailable, match="Rows are safe"):
        index.compact()
    assert index.count("t") == 10
    tmp_path.mkdir()


def test_leftovers_are_swept_and_foreign_files_stay(tmp_path: Path) -> None:
    filled(tmp_path)
    (tmp_path / "p99.f32").write_bytes(b"left by a crash")
    (tmp_path / "README").write_text("not ours")
    opened(tmp_path).close()
    assert not (tmp_path / "p99.f32").exists()
    assert (tmp_path / "README").exists()
