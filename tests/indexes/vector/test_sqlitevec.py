"""The sqlite-vec index: its ways to an answer, its file, and what it refuses."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.filters import EVERYTHING, AllOf, AnyOf, Compare, Filter, Op, matches
from memoranda.indexes.vector import IndexLocation, VectorBatch, open_index, sqlite_search
from memoranda.indexes.vector.floats import unit
from memoranda.indexes.vector.sqlitevec import SqliteVecIndex
from support import live_files

pytest.importorskip("sqlite_vec")
DIM = 16


def vectors_of(seqs: Sequence[int], dim: int = DIM) -> NDArray[np.float32]:
    rows = [np.random.default_rng(seq).standard_normal(dim, np.float32) for seq in seqs]
    return np.array(rows, np.float32).reshape(-1, dim)


def batch(seqs: Sequence[int], rows: Sequence[dict[str, Any]] | None = None) -> VectorBatch:
    held = rows or [{}] * len(seqs)
    return VectorBatch(
        np.asarray(seqs, np.int64),
        np.zeros(len(seqs), np.int32),
        vectors_of(seqs),
        [{**row, "$seq": seq} for seq, row in zip(seqs, held, strict=True)],
    )


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SqliteVecIndex]:
    opened = SqliteVecIndex("sqlitevec:", DIM, IndexLocation(tmp_path))
    yield opened
    opened.close()


def expected(rows: Sequence[dict[str, Any]], query: NDArray[Any], limit: int, where: Filter) -> list[int]:
    passing = [i for i, row in enumerate(rows) if matches(where, {**row, "$seq": i})]
    scores = unit(vectors_of(passing)) @ unit(query[None])[0]
    return [passing[i] for i in np.argsort(-scores)[:limit]]


@pytest.mark.parametrize("wide", [0.001, 0.4, 2.0])
@pytest.mark.parametrize("gather_share", [1, 20, 100_000])
def test_every_way_to_an_answer_gives_the_same(
    index: SqliteVecIndex, monkeypatch: pytest.MonkeyPatch, wide: float, gather_share: int
) -> None:
    monkeypatch.setattr(sqlite_search, "WIDE", wide)
    monkeypatch.setattr(sqlite_search, "GATHER_SHARE", gather_share)
    rows = [{"$user_id": f"u{i % 5}" if i % 2 else None, "n": i % 100, "odd": 2**53 + 1} for i in range(700)]
    rows = [row if i % 10 == 0 else {**row, "odd": 1} for i, row in enumerate(rows)]
    index.put("t", batch(range(700), rows))
    query = vectors_of([10_000])[0]
    for where in (
        Compare("n", "lt", 90),
        Compare("n", "lt", 2),
        Compare("$user_id", "in", ("u3", None)),
        Compare("odd", "gt", 2**53),
        Compare("n", "eq", 12_345),
    ):
        for limit in (1, 10, 100, 5000):
            assert index.search("t", query, limit, where).seqs.tolist() == expected(rows, query, limit, where)


@pytest.mark.parametrize("where", [EVERYTHING, Compare("n", "eq", 1), Compare("n", "ne", 2)])
def test_limits_beyond_what_the_extension_takes(index: SqliteVecIndex, where: Filter) -> None:
    rows = [{"n": 1}] * 6000
    seqs = list(range(6000))
    index.put("t", batch(seqs, rows))
    query = vectors_of([10_000])[0]
    assert index.search("t", query, 5500, where).seqs.tolist() == expected(rows, query, 5500, where)


def test_a_filter_of_a_thousand_conditions_and_one_of_ten_thousand_values(index: SqliteVecIndex) -> None:
    index.put("t", batch(range(50), [{"n": i, "s": f"v{i}"} for i in range(50)]))
    many = AnyOf(tuple(Compare("n", "eq", i) for i in range(25, 1025)))
    nested: Filter = Compare("n", "lt", 30)
    for _ in range(16):
        nested = AllOf((AnyOf((nested,)),))
    every = AllOf((many, nested, *[Compare("s", "in", tuple(f"v{i}" for i in range(10_000)))] * 30))
    assert index.count("t", every) == 5
    listed = Compare("$seq", "nin", (*range(10, 10_000), 3.0, 4.5, "5", None, float("nan"), 2**70))
    assert sorted(index.search("t", vectors_of([1])[0], 50, listed).seqs.tolist()) == [0, 1, 2, *range(4, 10)]


def test_keys_and_strings_that_sql_could_mistake(index: SqliteVecIndex) -> None:
    values = [
        "a",
        'q"uote',
        "back\\slash",
        '["s1"]',
        "\0",
        "a\0b",
        "n8000000000000000",
        "\ud800",
        "",
        "tz",
        "\ue000",
    ]
    keys = ["k", 'a"b', "a.b", "a b", "$odd", "ä", "~6b", "\ud800", "a'; DROP TABLE records; --"]
    rows = [{key: value} for key in keys for value in values]
    index.put("t", batch(range(len(rows)), rows))
    ops: tuple[Op, ...] = ("eq", "ne", "gt", "gte", "lt", "lte")
    for key in keys:
        for value in values:
            for op in ops:
                where = Compare(key, op, value)
                wanted = sum(matches(where, row) for row in rows)
                assert index.count("t", where) == wanted, where


def test_what_was_removed_is_nowhere_in_the_files(index: SqliteVecIndex, tmp_path: Path) -> None:
    seqs = list(range(600))
    index.put("forgotten tenant", batch(seqs, [{"note": f"secret{i}x"} for i in seqs]))
    units = unit(vectors_of(seqs))

    def remains(some: Sequence[int]) -> list[int]:
        pieces = {i: [units[i, :8].tobytes(), units[i, 8:].tobytes(), f"secret{i}x".encode()] for i in some}
        found = {piece for _, piece in live_files.holding(tmp_path, *chain(*pieces.values()))}
        return [i for i in some if not found.isdisjoint(pieces[i])]

    assert remains(seqs) == seqs
    index.remove("forgotten tenant", seqs[:20])
    index.compact()
    assert remains(seqs[:20]) == []
    assert remains(seqs[20:]) == seqs[20:]
    index.remove("forgotten tenant", seqs)
    index.put("other", batch([1]))
    index.compact()
    assert remains(seqs[2:]) == []
    assert live_files.holding(tmp_path, b"forgotten") == set()
    assert index.search("other", vectors_of([1])[0], 3).seqs.tolist() == [1]


def test_space_comes_back(index: SqliteVecIndex) -> None:
    index.put("t", batch(range(20_000)))
    index.compact()
    before = index.health()["bytes_on_disk"]
    index.remove("t", range(1000, 20_000))
    index.compact()
    after = index.health()
    assert int(str(after["bytes_on_disk"])) < int(str(before)) / 4
    assert (after["vectors"], after["removed_vectors"]) == (1000, 0)


def test_a_process_that_ends_without_closing_keeps_a_revision_it_was_told(tmp_path: Path) -> None:
    index = open_index("sqlitevec:", DIM, tmp_path / "a")
    index.put("t", batch(range(10)))
    index.flush(10)
    assert index.watermark == 0
    index.put("t", batch(range(10, 20)))
    index.flush(20)
    live_files.copy(tmp_path / "a", tmp_path / "b")
    left = open_index("sqlitevec:", DIM, tmp_path / "b")
    assert (left.watermark, left.count("t")) == (10, 20)
    left.close()
    index.compact()
    assert index.watermark == 20
    index.close()


def test_many_vectors_become_durable_on_their_own(index: SqliteVecIndex) -> None:
    for start in range(0, 12_000, 2000):
        index.put("t", batch(range(start, start + 2000)))
        index.flush(start + 2000)
    assert index.watermark == 10_000


@pytest.mark.parametrize("damage", ["header", "page", "stamp", "dim"])
def test_a_damaged_file_starts_empty(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    index = open_index("sqlitevec:", DIM, tmp_path)
    index.put("t", batch(range(500)))
    index.flush(5)
    index.close()
    path = tmp_path / "vectors.sqlite"
    data = bytearray(path.read_bytes())
    if damage == "header":
        data[:100] = b"x" * 100
    if damage == "page":
        for start in range(8192, len(data), 8192):
            data[start : start + 64] = b"\xff" * 64
    path.write_bytes(data)
    if damage == "stamp":
        with sqlite3.connect(path) as db:
            db.execute("UPDATE about SET stamp = 'sqlitevec 0'")
        db.close()
    again = open_index("sqlitevec:", 2 * DIM if damage == "dim" else DIM, tmp_path)
    assert (again.watermark, again.count("t")) == (0, 0)
    assert "starts empty" in caplog.text
    again.close()


def test_a_named_file(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "v.db"
    index = open_index(f"sqlitevec:{path}", DIM, tmp_path / "unused")
    index.put("t", batch([1, 2]))
    index.flush(2)
    index.close()
    assert not (tmp_path / "unused").exists()
    again = open_index(f"sqlitevec:{path}", DIM, None)
    assert (again.watermark, again.count("t")) == (2, 2)
    again.close()
    with pytest.raises(ConfigError, match="other vectors"):
        open_index(f"sqlitevec:{path}", DIM, None, space="another")


@pytest.mark.parametrize("what", ["text", "database"])
def test_a_named_file_of_something_else_is_left_alone(tmp_path: Path, what: str) -> None:
    path = tmp_path / "theirs.db"
    if what == "text":
        path.write_bytes(b"dear diary " * 1000)
    else:
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE theirs (x)")
        db.close()
    before = path.read_bytes()
    with pytest.raises(ConfigError, match=r"index\.url.*not a vector index"):
        open_index(f"sqlitevec:{path}", DIM, None)
    assert path.read_bytes() == before


def test_options_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"index\.url.*quantise=1"):
        open_index("sqlitevec:?quantise=1", DIM, None)


def test_the_package_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    with pytest.raises(ConfigError, match=r"index\.url.*pip install 'memoranda\[sqlitevec\]'"):
        open_index("sqlitevec:", DIM, None)


def test_a_folder_that_cannot_be_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(IndexUnavailable, match="opening"):
        open_index("sqlitevec:", DIM, tmp_path / "file" / "below")


def test_a_failed_put_leaves_nothing(index: SqliteVecIndex) -> None:
    index.put("t", batch([1], [{"v": "old"}]))
    index._db.execute(
        "CREATE TEMP TRIGGER full BEFORE INSERT ON main.records WHEN NEW.seq = 3 "
        "BEGIN SELECT RAISE(ABORT, 'no room'); END"
    )
    with pytest.raises(IndexUnavailable, match="no room"):
        index.put("t", batch([1, 2, 3]))
    assert index.count("t") == index.count("t", Compare("v", "eq", "old")) == 1
    index.put("t", batch([4]))
    assert sorted(index.search("t", vectors_of([1])[0], 9).seqs.tolist()) == [1, 4]


def test_searches_do_not_wait_for_a_writer(index: SqliteVecIndex) -> None:
    index.put("t", batch(range(100)))
    found: list[int] = []
    with index._change("holding"):
        index._db.execute("DELETE FROM records")
        reader = threading.Thread(
            target=lambda: found.append(len(index.search("t", vectors_of([1])[0], 500)))
        )
        reader.start()
        reader.join(10)
        assert found == [100]
        index._db.execute("INSERT INTO tenants (name) VALUES (x'00')")
    assert len(index.search("t", vectors_of([1])[0], 500)) == 0


def test_zero_vectors_take_their_place_among_the_others(index: SqliteVecIndex) -> None:
    seqs = list(range(40))
    whole = batch(seqs, [{"n": i} for i in seqs])
    vectors = whole.vectors.copy()
    vectors[::4] = 0
    index.put("t", VectorBatch(whole.seqs, whole.parts, vectors, whole.attributes))
    query = vectors_of([10_000])[0]
    scores = unit(vectors) @ unit(query[None])[0]
    for limit in (3, 20, 40):
        wanted = np.lexsort((np.arange(40), -scores))[:limit]
        assert index.search("t", query, limit).seqs.tolist() == wanted.tolist()
    few = index.search("t", query, 5, Compare("n", "in", (4, 8)))
    assert (few.seqs.tolist(), few.scores.tolist()) == ([4, 8], [0, 0])
    assert index.remove("t", [4]) == 1
    assert index.count("t") == 39
