"""What the LanceDB index promises beyond the suite of every index."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from os import getuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.filters import EVERYTHING, AllOf, AnyOf, Compare, Filter, matches
from memoranda.indexes.vector import IndexLocation, VectorBatch, open_index
from memoranda.indexes.vector.lance_options import parse, table_name
from support import live_files

if find_spec("lancedb") is None:
    pytest.skip("lancedb is not installed", allow_module_level=True)
if TYPE_CHECKING:  # importing LanceDB takes seconds, which every process that collects the tests would spend
    from memoranda.indexes.vector.lance_table import LanceTable
    from memoranda.indexes.vector.lancedb import LanceIndex

DIM = 16


def opened(folder: Path | None, options: str = "", dim: int = DIM, space: str = "default") -> LanceIndex:
    from memoranda.indexes.vector.lancedb import LanceIndex

    return LanceIndex(f"lancedb:{options}", dim, IndexLocation(folder, space))


def noise(rows: int, dim: int = DIM, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((rows, dim), np.float32)


def batch(
    seqs: Sequence[int], vectors: NDArray[np.float32], rows: Sequence[dict[str, Any]] | None = None
) -> VectorBatch:
    held = rows if rows is not None else [{}] * len(seqs)
    return VectorBatch(
        np.asarray(seqs, np.int64), np.zeros(len(seqs), np.int32), vectors, [dict(row) for row in held]
    )


def settled(index: LanceIndex) -> None:
    """Waits for the thread that merges files and builds indexes."""
    if index._tidier is not None:
        index._tidier.join()


# --- the URL -------------------------------------------------------------------------------------------


def test_a_url_says_where_and_how() -> None:
    assert parse("lancedb:").where is None
    assert parse("lancedb:/data/x?ef=50&index=none").where == "/data/x"
    bucket = parse("lancedb:s3://bucket/prefix?region=eu&aws_access_key_id=k&batch=9")
    assert bucket.remote
    assert (bucket.where, bucket.batch) == ("s3://bucket/prefix", 9)
    assert bucket.storage == {"region": "eu", "aws_access_key_id": "k"}


@pytest.mark.parametrize(
    "options", ["metric=l2", "speed=high&ef=3", "index=flat", "ef=many", "nprobes=0", "region=eu"]
)
def test_a_wrong_option_is_named(options: str) -> None:
    name = options.split("=")[0]
    with pytest.raises(ConfigError, match=name) as told:
        open_index(f"lancedb:?{options}", DIM, None)
    assert told.value.field == "index.url"


def test_a_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("memoranda.indexes.vector.lance")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "lancedb", None)
    with pytest.raises(ConfigError, match=r"pip install 'memoranda\[lancedb\]'"):
        importlib.import_module("memoranda.indexes.vector.lancedb")


def test_spaces_have_tables_of_their_own(tmp_path: Path) -> None:
    names = {table_name(space, 8) for space in ("a/b", "a:b", "a_b", "ü", "", "x" * 300, "x" * 301)}
    assert len(names) == 7
    assert all(name.isascii() and name.replace("_", "").replace("-", "").isalnum() for name in names)
    one, other = opened(tmp_path, space="a/b"), opened(tmp_path, space="a:b")
    one.put("t", batch([1], noise(1)))
    one.flush(1)
    one.close()
    assert other.count("t") == 0
    other.close()


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(IndexUnavailable, match="file"):
        open_index(f"lancedb:{tmp_path}/file", DIM, None)


def test_a_bucket_that_does_not_answer_is_told() -> None:
    where = "s3://bucket/prefix?endpoint=http://127.0.0.1:9&allow_http=true&region=x&client_max_retries=0"
    keys = "&aws_access_key_id=k&aws_secret_access_key=s"
    with pytest.raises(IndexUnavailable, match="could not open its table"):
        open_index(f"lancedb:{where}{keys}", DIM, None)


# --- filters -------------------------------------------------------------------------------------------

ODD = [
    "it's", "a\\", "\0", "\1k\2s", "\ud800", "line\nbreak", '"', "%", "a\2", "-- x", "", "é", "\U0001f642",
    2**53 + 1, 2**60 + 1, -(2**60) - 1, 2**80 + 1, float("inf"), float("-inf"), -0.0, 5e-324, 1, 1.0, True,
]  # fmt: skip
SCALARS = st.none() | st.sampled_from(ODD) | st.integers(-3, 3) | st.floats(allow_nan=False)
HELD = SCALARS | st.lists(SCALARS, max_size=3) | st.just({"nested": 1}) | st.just(float("nan"))
KEYS = st.sampled_from(["lang", "$kind", "$occurred_at", "$tags", "a'b\\", "\1", "k:s"])
ORDERS = st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"])
CONDITIONS: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Compare, KEYS | st.just("$seq"), ORDERS, SCALARS),
    st.builds(Compare, KEYS, st.sampled_from(["in", "nin"]), st.lists(SCALARS, max_size=4).map(tuple)),
)
FILTERS: st.SearchStrategy[Filter] = st.recursive(
    CONDITIONS,
    lambda parts: st.one_of(
        st.builds(AllOf, st.lists(parts, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(parts, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@pytest.fixture
def cleared() -> Iterator[LanceIndex]:
    index = opened(None, "?batch=1")
    yield index
    index.close()


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.dictionaries(KEYS, HELD, max_size=4), min_size=1, max_size=12),
    wheres=st.lists(FILTERS, min_size=3, max_size=8),
    indexed=st.integers(0, 12),
)
def test_the_table_finds_what_matches_says(
    cleared: LanceIndex, rows: list[dict[str, Any]], wheres: list[Filter], indexed: int
) -> None:
    """With quotes, marks, half surrogates and numbers that no float is; some rows in the columns' indexes."""
    cleared.clear()
    vectors = noise(len(rows))
    for some in (range(len(rows))[:indexed], range(len(rows))[indexed:]):
        cleared.put("it's", batch(some, vectors[some.start : some.stop], rows[some.start : some.stop]))
        if some and some.start == 0 and indexed % 2:
            cleared._table.build_scalar_indexes()
    assert not cleared._state.tails
    cleared.put("other", batch(range(len(rows)), vectors, rows))
    for where in wheres:
        expected = [i for i, row in enumerate(rows) if matches(where, {**row, "$seq": i})]
        assert sorted(cleared.search("it's", vectors[0], 100, where).seqs.tolist()) == expected
        assert cleared.count("it's", where) == len(expected)


def test_the_largest_filter_is_answered() -> None:
    index = opened(None, "?batch=1")
    index.put("t", batch([1, 2], noise(2), [{"k": "v"}, {"k0": "v0"}]))
    where: Filter = AllOf(tuple(Compare(f"k{i}", "ne", f"v{i}") for i in range(984)))
    for depth in range(15):
        where = (AnyOf if depth % 2 else AllOf)((where, Compare("k", "eq", depth if depth % 2 else "v")))
    assert index.search("t", noise(1)[0], 5, where).seqs.tolist() == [1]
    many = Compare("k", "in", (*(f"x{i}" for i in range(9_999)), "v"))
    assert index.search("t", noise(1)[0], 5, many).seqs.tolist() == [1]
    index.close()


# --- the graph -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_graph_finds_the_nearest_whatever_the_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.indexes.vector.lancedb.NARROW", 100)
    centres = noise(30, seed=1)
    vectors = centres[np.arange(3_000) % 30] + 0.7 * noise(3_000)
    index = opened(None, "?train_rows=2000&batch=500")
    share = [{"share": i * 7 % 100} for i in range(3_000)]
    for start in range(0, 3_000, 500):
        some = range(start, start + 500)
        index.put("t", batch(some, vectors[start : start + 500], share[start : start + 500]))
    settled(index)
    index.put("t", batch([5], vectors[:1]))  # in the graph, and hidden
    version = index._state.version
    assert version.trained
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for percent, least in ((100, 0.99), (50, 0.98), (2, 0.98)):
        where = EVERYTHING if percent == 100 else Compare("share", "lt", percent)
        passing = np.flatnonzero((np.arange(3_000) * 7 % 100 < percent) & (np.arange(3_000) != 5))
        found = 0
        for query in units[10::100]:
            best = passing[np.argsort(-(units[passing] @ query), kind="stable")[:10]]
            got = index.search("t", query, 10, where).seqs
            found += len(set(best.tolist()) & set(got.tolist()))
        assert found >= least * 10 * len(units[10::100])
    index.close()


# --- files ---------------------------------------------------------------------------------------------


def files_with(folder: Path, vector: NDArray[np.float32]) -> list[str]:
    """Files that hold a piece of the vector at length 1."""
    piece = (vector / np.sqrt(np.vecdot(vector, vector))).astype("<f4").tobytes()[8:40]
    return [name for name, _ in live_files.holding(folder, piece)]


@pytest.mark.parametrize("how", ["remove", "replace", "clear"])
def test_what_was_compacted_away_is_in_no_file(tmp_path: Path, how: str) -> None:
    vectors = noise(2_000)
    index = opened(tmp_path, "?batch=100")
    for start in range(0, 2_000, 500):
        index.put("t", batch(range(start, start + 500), vectors[start : start + 500]))
    index.flush(1)
    index.compact()
    assert len(files_with(tmp_path, vectors[77])) == 1
    if how == "remove":
        assert index.remove("t", [77]) == 1
    elif how == "replace":
        index.put("t", batch([77], noise(1, seed=9)))
    else:
        index.clear()
    index.compact()
    assert files_with(tmp_path, vectors[77]) == []
    assert len(files_with(tmp_path, vectors[78])) == (0 if how == "clear" else 1)
    assert index.count("t") == {"remove": 1_999, "replace": 2_000, "clear": 0}[how]
    index.close()


@pytest.mark.slow
def test_many_small_files_become_few(tmp_path: Path) -> None:
    vectors = noise(2_000)
    index = opened(tmp_path, "?batch=20&optimize_every=1000&index=none")
    for start in range(0, 2_000, 20):
        index.put("t", batch(range(start, start + 20), vectors[start : start + 20]))
    settled(index)
    index.compact()
    assert len(list(tmp_path.rglob("*/data/*.lance"))) <= 2
    assert index.search("t", vectors[1234], 1).seqs.tolist() == [1234]
    index.close()


@pytest.mark.slow
def test_tidying_keeps_up_with_replacements(caplog: pytest.LogCaptureFixture) -> None:
    random = np.random.default_rng(0)
    vectors, held = noise(3_000), dict[int, int]()
    index = opened(None, "?batch=50&optimize_every=1000&train_rows=1000")
    for _ in range(50):
        seqs = np.unique(random.integers(0, 1_500, 100))
        chosen = random.integers(0, 3_000, len(seqs))
        index.put("t", batch(seqs.tolist(), vectors[chosen]))
        held.update(zip(seqs.tolist(), chosen.tolist(), strict=True))
        seq = int(seqs[0])
        assert index.search("t", vectors[held[seq]], 1).scores == pytest.approx([1], abs=1e-5)
    settled(index)
    assert caplog.records == []
    assert index.count("t") == len(held)
    found = index.search("t", vectors[0], 5_000)
    assert set(found.seqs.tolist()) == set(held)
    path = index._table.path
    assert path is not None
    assert len(list(path.glob("_versions/*"))) < 50
    index.close()


def test_an_index_without_a_folder_leaves_nothing() -> None:
    index = opened(None, "?batch=1")
    index.put("t", batch([1], noise(1)))
    path = index._table.path
    assert path is not None
    assert path.exists()
    index.close()
    assert not path.parent.exists()


# --- durability ----------------------------------------------------------------------------------------


def test_a_process_that_dies_leaves_what_was_made_durable(tmp_path: Path) -> None:
    vectors = noise(300)
    index = opened(tmp_path, "?batch=10")
    index.put("t", batch(range(100), vectors[:100]))
    index.flush(100)
    assert index.watermark == 100
    index.put("t", batch(range(100, 115), vectors[100:115]))
    index.flush(115)
    index.put("t", batch(range(115, 118), vectors[115:118]))
    index.flush(118)
    again = opened(tmp_path, "?batch=10")  # the first never closes
    assert again.watermark == 100
    assert 100 <= again.count("t") <= 115
    again.put("t", batch(range(100, 118), vectors[100:118]))
    again.flush(118)
    assert again.count("t") == 118
    assert again.search("t", vectors[117], 1).seqs.tolist() == [117]
    again.close()
    assert opened(tmp_path).watermark == 118


def test_rows_that_no_revision_vouches_for_are_dropped(tmp_path: Path) -> None:
    index = opened(tmp_path, "?batch=1")
    index.put("t", batch([1, 2], noise(2)))
    index.close()
    again = opened(tmp_path)
    assert (again.watermark, again.count("t")) == (0, 0)
    again.close()


def test_a_flush_saves_after_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = opened(tmp_path)
    index.put("t", batch([1], noise(1)))
    index.flush(1)
    assert index.watermark == 0
    monkeypatch.setattr("memoranda.indexes.vector.lancedb.MARK_SECONDS", 0.0)
    index.flush(2)
    assert index.watermark == 2
    again = opened(tmp_path)
    assert (again.watermark, again.count("t")) == (2, 1)


def test_a_replacement_that_breaks_off_midway_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = noise(60)
    index = opened(tmp_path, "?batch=20")
    index.put("t", batch(range(40), vectors[:40]))
    index.put("t", batch([50, 3], vectors[50:52]))
    index.flush(7)

    def full(self: LanceTable, rows: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("memoranda.indexes.vector.lance_table.LanceTable.add", full)
        for _ in range(2):
            with pytest.raises(IndexUnavailable, match="No space left"):
                index.put("t", batch(range(30), vectors[30:60]))
            assert index.count("t") == 41
            assert index.search("t", vectors[10], 1).seqs.tolist() == [10]
            assert index.search("t", vectors[51], 1).seqs.tolist() == [3]
    index.put("t", batch(range(60, 90), vectors[30:60]))
    assert index.count("t") == 71
    assert index.search("t", vectors[10], 1).seqs.tolist() == [10]
    assert index.search("t", vectors[51], 1).seqs.tolist() == [3]
    index.flush(8)
    index.close()
    again = opened(tmp_path)
    assert (again.watermark, again.count("t")) == (8, 71)
    again.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, check=False) if getuid() == 0 else None
    if mounted is None or mounted.returncode:
        pytest.skip("needs to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def put_until_refused(index: LanceIndex, vectors: NDArray[np.float32], kept: list[int]) -> None:
    """Puts fifties of rows and notes where each began."""
    for start in range(0, len(vectors), 50):
        index.put("t", batch(range(start, start + 50), vectors[start : start + 50]))
        kept.append(start)
        index.flush(start + 50)


def test_a_full_disk_is_told_and_loses_nothing(small_disk: Path) -> None:
    dim = 256
    vectors, kept = noise(6_000, dim), list[int]()
    index = opened(small_disk / "index", "?batch=200", dim)
    with pytest.raises(IndexUnavailable, match="No space left"):
        put_until_refused(index, vectors, kept)
    put = 50 * len(kept)
    assert put > 500
    assert index.count("t") == put
    assert index.search("t", vectors[put - 1], 1).seqs.tolist() == [put - 1]
    assert index.search("t", vectors[3], 1).seqs.tolist() == [3]
    with pytest.raises(IndexUnavailable):
        index.put("t", batch(range(put, put + 200), vectors[put : put + 200]))
    assert index.count("t") == put
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    index.put("t", batch(range(put, put + 200), vectors[put : put + 200]))
    index.flush(put + 200)
    assert index.count("t") == put + 200
    index.compact()
    index.close()
    again = opened(small_disk / "index", "", dim)
    assert (again.watermark, again.count("t")) == (put + 200, put + 200)
    again.close()
