"""Whole configurations of the product, for `backends.py --product`, beside the same rows written without it."""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import memoranda
from growth import LANGUAGE
from index import make_vectors
from memoranda.providers.embeddings.base import QueryEmbedding
from memoranda.types import Query, Subject

DIM, BATCH, QUERIES, ROUNDS = 384, 1_000, 100, 2
WITHOUT = "none"
"""In place of an index: the product's own write path with both indexes left out."""
CONFIGURATIONS = {
    "sqlite, memory, tantivy": ("sqlite:", "memory:", "tantivy:"),
    "sqlite, sqlitevec, tantivy": ("sqlite:", "sqlitevec:", "tantivy:"),
    "sqlite, lancedb, tantivy": ("sqlite:", "lancedb:", "tantivy:"),
    "sqlite, memory, fts5": ("sqlite:", "memory:", "fts5:"),
    "sqlite, rows alone": ("sqlite:", WITHOUT, WITHOUT),
    "sqlite3 by hand": ("by hand", "", ""),
    "postgresql, pgvector, tsvector": ("postgresql:", "pgvector:", "tsvector:"),
    "postgresql, pgvector, tantivy": ("postgresql:", "pgvector:", "tantivy:"),
    "postgresql, memory, tantivy": ("postgresql:", "memory:", "tantivy:"),
    "postgresql, rows alone": ("postgresql:", WITHOUT, WITHOUT),
    "COPY by hand": ("copy", "", ""),
}


def rows_of(count: int) -> tuple[list[str], np.ndarray]:
    """Texts and vectors."""
    return [LANGUAGE.text(i) for i in range(count)], make_vectors(count, None, seed=1)


def in_batches(count: int, work: Callable[[int, int], None]) -> dict[str, float]:
    """Rows a second of wall time, all and in the median batch, and CPU microseconds a row."""
    wall, cpu, each = time.perf_counter(), time.process_time(), []
    for at in range(0, count, BATCH):
        began = time.perf_counter()
        work(at, min(count, at + BATCH))
        each.append(time.perf_counter() - began)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"rate": count / wall, "median": BATCH / statistics.median(each), "cpu": cpu / count * 1e6}


def by_hand(count: int, folder: Path) -> dict[str, float]:
    """One SQLite table of texts, metadata and vectors, a durable transaction per batch: the limit."""
    from pysqlite3 import dbapi2 as sqlite

    texts, vectors = rows_of(count)
    db = sqlite.connect(str(folder / "rows.db"), isolation_level=None)
    db.execute("PRAGMA journal_mode=WAL")
    db.execute("PRAGMA synchronous=FULL")
    db.execute(
        "CREATE TABLE rows (id TEXT, tenant TEXT, session TEXT, text TEXT, metadata TEXT, vector BLOB)"
    )

    def add(first: int, last: int) -> None:
        db.execute("BEGIN IMMEDIATE")
        some = [
            (f"m{i}", "default", f"s{i // 5000}", texts[i], metadata(i), memoryview(vectors[i]))
            for i in range(first, last)
        ]
        db.executemany("INSERT INTO rows VALUES (?, ?, ?, ?, ?, ?)", some)
        db.execute("COMMIT")

    figures = in_batches(count, add)
    db.close()
    return figures


def by_copy(count: int, server: Any) -> dict[str, float]:
    """One table of PostgreSQL, COPY in the binary format: the limit."""
    from psycopg.types.json import Jsonb

    texts, vectors = rows_of(count)
    with server.admin() as raw:
        raw.execute(
            "CREATE TABLE rows (id text PRIMARY KEY, tenant text, session text, body text, metadata jsonb,"
            " vector bytea)"
        )
        types = ["text", "text", "text", "text", "jsonb", "bytea"]

        def add(first: int, last: int) -> None:
            with raw.cursor().copy("COPY rows FROM STDIN (FORMAT binary)") as copy:
                copy.set_types(types)
                for i in range(first, last):
                    held = {"percent": i % 100, "half": i % 2}
                    copy.write_row(
                        (f"m{i}", "default", f"s{i // 5000}", texts[i], Jsonb(held), vectors[i].tobytes())
                    )

        return in_batches(count, add)


def metadata(i: int) -> str:
    """The metadata of a row as JSON."""
    return json.dumps({"percent": i % 100, "half": i % 2})


def one_round(name: str, count: int) -> dict[str, float]:
    """Fills a fresh store, and searches it."""
    database, index, words = CONFIGURATIONS[name]
    server = None
    folder = Path(tempfile.mkdtemp(prefix="whole-"))
    try:
        if database in ("postgresql:", "copy"):
            from backends import postgres

            server = postgres()
        if database == "by hand":
            return by_hand(count, folder)
        if database == "copy":
            return by_copy(count, server)
        config: dict[str, Any] = {"embedder": {"url": f"hash:{DIM}"}}
        config["database"] = {"url": server.fresh_url() if server is not None else database}
        if index != WITHOUT:
            config |= {"index": {"url": index}, "words": {"url": words}}
        return filled(folder, config, count, indexed=index != WITHOUT)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def filled(folder: Path, config: dict[str, Any], count: int, indexed: bool) -> dict[str, float]:
    """The figures of one configuration."""
    texts, vectors = rows_of(count)
    with memoranda.open(folder, **config) as rc:
        if not indexed:
            derived = rc.inner.core.store.derived
            derived.inside = lambda c, applied: None  # type: ignore[method-assign]
            derived.after = lambda applied: None  # type: ignore[method-assign]

        def add(first: int, last: int) -> None:
            rc.memories.add_many(
                [
                    {
                        "content": texts[i],
                        "session_id": f"s{i // 5000}",
                        "metadata": {"percent": i % 100, "half": i % 2},
                        "embedding": vectors[i],
                    }
                    for i in range(first, last)
                ]
            )

        figures = in_batches(count, add)
        if indexed:
            figures |= searched(rc, vectors)
        return figures


def searched(rc: Any, vectors: np.ndarray) -> dict[str, float]:
    """Median wall and CPU milliseconds of a hybrid search, of a dense one, and of one by words."""
    recall, random = rc.inner.core.recall, np.random.default_rng(3)
    picks = random.integers(0, len(vectors), QUERIES)
    queries = vectors[picks] + random.standard_normal((QUERIES, DIM), np.float32) * 0.03
    figures = {}
    for mode in ("hybrid", "dense", "keyword"):
        spent = []
        for i, pick in enumerate(picks.tolist()):
            query = Query(query=LANGUAGE.question(pick), scopes=["all"], mode=mode, limit=10)
            wall, cpu = time.perf_counter(), time.process_time()
            hits = recall.search(Subject(), query, None if mode == "keyword" else QueryEmbedding(queries[i]))
            spent.append((time.perf_counter() - wall, time.process_time() - cpu))
            assert hits, mode
        figures[mode], figures[f"{mode} cpu"] = (
            statistics.median(one) * 1e3 for one in zip(*spent, strict=True)
        )
    return figures


def product_table(sizes: list[int], only: list[str] | None, child: Callable[..., Any]) -> None:
    """Prints the table: the best of several rounds, in which the configurations take turns."""
    heads = ["rows", "rows/s", "median batch, rows/s", "CPU us/row", "hybrid, ms", "dense, ms", "words, ms"]
    print("| rows, vectors, words | " + " | ".join(heads) + " |\n|---" + "|--:" * len(heads) + "|")
    for count in sizes:
        best: dict[str, dict[str, float]] = {}
        for _ in range(ROUNDS):
            for name in only or CONFIGURATIONS:
                for key, value in child("product", name, str(count)).items():
                    held = best.setdefault(name, {}).get(key, value)
                    best[name][key] = (max if key in ("rate", "median") else min)(held, value)
        for name, got in best.items():
            cells = [f"{got['rate']:,.0f}", f"{got['median']:,.0f}", f"{got['cpu']:.0f}"]
            cells += [
                f"{got[mode]:.2f} / {got[mode + ' cpu']:.2f}" if mode in got else "-"
                for mode in ("hybrid", "dense", "keyword")
            ]
            print(f"| {name} | {count:,} | " + " | ".join(cells) + " |", flush=True)
