"""Vector search side by side: the memory index's engines against numpy, faiss, usearch and hnswlib.

    python benchmarks/index.py --rows 10000 100000 [--vectors FILE.npy] [--only NAME ...]

Prints a markdown table. Every line is a process of its own, all over the same vectors. Times are CPU time with
one BLAS/OpenMP thread: milliseconds per query (mean of three passes over the queries), and seconds to add all
rows. Recall is recall@10 against an exact scan in float. `bytes` is what the process grew by per vector, pages of
mapped files included. Filters pass a random share of the rows; a peer that cannot filter inside its search has
none. Peers that are not installed are left out: pip install faiss-cpu usearch hnswlib.

`--vectors` takes real embeddings, (n, dim) float32; rows beyond n are repeated with noise. Without it the vectors
are synthetic: one cluster per hundred rows, noise as strong as the centres.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import EVERYTHING, Compare
from memoranda.indexes.vector import VectorBatch, open_index

DIM, QUERIES, TOP, BATCH = 384, 50, 10, 2_000
SHARES = (1, 10, 50)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
Floats = NDArray[np.float32]
Slots = NDArray[np.int64]


class Contender(ABC):
    """Something that finds the ten nearest of the rows it was given."""

    @abstractmethod
    def add(self, start: int, rows: Floats) -> None:
        """Take unit rows, numbered from `start`."""

    @abstractmethod
    def search(self, query: Floats, passing: Slots | None, percent: int) -> Slots:
        """Row numbers of the nearest; `passing` is the filter as rows, `percent` its name."""

    filters = True

    def settle(self) -> None:  # noqa: B027 - most have nothing to do
        """Whatever is done once between loading and searching."""


class Memoranda(Contender):
    """The memory index with its cache on disk, filters as conditions on an attribute."""

    def __init__(self, engine: str, folder: Path, dim: int) -> None:
        self.url, self.folder, self.dim = f"memory:?engine={engine}", folder / engine, dim
        self.index = open_index(self.url, dim, self.folder)

    def add(self, start: int, rows: Floats) -> None:
        seqs = np.arange(start, start + len(rows))
        attributes = [{"$seq": int(seq), "share": int(seq) * 7919 % 100} for seq in seqs]
        self.index.put("t", VectorBatch(seqs, np.zeros(len(rows), np.int32), rows, attributes))
        self.index.flush(start + len(rows))

    def settle(self) -> None:
        self.index.close()
        before = time.process_time()
        self.index = open_index(self.url, self.dim, self.folder)
        print(f"{self.url}: start from the cache {time.process_time() - before:.2f} CPU s", file=sys.stderr)

    def search(self, query: Floats, passing: Slots | None, percent: int) -> Slots:
        where = EVERYTHING if passing is None else Compare("share", "lt", percent)
        return self.index.search("t", query, TOP, where).seqs


class Numpy(Contender):
    """One matrix product per query, and a partition."""

    def __init__(self) -> None:
        self.pieces: list[Floats] = []
        self.rows: Floats = np.empty((0, 0), np.float32)

    def add(self, start: int, rows: Floats) -> None:
        self.pieces.append(rows)

    def settle(self) -> None:
        self.rows = np.concatenate(self.pieces)
        self.pieces = []

    def search(self, query: Floats, passing: Slots | None, percent: int) -> Slots:
        scores = (self.rows if passing is None else self.rows[passing]) @ query
        best = np.argpartition(scores, -TOP)[-TOP:]
        return best if passing is None else passing[best]


class Faiss(Contender):
    """A faiss index by its factory string; filters as a bitmap selector."""

    def __init__(self, spec: str, dim: int) -> None:
        import faiss

        self.faiss, self.graph = faiss, spec.startswith("HNSW")
        faiss.omp_set_num_threads(1)
        self.index = faiss.index_factory(dim, spec, faiss.METRIC_INNER_PRODUCT)
        self.selectors: dict[int, object] = {}

    def add(self, start: int, rows: Floats) -> None:
        if not self.index.is_trained:
            self.index.train(rows)
        self.index.add(rows)

    def search(self, query: Floats, passing: Slots | None, percent: int) -> Slots:
        given = {}
        if passing is not None:
            if percent not in self.selectors:
                mask = np.zeros(self.index.ntotal, np.bool_)
                mask[passing] = True
                bitmap = np.packbits(mask, bitorder="little")
                self.selectors[percent] = (bitmap, self.faiss.IDSelectorBitmap(bitmap))
            given["sel"] = self.selectors[percent][1]
        if self.graph:
            params = self.faiss.SearchParametersHNSW(efSearch=64, **given)
        else:
            params = self.faiss.SearchParameters(**given)
        return np.asarray(self.index.search(query[None], TOP, params=params)[1][0])


class Usearch(Contender):
    """HNSW, M 16, bf16; it cannot filter from Python."""

    filters = False

    def __init__(self, dim: int) -> None:
        from usearch.index import Index

        self.index = Index(
            ndim=dim, metric="ip", dtype="bf16", connectivity=16, expansion_add=128, expansion_search=64
        )

    def add(self, start: int, rows: Floats) -> None:
        self.index.add(np.arange(start, start + len(rows)), rows, threads=1)

    def search(self, query: Floats, passing: Slots | None, percent: int) -> Slots:
        return np.asarray(self.index.search(query, TOP, threads=1).keys, np.int64)


class Hnswlib(Contender):
    """HNSW, M 16, float; its filter is a Python call per row visited, so it is left out."""

    filters = False

    def __init__(self, dim: int, rows: int) -> None:
        import hnswlib

        self.index = hnswlib.Index(space="ip", dim=dim)
        self.index.init_index(max_elements=rows, M=16, ef_construction=128)
        self.index.set_ef(64)
        self.index.set_num_threads(1)

    def add(self, start: int, rows: Floats) -> None:
        self.index.add_items(rows, np.arange(start, start + len(rows)), num_threads=1)

    def search(self, query: Floats, passing: Slots | None, percent: int) -> Slots:
        return self.index.knn_query(query[None], k=TOP, num_threads=1)[0][0].astype(np.int64)


NEEDS = {
    "memoranda turbovec": "turbovec",
    "memoranda numkong": "numkong",
    "memoranda float": "",
    "numpy float32": "",
    "faiss Flat": "faiss",
    "faiss SQ8": "faiss",
    "faiss HNSW16,SQ8": "faiss",
    "usearch bf16": "usearch",
    "hnswlib": "hnswlib",
}
GRAPHS = ("faiss HNSW16,SQ8", "usearch bf16", "hnswlib")
GRAPH_ROWS = 100_000
"""Graphs take minutes to build beyond this; `--only` asks for them anyway."""


def contender(name: str, folder: Path, dim: int, rows: int) -> Contender:
    """The contender of that name, empty."""
    family, _, rest = name.partition(" ")
    if family == "memoranda":
        return Memoranda(rest, folder, dim)
    if family == "faiss":
        return Faiss(rest, dim)
    if family == "usearch":
        return Usearch(dim)
    return Hnswlib(dim, rows) if family == "hnswlib" else Numpy()


def make_vectors(rows: int, real: Path | None, seed: int) -> Floats:
    """Unit vectors (rows, dim), and the same again for the same arguments."""
    random = np.random.default_rng(seed)
    if real is not None:
        known = np.load(real).astype(np.float32)
        known = known[random.permutation(len(known))]
        made = np.resize(known, (rows, known.shape[1]))
        for start in range(len(known), rows, BATCH):
            some = made[start : start + BATCH]
            some += random.standard_normal(some.shape, np.float32) * (0.3 / np.sqrt(some.shape[1]))
    else:
        centres = random.standard_normal((max(1, rows // 100), DIM), np.float32)
        made = centres[random.integers(0, len(centres), rows)]
        for start in range(0, rows, BATCH):
            made[start : start + BATCH] += random.standard_normal(
                made[start : start + BATCH].shape, np.float32
            )
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made


def resident() -> int:
    """Bytes of this process in memory, mapped files included."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def exact(vectors: Floats, queries: Floats, passing: Slots | None) -> list[set[int]]:
    """The ten truly nearest of each query."""
    rows = vectors if passing is None else vectors[passing]
    best = np.argpartition(queries @ rows.T, -TOP, axis=1)[:, -TOP:]
    return [set((line if passing is None else passing[line]).tolist()) for line in best]


def measure(name: str, path: Path, folder: Path) -> str:
    """One line of the table."""
    queries = np.load(path / "queries.npy")
    dim = queries.shape[1]
    rows = (path / "vectors.f32").stat().st_size // (dim * 4)
    before = resident()
    made = contender(name, folder, dim, rows)
    spent = 0.0
    for start in range(0, rows, BATCH):
        some = np.fromfile(path / "vectors.f32", np.float32, BATCH * dim, offset=start * dim * 4).reshape(
            -1, dim
        )
        clock = time.process_time()
        made.add(start, some)
        spent += time.process_time() - clock
    clock = time.process_time()
    if not isinstance(made, Memoranda):
        made.settle()
        spent += time.process_time() - clock
    else:
        made.settle()
    cells: list[str] = []
    for percent in (100, *SHARES):
        if percent < 100 and not made.filters:
            cells.append("-")
            continue
        passing = None if percent == 100 else np.flatnonzero(np.arange(rows) * 7919 % 100 < percent)
        expected = [set(line.tolist()) for line in np.load(path / f"exact{percent}.npy")]
        answers = [made.search(query, passing, percent) for query in queries]
        clock = time.process_time()
        for _ in range(3):
            for query in queries:
                made.search(query, passing, percent)
        each = (time.process_time() - clock) / (3 * len(queries)) * 1e3
        hit = sum(len(want & set(got.tolist())) for want, got in zip(expected, answers, strict=True))
        cells.append(f"{each:.3f} / {hit / (TOP * len(queries)):.3f}")
    grown = (resident() - before) / rows
    return " | ".join(
        [name, f"{rows:,}", *cells, f"{spent:.1f}", f"{spent / rows * 1e6:.1f}", f"{grown:.0f}"]
    )


def prepare(rows: int, real: Path | None, path: Path) -> int:
    """Write vectors, queries and true answers for the contenders; the dimension."""
    vectors = make_vectors(rows, real, seed=1)
    random = np.random.default_rng(2)
    queries = vectors[random.integers(0, rows, QUERIES)]
    queries = queries + random.standard_normal(queries.shape, np.float32) * (0.5 / np.sqrt(queries.shape[1]))
    vectors.tofile(path / "vectors.f32")
    np.save(path / "queries.npy", queries.astype(np.float32))
    for percent in (100, *SHARES):
        passing = None if percent == 100 else np.flatnonzero(np.arange(rows) * 7919 % 100 < percent)
        np.save(path / f"exact{percent}.npy", [sorted(best) for best in exact(vectors, queries, passing)])
    return int(vectors.shape[1])


def main() -> None:
    """Prints the table; a contender that fails says so in its place."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--only", nargs="+", help=f"of: {', '.join(NEEDS)}")
    parser.add_argument("--line", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.line:
        with tempfile.TemporaryDirectory() as folder:
            print(measure(given.line[0], Path(given.line[1]), Path(folder)))
        return
    kind = f"real embeddings of `{given.vectors.name}`" if given.vectors else "synthetic clustered vectors"
    print(f"Over {kind}; each cell is CPU ms per query / recall@10.\n")
    heads = ["", "rows", "all", *(f"filter {share} %" for share in SHARES), "build, s", "us/row", "bytes/row"]
    print("| " + " | ".join(heads) + " |\n|---" + "|---" * (len(heads) - 1) + "|")
    for rows in given.rows:
        with tempfile.TemporaryDirectory() as folder:
            prepare(rows, given.vectors, Path(folder))
            for name, package in NEEDS.items():
                if given.only and name not in given.only:
                    continue
                if package and importlib.util.find_spec(package) is None:
                    continue
                if rows > GRAPH_ROWS and name in GRAPHS and not given.only:
                    continue
                command = [sys.executable, __file__, "--line", name, folder]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=os.environ | ONE_THREAD)
                line = done.stdout.strip() if done.returncode == 0 else f"{name} | {rows:,} | failed"
                print(f"| {line} |", flush=True)


if __name__ == "__main__":
    main()
