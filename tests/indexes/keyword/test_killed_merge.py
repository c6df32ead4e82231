"""Segments whose merge was killed, and the first deletion after the next start."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memoranda.indexes.keyword.segments import Segments
from memoranda.indexes.keyword.tail import TailDoc

FEW = 4
"""Segments that are left alone; twice as many are merged."""


def doc(seq: int) -> tuple[tuple[str, int], TailDoc]:
    return ("t", seq), TailDoc("t", seq, f"number{seq}", {}, fresh=True)


def filled(folder: Path, first: int, largest: int) -> None:
    """An index of `FEW` segments, the first with `largest` documents, the others with three."""
    opened = Segments(folder)
    for number in range(FEW):
        seqs = range(first + 10 * number, first + 10 * number + (3 if number else largest))
        opened.apply(map(doc, seqs), careful=False)
        opened.commit()
    opened.close()


def join(folder: Path, other: Path) -> None:
    """Add the segments of another index: as many stay behind when a merge is killed."""
    for path in other.iterdir():
        if not path.name.startswith(".") and path.name != "meta.json":
            shutil.copy(path, folder)
    for name, key in (("meta.json", "segments"), (".managed.json", None)):
        mine, more = (json.loads((place / name).read_bytes()) for place in (folder, other))
        rows = mine if key is None else mine[key]
        rows += [row for row in (more if key is None else more[key]) if row not in rows]
        (folder / name).write_text(json.dumps(mine))


@pytest.mark.parametrize("reopened", [False, True])
def test_the_first_deletion_holds_in_a_merge(tmp_path, reopened):
    folder, other = tmp_path / "one", tmp_path / "other"
    filled(folder, 0, largest=5)
    filled(other, 100, largest=3)
    opened = Segments(folder)
    opened.apply([(("t", 31), None)], careful=False)
    opened.commit()
    opened.close()
    join(folder / "segments", other / "segments")
    opened = Segments(folder)
    assert (opened.searcher.num_segments, opened.searcher.num_docs) == (2 * FEW, 25)
    if reopened:
        opened.settle()
    opened.apply([(("t", 30), None), doc(500)], careful=False)
    opened.commit()
    opened.settle()
    opened.commit()
    assert opened.searcher.num_segments < FEW, "nothing was merged"
    assert opened.searcher.num_docs == 25
    opened.close()
