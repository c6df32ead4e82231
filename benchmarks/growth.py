"""How the whole product grows: writing, searching, starting and memory at 1k to 1M memories of one tenant.

    python benchmarks/growth.py --rows 1000 10000 100000 1000000

Vectors are given, so the embedding model is not in any number. They are clustered and unit-length like those of
a real model (`--vectors FILE.npy` takes real ones, repeated with noise). Texts are words drawn by Zipf's law. Every
figure is CPU milliseconds of this process, the median over the queries; recall is against an exact scan of the
same vectors in numpy, in the same run.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import memoranda
from memoranda.filters import EVERYTHING, parse
from memoranda.providers.embeddings.base import QueryEmbedding
from memoranda.types import Query, Subject

DIM = 384
SCOPE = 5_000
QUERIES = 200
VOCABULARY = 30_000
COMMON = 150
"""Of the words, so many count as stopwords: texts hold them, questions do not."""


def vectors(rows: int, seed: int, source: Path | None) -> np.ndarray:
    """(rows, 384) float32 of unit length, in clusters."""
    rng = np.random.default_rng(seed)
    if source is not None:
        real = np.load(source, mmap_mode="r")
        base = real[rng.integers(0, len(real), rows)].astype(np.float32)
        base += rng.standard_normal(base.shape, dtype=np.float32) * 0.01
    else:
        centres = np.random.default_rng(1).standard_normal((256, DIM)).astype(np.float32)
        base = centres[rng.integers(0, 256, rows)]
        base += rng.standard_normal((rows, DIM), dtype=np.float32) * 1.2 + 0.4
    base /= np.linalg.norm(base, axis=1, keepdims=True)
    return base


class Language:
    """Texts of 14 words drawn by Zipf's law, and questions of 6 words of a text without its commonest ones."""

    def __init__(self) -> None:
        rng = np.random.default_rng(11)
        letters = np.array(list("bcdfghklmnprstvz")), np.array(list("aeiou"))
        lengths = rng.integers(2, 5, VOCABULARY)
        self.words = [
            "".join(rng.choice(letters[0]) + rng.choice(letters[1]) for _ in range(length)) + f"{i % 10}"
            for i, length in enumerate(lengths)
        ]
        odds = 1.0 / np.arange(1, VOCABULARY + 1) ** 1.07
        self.odds = np.cumsum(odds / odds.sum())

    def draw(self, i: int) -> np.ndarray:
        return np.searchsorted(self.odds, np.random.default_rng(1_000_000 + i).random(14))

    def text(self, i: int) -> str:
        return " ".join(self.words[j] for j in self.draw(i)) + f" {i}"

    def question(self, i: int) -> str:
        rare = [j for j in self.draw(i) if j >= COMMON] or [COMMON]
        return " ".join(self.words[j] for j in rare[:6])


LANGUAGE = Language()


def cpu(work, queries: int) -> tuple[float, float]:
    """(p50, p99) CPU milliseconds of `work(i)`."""
    spent = []
    for i in range(queries):
        began = time.process_time()
        work(i)
        spent.append((time.process_time() - began) * 1e3)
    return float(np.percentile(spent, 50)), float(np.percentile(spent, 99))


def recall_at_10(found: list[set[int]], exact: list[set[int]]) -> float:
    return float(np.mean([len(a & b) / max(1, len(b)) for a, b in zip(found, exact, strict=True)]))


def fill(folder: Path, base: np.ndarray) -> tuple[float, float]:
    """Writes all rows in batches of 1000; (rows a second of wall time, CPU microseconds a row)."""
    rows = len(base)
    texts = [LANGUAGE.text(i) for i in range(rows)]
    with memoranda.open(folder, embedder={"url": f"hash:{DIM}"}) as rc:
        wall, used = time.perf_counter(), time.process_time()
        for at in range(0, rows, 1_000):
            rc.memories.add_many(
                [
                    {
                        "content": texts[i],
                        "session_id": f"s{i // SCOPE}",
                        "metadata": {"percent": i % 100, "half": i % 2},
                        "embedding": base[i],
                    }
                    for i in range(at, min(rows, at + 1_000))
                ]
            )
        wall, used = time.perf_counter() - wall, time.process_time() - used
    return rows / wall, used / rows * 1e6


def measure(folder: Path, base: np.ndarray) -> dict[str, float]:
    """Opens the filled folder and searches it."""
    rows = len(base)
    figures: dict[str, float] = {}
    began, wall = time.process_time(), time.perf_counter()
    rc = memoranda.open(folder, embedder={"url": f"hash:{DIM}"})
    figures["start_cpu_ms"] = (time.process_time() - began) * 1e3
    figures["start_ms"] = (time.perf_counter() - wall) * 1e3
    recall = rc.inner.core.recall
    index = rc.inner.core.store.index
    subject = Subject()
    rng = np.random.default_rng(3)
    picks = rng.integers(0, rows, QUERIES)
    queries = base[picks] + rng.standard_normal((QUERIES, DIM)).astype(np.float32) * 0.03
    questions = [LANGUAGE.question(int(i)) for i in picks]

    def search(scopes: list[str], mode: str, i: int, limit: int = 10, filters: dict | None = None):
        query = Query(query=questions[i], scopes=scopes, mode=mode, limit=limit, filters=filters)
        return recall.search(subject, query, None if mode == "keyword" else QueryEmbedding(queries[i]))

    search(["all"], "hybrid", 0)
    for mode in ("dense", "keyword", "hybrid"):
        for name, scopes in (("scope", [f"session:s{(rows // SCOPE) // 2}"]), ("all", ["all"])):
            p50, p99 = cpu(lambda i, scopes=scopes, mode=mode: search(scopes, mode, i), QUERIES)
            figures[f"{mode}_{name}_p50"], figures[f"{mode}_{name}_p99"] = p50, p99
    first = rc.memories.list(limit=1, order="asc").data[0]
    offset = next(iter(rc.inner.core.store.by_id("default", [first.id]).values())).seq
    scores = queries @ base.T
    for name, keep, filters in (
        ("all", np.ones(rows, bool), None),
        ("1%", np.arange(rows) % 100 == 7, {"percent": 7}),
        ("10%", np.arange(rows) % 100 < 10, {"type": "lt", "key": "percent", "value": 10}),
        ("50%", np.arange(rows) % 2 == 1, {"half": 1}),
    ):
        kept = np.where(keep, scores, -9)
        exact = [set(np.argpartition(-row, 10)[:10].tolist()) for row in kept]
        where = EVERYTHING if filters is None else parse(filters)
        found = [
            {seq - offset for seq in index.search("default", queries[i], 10, where).seqs.tolist()}
            for i in range(QUERIES)
        ]
        figures[f"recall_{name}"] = recall_at_10(found, exact)
        p50, _ = cpu(lambda i, filters=filters: search(["all"], "dense", i, 10, filters), QUERIES)
        figures[f"dense_{name}_p50"] = p50

    def add(i: int) -> None:
        rc.memories.add(f"one more {rows} {i}", session_id="late", embedding=queries[i])

    figures["add_p50"], figures["add_p99"] = cpu(add, QUERIES)
    rc.close()
    return figures


def resident(folder: Path, rows: int) -> float:
    """Bytes of resident memory per row of a process that opened the folder and searched it, over one that
    opened an empty one."""
    code = (
        "import sys, numpy as np, memoranda\n"
        "from memoranda.providers.embeddings.base import QueryEmbedding\n"
        "from memoranda.types import Query, Subject\n"
        f"rc = memoranda.open(sys.argv[1], embedder={{'url': 'hash:{DIM}'}})\n"
        "core = rc.inner.core\n"
        "rng = np.random.default_rng(5)\n"
        "for i in range(50):\n"
        f"    v = rng.standard_normal({DIM}).astype('f4')\n"
        "    core.recall.search(Subject(), Query(query='bada1 kuru2'), QueryEmbedding(v))\n"
        "line = [l for l in open('/proc/self/status') if l.startswith('VmRSS')][0]\n"
        "print(int(line.split()[1]) * 1024)\n"
        "rc.close()\n"
    )
    with tempfile.TemporaryDirectory() as empty:
        base = int(subprocess.run([sys.executable, "-c", code, empty], capture_output=True, text=True).stdout)
    full = int(
        subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True).stdout
    )
    return (full - base) / rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--vectors", type=Path, default=None, help="a .npy of real embeddings, (n, 384)")
    parser.add_argument(
        "--folder", type=Path, default=None, help="where to put the data (default: temporary)"
    )
    args = parser.parse_args()
    table: dict[int, dict[str, float]] = {}
    for rows in args.rows:
        base = vectors(rows, 4, args.vectors)
        folder = Path(tempfile.mkdtemp(prefix="growth-", dir=args.folder))
        try:
            per_second, per_row = fill(folder, base)
            figures = {"write_rows_per_s": per_second, "write_cpu_us": per_row}
            figures |= measure(folder, base)
            figures["rss_bytes_per_row"] = resident(folder, rows)
            figures["disk_bytes_per_row"] = (
                sum(f.stat().st_size for f in folder.rglob("*") if f.is_file()) / rows
            )
            table[rows] = figures
        finally:
            shutil.rmtree(folder)
        print(
            f"# {rows} rows done, peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10} MB",
            file=sys.stderr,
        )
    print("| figure | " + " | ".join(f"{rows:,}" for rows in table) + " |")
    print("|---|" + "--:|" * len(table))
    for name in next(iter(table.values())):
        print(f"| {name} | " + " | ".join(f"{table[rows][name]:.3g}" for rows in table) + " |")


if __name__ == "__main__":
    main()
