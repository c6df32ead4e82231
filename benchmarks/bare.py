"""The engines behind the index door, used without it: what `backends.py` compares the door with.

Each holds the same rows: seq, tenant, kind, session, time, two numbers (`percent`, `half`) and a vector of length 1.
The two numbers are what filters ask. The door takes them as metadata, whose keys it does not know before. PostgreSQL
and Qdrant hold them as JSON here too; sqlite-vec and LanceDB, which filter typed columns, have a column for each.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.storage.sql.pgbinary import Binary, BinaryDumper, vector

Floats = NDArray[np.float32]
TOP = 10
TENANT, KIND = "t", "memory"
OCCURRED = 1_700_000_000_000_000
SQL = {1: "percent = 7", 10: "percent < 10", 50: "half = 1"}
"""The conditions, by the percentage of rows that pass."""
JSON = {
    1: "metadata @> '{\"percent\": 7}'",
    10: "(metadata ->> 'percent')::int < 10",
    50: "metadata @> '{\"half\": 1}'",
}
"""The same on JSON in PostgreSQL."""


def payload(seq: int) -> tuple[str, int, int, int]:
    """Session, time in microseconds, percent and half of a row."""
    return f"s{seq // 1_000}", OCCURRED + seq, seq * 7919 % 100, seq * 7919 % 100 % 2


class Side(ABC):
    """One of the two that are compared."""

    @abstractmethod
    def add(self, start: int, vectors: Floats) -> None:
        """Takes rows numbered from `start`."""

    @abstractmethod
    def search(self, query: Floats, percent: int) -> list[int]:
        """The rows nearest to the query, of all (100) or of those that pass."""

    def settle(self) -> None:  # noqa: B027 - most have nothing to do
        """Builds and merges what makes searches fast."""

    def close(self) -> None:  # noqa: B027
        """Lets go."""

    def disk(self) -> int:
        """Bytes on disk, for what is not in a folder."""
        return 0


class Numpy(Side):
    """A matrix product and a partition; vectors are appended to a file as well."""

    def __init__(self, folder: Path, dim: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.dim, self.path = dim, folder / "vectors.f32"
        self.pieces: list[Floats] = []
        self.file = self.path.open("ab")
        self.rows = np.fromfile(self.path, np.float32).reshape(-1, dim)

    def add(self, start: int, vectors: Floats) -> None:
        self.pieces.append(vectors)
        vectors.tofile(self.file)
        self.file.flush()

    def _take(self) -> None:
        self.rows = np.concatenate([self.rows, *self.pieces])
        self.pieces = []
        percents = np.arange(len(self.rows)) * 7919 % 100
        self.columns = {"percent": percents, "half": percents % 2}

    def search(self, query: Floats, percent: int) -> list[int]:
        if self.pieces or not hasattr(self, "columns"):
            self._take()
        rows, passing = self.rows, None
        if percent < 100:
            number, half = self.columns["percent"], self.columns["half"]
            passing = np.flatnonzero({1: number == 7, 10: number < 10, 50: half == 1}[percent])
            rows = rows[passing]
        scores = rows @ query
        best = np.argpartition(scores, -TOP)[-TOP:] if len(scores) > TOP else np.arange(len(scores))
        return list((best if passing is None else passing[best]).tolist())

    def close(self) -> None:
        self.file.close()


class Pgvector(Side):
    """A table, COPY in the binary format, prepared statements, and the same HNSW."""

    HEAD = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)

    def __init__(self, url: str, dim: int) -> None:
        import psycopg

        self.dim = dim
        self.raw: Any = psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor)
        self.raw.adapters.register_dumper(Binary, BinaryDumper)
        (self.oid,) = self.raw.execute("SELECT 'vector'::regtype::oid::bigint").fetchone()
        self.raw.prepare_threshold = None
        self.raw.execute(
            "CREATE TABLE bare (tenant text NOT NULL, kind text NOT NULL, session_id text, seq bigint PRIMARY KEY,"
            f" occurred_at bigint, metadata jsonb, vector vector({dim}) NOT NULL);"
            " CREATE INDEX ON bare (tenant, session_id)"
        )

    def add(self, start: int, vectors: Floats) -> None:
        given = vectors.astype(">f4")
        texts = b"".join(struct.pack(">i", len(text)) + text for text in (TENANT.encode(), KIND.encode()))
        parts = [self.HEAD]
        for i in range(len(vectors)):
            session, at, percent, half = payload(start + i)
            name = session.encode()
            parts.append(struct.pack(">h", 7) + texts + struct.pack(">i", len(name)) + name)
            held = b'\1{"half": %d, "percent": %d}' % (half, percent)
            parts.append(struct.pack(">iqiqi", 8, start + i, 8, at, len(held)) + held)
            parts.append(struct.pack(">ihh", 4 + 4 * self.dim, self.dim, 0) + given[i].tobytes())
        parts.append(struct.pack(">h", -1))
        columns = "tenant, kind, session_id, seq, occurred_at, metadata, vector"
        with self.raw.cursor().copy(f"COPY bare ({columns}) FROM STDIN (FORMAT binary)") as copy:
            copy.write(b"".join(parts))

    def settle(self) -> None:
        (rows,) = self.raw.execute("SELECT count(*) FROM bare").fetchone()
        if rows >= 50_000:
            self.raw.execute("SET maintenance_work_mem = '2GB'; SET max_parallel_maintenance_workers = 0")
            self.raw.execute(
                "CREATE INDEX bare_near ON bare USING hnsw (vector vector_ip_ops) WITH (m = 16, ef_construction = 200)"
            )
            self.raw.execute("SET hnsw.ef_search = 100; SET hnsw.iterative_scan = relaxed_order")
        self.raw.execute("VACUUM ANALYZE bare")
        self.raw.prepare_threshold = 0

    def search(self, query: Floats, percent: int) -> list[int]:
        where = f" AND {JSON[percent]}" if percent < 100 else ""
        found = self.raw.execute(
            f"SELECT seq, vector <#> $1::vector FROM bare WHERE tenant = $2{where}"
            f" ORDER BY vector <#> $1::vector LIMIT {TOP}",
            [vector(self.oid, query, half=False), TENANT],
        )
        return [int(row[0]) for row in found.fetchall()]

    def disk(self) -> int:
        return int(self.raw.execute("SELECT pg_total_relation_size('bare')").fetchone()[0])

    def close(self) -> None:
        self.raw.close()


class SqliteVec(Side):
    """A `vec0` table with metadata columns, a transaction per batch, the door's own settings of SQLite."""

    def __init__(self, folder: Path, dim: int) -> None:
        import sqlite_vec
        from pysqlite3 import dbapi2 as sqlite

        folder.mkdir(parents=True, exist_ok=True)
        self.db = sqlite.connect(str(folder / "bare.sqlite"), isolation_level=None)
        self.db.enable_load_extension(True)
        self.db.load_extension(sqlite_vec.loadable_path())
        for pragma in ("page_size=8192", "journal_mode=WAL", "synchronous=NORMAL", "mmap_size=1099511627776"):
            self.db.execute(f"PRAGMA {pragma}")
        self.db.execute("PRAGMA wal_autocheckpoint=8192")
        self.db.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS bare USING vec0 (seq INTEGER PRIMARY KEY, tenant TEXT PARTITION KEY,"
            f" vector FLOAT[{dim}] distance_metric=L2, kind TEXT, session_id TEXT, occurred_at INTEGER,"
            " percent INTEGER, half INTEGER)"
        )

    def add(self, start: int, vectors: Floats) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(
            "INSERT INTO bare (seq, tenant, vector, kind, session_id, occurred_at, percent, half)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (start + i, TENANT, memoryview(vectors[i]), KIND, *payload(start + i))
                for i in range(len(vectors))
            ],
        )
        self.db.execute("COMMIT")

    def search(self, query: Floats, percent: int) -> list[int]:
        where = f" AND {SQL[percent]}" if percent < 100 else ""
        found = self.db.execute(
            f"SELECT seq, distance FROM bare WHERE vector MATCH ? AND k = {TOP} AND tenant = ?{where}",
            (query.tobytes(), TENANT),
        )
        return [row[0] for row in found.fetchall()]

    def settle(self) -> None:
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self.db.close()


class Lance(Side):
    """A table with a column per field; it is optimized, and given the door's graph from 50 000 rows on."""

    def __init__(self, folder: Path, dim: int) -> None:
        import lancedb
        import pyarrow as pa

        self.dim = dim
        schema = pa.schema(
            [
                *(pa.field(name, pa.utf8()) for name in ("tenant", "kind", "session_id")),
                *(pa.field(name, pa.int64()) for name in ("seq", "occurred_at", "percent", "half")),
                pa.field("vector", pa.list_(pa.float32(), dim)),
            ]
        )
        self.schema = schema
        self.table = lancedb.connect(str(folder)).create_table("bare", schema=schema, exist_ok=True)
        self.graph = bool(self.table.list_indices())

    def add(self, start: int, vectors: Floats) -> None:
        import pyarrow as pa

        seqs = range(start, start + len(vectors))
        session, at, percent, half = zip(*map(payload, seqs), strict=True)
        listed = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), self.dim)
        columns = [[TENANT] * len(seqs), [KIND] * len(seqs), session, seqs, at, percent, half]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, self.schema, strict=False)]
        self.table.add(pa.table([*arrays, listed], schema=self.schema))

    def settle(self) -> None:
        from lancedb.index import HnswSq

        self.table.optimize()
        if self.table.count_rows() >= 50_000:
            kind = HnswSq(distance_type="dot", num_partitions=1, m=20, ef_construction=200)
            self.table.create_index("vector", config=kind)
            self.graph = True

    def search(self, query: Floats, percent: int) -> list[int]:
        asked = self.table.search(query, vector_column_name="vector").distance_type("dot").limit(TOP)
        where = f"tenant = '{TENANT}'" + (f" AND {SQL[percent]}" if percent < 100 else "")
        asked = asked.where(where, prefilter=True).select(["seq", "_distance"])
        if self.graph:
            asked = asked.ef(400).nprobes(20).refine_factor(8)
        return list(asked.to_arrow()["seq"].to_pylist())


class Qdrant(Side):
    """The client's engine in this process, on disk; each row a point with its payload."""

    def __init__(self, folder: Path, dim: int) -> None:
        from qdrant_client import QdrantClient, models

        self.models = models
        self.client = QdrantClient(path=str(folder))
        if not self.client.collection_exists("bare"):
            self.client.create_collection(
                "bare", vectors_config=models.VectorParams(size=dim, distance=models.Distance.DOT)
            )

    def add(self, start: int, vectors: Floats) -> None:
        names = ("session_id", "occurred_at", "percent", "half")
        points = [
            self.models.PointStruct(
                id=start + i,
                vector=vectors[i].tolist(),
                payload={
                    "tenant": TENANT,
                    "kind": KIND,
                    **dict(zip(names, payload(start + i), strict=True)),
                },
            )
            for i in range(len(vectors))
        ]
        self.client.upsert("bare", points)

    def search(self, query: Floats, percent: int) -> list[int]:
        m = self.models
        wanted = [m.FieldCondition(key="tenant", match=m.MatchValue(value=TENANT))]
        if percent == 10:
            wanted.append(m.FieldCondition(key="percent", range=m.Range(lt=10)))
        elif percent < 100:
            key, value = {1: ("percent", 7), 50: ("half", 1)}[percent]
            wanted.append(m.FieldCondition(key=key, match=m.MatchValue(value=value)))
        found = self.client.query_points("bare", query, query_filter=m.Filter(must=wanted), limit=TOP)
        return [int(point.id) for point in found.points]

    def close(self) -> None:
        self.client.close()
