"""One Lance table: writes to it, and reads from one of its versions."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.indexes.vector.base import Vector, Vectors
from memoranda.indexes.vector.lance_filters import OddRow, odd_rows, schema
from memoranda.indexes.vector.lance_options import MISSING, Options

os.environ.setdefault("LANCEDB_LOG", "error")  # it warns on stderr that a new table does not exist yet

try:
    import lancedb
    import pyarrow as pa  # type: ignore[import-untyped]
    from lancedb.index import Bitmap, BTree, HnswSq, LabelList
except ImportError as exc:
    raise ConfigError("index.url", MISSING) from exc

SCALAR_INDEXES = {
    "seq": BTree,
    "tenant": Bitmap,
    "tags": LabelList,
    "user_id": BTree,
    "session_id": BTree,
}
MARKED = "seq"
"""The column whose metadata has the revision."""
ROWS_PER_GRAPH = 500_000
"""Rows of one HNSW graph: about 1 GB at 384 dimensions while it is built."""
ROUNDS = 5
MOMENT = timedelta(milliseconds=1)
KEEP = timedelta(days=1)
_SOURCE = re.compile(r",? *(?:location: *)?(?:Location\([^)]*\)|\S*/[^\s,]*\.rs:\d+:\d+)")


@contextmanager
def translated(verb: str) -> Iterator[None]:
    """Raise errors of LanceDB as IndexUnavailable."""
    try:
        yield
    except (OSError, RuntimeError, ValueError) as exc:
        said = _SOURCE.sub("", str(exc)).strip().rstrip(".")
        raise IndexUnavailable(f"The LanceDB index could not {verb}: {said}. Rows are safe.") from exc


def concat(rows: Sequence[pa.Table]) -> pa.Table:
    """The rows of all of them."""
    return rows[0] if len(rows) == 1 else pa.concat_tables(rows)


class Version:
    """One version of the table, to read from. Its files are not deleted while `readers` is above 0."""

    def __init__(self, table: Any, tops: Mapping[str, int], odd: frozenset[str], trained: bool) -> None:
        self._table = table
        self.number = int(table.version)
        self.tops = tops
        """The highest seq of each tenant that this version may have."""
        self.odd_tenants = odd
        self.trained = trained
        self.readers = 0
        self._odd: dict[str, list[OddRow]] = {}

    def odd(self, tenant: str, own: str) -> list[OddRow]:
        """Return the odd rows of a tenant; `own` is the condition for its rows."""
        if tenant not in self.odd_tenants:
            return []
        if tenant not in self._odd:
            rows = self.read(f"{own} AND odd IS NOT NULL", ["seq", "part", "odd"])
            self._odd[tenant] = odd_rows(rows)
        return self._odd[tenant]

    def count(self, sql: str | None = None) -> int:
        """Rows that meet the condition."""
        return int(self._table.count_rows(sql))

    def read(self, sql: str | None, names: Sequence[str]) -> pa.Table:
        """These columns of the rows that meet the condition."""
        query = self._table.search().select(list(names))
        return (query if sql is None else query.where(sql)).limit(None).to_arrow()

    def nearest(
        self, query: Vector, sql: str | None, limit: int, options: Options | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], Vectors]:
        """Seqs, parts and vectors of the `limit` rows nearest to `query`; by the vector index when there are
        options for it, else of all."""
        asked = self._table.search(query, vector_column_name="vector").distance_type("dot")
        asked = asked.limit(limit).select(["seq", "part", "vector", "_distance"])
        if sql is not None:
            asked = asked.where(sql, prefilter=True)
        if options is None:
            asked = asked.bypass_vector_index()
        else:
            asked = asked.ef(max(options.ef, options.refine * limit)).nprobes(options.nprobes)
            asked = asked.refine_factor(options.refine)
        rows = asked.to_arrow()
        flat = rows["vector"].combine_chunks()
        vectors = flat.flatten().to_numpy(zero_copy_only=False).reshape(-1, len(query))
        return rows["seq"].to_numpy(), rows["part"].to_numpy(), vectors

    def batches(self) -> pa.RecordBatchReader:
        """Every row, as it is read."""
        return self._table.search().limit(None).to_batches()

    @property
    def nbytes(self) -> int:
        """Bytes of data and indexes, as the table's manifest says."""
        return int(self._table.stats().total_bytes)


class LanceTable:
    """The table at its latest version. One thread at a time writes."""

    def __init__(self, folder: str, name: str, dim: int, storage: Mapping[str, str]) -> None:
        self.name = name
        self.dim = dim
        self._session = lancedb.Session()
        self._connection = lancedb.connect(
            folder, storage_options=dict(storage) or None, session=self._session
        )
        self._table: Any = self._opened()
        self.path = None if "://" in folder else Path(folder) / f"{name}.lance"

    def _opened(self) -> Any:
        wanted = schema(self.dim)
        try:
            table = self._connection.open_table(self.name)
        except (FileNotFoundError, ValueError) as exc:
            if "not found" not in str(exc).lower():
                raise
            return self._connection.create_table(self.name, schema=wanted)
        if table.schema.names != wanted.names:  # of another release; the rows are put again
            table.add(wanted.empty_table(), mode="overwrite")
        return table

    @property
    def facts(self) -> dict[str, str]:
        """The facts that `mark` wrote last."""
        metadata = self._table.schema.field(MARKED).metadata or {}
        return {key.decode(): value.decode() for key, value in metadata.items()}

    def mark(self, facts: Mapping[str, str]) -> None:
        """Store facts in the table, durable on return, after everything that was written before."""
        self._table.update_field_metadata({"path": MARKED, "metadata": dict(facts)})

    def version(self, tops: Mapping[str, int], odd: frozenset[str]) -> Version:
        """Return the latest version, which does not change."""
        self._table.checkout_latest()
        table = self._connection.open_table(self.name)
        table.checkout(self._table.version)
        return Version(table, tops, odd, self.has_index("vector"))

    def has_index(self, column: str) -> bool:
        """Return True if an index of the column has been built."""
        return any(column in index.columns for index in self._table.list_indices())

    def delete(self, sql: str) -> None:
        """Delete the rows that meet the condition."""
        self._table.delete(sql)

    def add(self, rows: pa.Table) -> None:
        """Appends rows; all of them, or none when it raises."""
        self._table.add(rows)

    def restore(self, version: Version) -> None:
        """Makes that version the latest again."""
        self._table.checkout(version.number)
        self._table.restore()

    def overwrite(self, rows: pa.RecordBatchReader | None) -> None:
        """Replace all rows by these (None: no row). No file of the new version has vectors of the old rows. Indexes and
        facts are lost."""
        empty = schema(self.dim).empty_table()
        self._table.add(empty if rows is None else rows, mode="overwrite")

    def build_scalar_indexes(self) -> None:
        """Build the scalar indexes that are missing."""
        for column, kind in SCALAR_INDEXES.items():
            if not self.has_index(column):
                self._table.create_index(column, config=kind())

    def build_vector_index(self) -> None:
        """Builds the graph over all vectors."""
        graphs = max(1, self._table.count_rows() // ROWS_PER_GRAPH)
        config = HnswSq(distance_type="dot", num_partitions=graphs, m=20, ef_construction=200)
        self._table.create_index("vector", config=config)

    def drop_vector_index(self) -> None:
        """Drop the vector index, if there is one."""
        for index in self._table.list_indices():
            if "vector" in index.columns:
                self._table.drop_index(index.name)

    def optimize(self) -> None:
        """Merges small files and takes new rows into the indexes; older versions stay readable."""
        self._table.checkout_latest()
        self._table.optimize(cleanup_older_than=KEEP)

    def settle(self) -> None:
        """Run `optimize` until nothing is left to do. No writer may run meanwhile."""
        for _ in range(ROUNDS):
            before = self._table.version
            self.optimize()
            if self._table.version == before:
                return

    def clean(self, older_than: timedelta, everything: bool) -> None:
        """Drop versions of that age, which must have no reader; with `everything`, also files of broken writes, if no
        writer runs. The latest version stays."""
        if older_than < MOMENT:  # at 0 LanceDB warns of readers
            time.sleep(2 * MOMENT.total_seconds())
        self._table.optimize(cleanup_older_than=max(MOMENT, older_than), delete_unverified=everything)

    def sibling(self) -> LanceTable:
        """The same table for another thread."""
        other = object.__new__(LanceTable)
        other.__dict__.update(self.__dict__)
        other._table = self._connection.open_table(self.name)
        return other

    @property
    def cached_bytes(self) -> int:
        """Bytes in the caches of LanceDB."""
        return int(self._session.size_bytes)
