"""Vectors in PostgreSQL, searched by the pgvector extension: beside the rows in their own database, or in another."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import IndexUnavailable
from memoranda.filters import EVERYTHING, Filter
from memoranda.indexes.postgres import NEVER_BEHIND, InPostgres
from memoranda.indexes.ranking import best_parts
from memoranda.indexes.vector.base import NO_MATCHES, Index, IndexLocation, Matches, Vector, VectorBatch
from memoranda.indexes.vector.floats import batch_vectors, unit, unit_query
from memoranda.indexes.vector.pgtable import Table, options, own_database
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.jsonb import Condition, columns
from memoranda.storage.sql.pgbinary import Binary, ints, vector, vectors

T = TypeVar("T")
CHUNK = 500
"""Rows of one INSERT. The server runs one while the next is encoded."""
GRAPH_PUTS = 64
"""Vectors that one transaction should insert into the graph of an HNSW index; each takes about two milliseconds."""
REMEMBERED_SECONDS = 60.0
"""Seconds for which a scope is remembered as large; it only chooses between two ways to the same result."""
REMEMBERED = 10_000
SCAN_TUPLES = (20_000, 400_000)
"""Bounds of the entries that an iterative scan may visit before the search falls back to an exact one."""
SAVE_SECONDS = 1.0


class PgvectorIndex(InPostgres, Index):
    """Vectors of length 1 in one table per space and dimension, with filter attributes in columns.

    `pgvector:` is in the rows' database: vectors are written in the rows' own transaction and are never behind, so
    `flush` does nothing and `watermark` is beyond every revision. `pgvector:postgresql://host/name` is another server
    than that of the rows. Options follow in the URL's query, see `pgtable.options`.

    A search is exact where few vectors pass its filter, and where no approximate index was built yet; see
    `_Search`. The approximate index is built once the table has `build_at` rows, by a thread of this process and
    without blocking writes, or by `maintain`. With `type=halfvec` vectors are stored, and cosines computed, with 11
    bits.

    Raises:
        ConfigError: a wrong option, rows that are not in PostgreSQL, or an extension that is missing or too old.
        IndexUnavailable: the server does not answer, or the index is closed.
    """

    shared = True
    _name = "vector index"

    def __init__(self, url: str, dim: int, place: IndexLocation) -> None:
        self.dim = dim
        self._options, address = options(url, dim)
        self.inside = not address
        self._database = own_database(address, place.database)
        self._table: Table | None = None
        self._known: dict[tuple[str, Filter], float] = {}
        self._rev = self._saved = 0
        self._saved_at = time.monotonic()
        try:
            with self._translated("opening"):
                self._table = Table(self._options, place.space, dim, self._database, self.inside)
                self._saved = self._rev = self._table.mark()
        except BaseException:
            self._release()
            raise

    @property
    def identity(self) -> str:
        database = "" if self.inside else f"{self._database.address.shown} "
        return f"pgvector {database}{self._open_table.name}"

    @property
    def put_limit(self) -> int | None:
        """`GRAPH_PUTS` if there is a graph; else None."""
        return GRAPH_PUTS if self._table is not None and self._table.has_graph else None

    def refresh(self) -> None:
        with self._translated("looking"):
            self._open_table.refresh(at_once=True)

    # --- transactions ------------------------------------------------------------------------------

    def within(self, connection: Connection) -> Index:
        """Return the same index, whose methods are part of the open transaction."""
        if not self.inside:
            return self
        bound = copy.copy(self)
        bound._connection = connection
        return bound

    @property
    def _open_table(self) -> Table:
        if self._closed or self._table is None:
            raise IndexUnavailable("The vector index is closed.")
        return self._table

    # --- writing -----------------------------------------------------------------------------------

    @property
    def watermark(self) -> int:
        return NEVER_BEHIND if self.inside else self._saved

    def put(self, tenant: str, batch: VectorBatch) -> None:
        table = self._open_table
        units = self._units(batch)
        if not len(batch):
            return
        rows = _last_of_each(batch)
        seqs = np.asarray(batch.seqs, np.int64)
        attributes = list(batch.attributes)
        chunks = [rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK)]
        half = self._options.half

        def arrays(some: NDArray[np.int64]) -> list[Binary | None]:
            return [
                ints(seqs[some]),
                ints(batch.parts[some]),
                vectors(table.array_type, table.element_type, units[some], half),
                *columns(seqs[some], [attributes[i] for i in some.tolist()]),
            ]

        def work(raw: Any) -> None:
            with raw.pipeline():
                raw.execute(table.replace, [tenant, ints(np.unique(seqs)), int(seqs.min())])
                for some in chunks:
                    raw.execute(table.insert, [tenant, *arrays(some)])
                self._note(raw)

        self._write("adding vectors", tenant, work)
        self._noted()
        table.grew(len(rows))

    def _units(self, batch: VectorBatch) -> NDArray[np.float32]:
        return unit(batch_vectors(batch, self.dim))

    def remove(self, tenant: str, seqs: Sequence[int]) -> int:
        table = self._open_table
        if not len(seqs):
            return 0

        def work(raw: Any) -> int:
            gone = raw.execute(table.delete, [tenant, ints(list(seqs))]).rowcount
            self._note(raw)
            return int(gone)

        gone = self._write("removing vectors", tenant, work)
        self._noted()
        return gone

    def clear(self) -> None:
        table = self._open_table

        def work(raw: Any) -> None:
            raw.execute(f"DELETE FROM {table.name}")
            if not self.inside:
                raw.execute(table.save_mark, [0])

        self._write("clearing", None, work)
        self._rev = self._saved = 0
        self._known.clear()

    def flush(self, rev: int) -> None:
        self._open_table  # noqa: B018 - raises when closed
        self._rev = max(rev, self._rev)
        if not self.inside and time.monotonic() - self._saved_at > SAVE_SECONDS:
            self._save()

    def _note(self, raw: Any) -> None:
        """Save the last flushed revision in the current transaction."""
        if not self.inside and self._rev > self._saved:
            raw.execute(self._open_table.save_mark, [self._rev])

    def _noted(self) -> None:
        if not self.inside:
            self._saved, self._saved_at = self._rev, time.monotonic()

    def _save(self) -> None:
        if not self.inside and self._rev > self._saved:
            self._write("saving", None, self._note)
            self._noted()

    # --- reading -----------------------------------------------------------------------------------

    def search(self, tenant: str, query: Vector, limit: int, where: Filter = EVERYTHING) -> Matches:
        table = self._open_table
        asked = unit_query(query, self.dim)
        if limit <= 0:
            return NO_MATCHES
        if self._connection is None:
            table.refresh()
        target = vector(table.element_type, asked, self._options.half)
        search = _Search(self, table, tenant, target, limit, where)
        return self._read("searching", tenant, search.run)

    def is_large(self, raw: Any, tenant: str, where: Filter, bound: int) -> bool:
        """Return True if more than `bound` vectors pass, counted now or in the last minute."""
        known, now = self._known.get((tenant, where), 0.0), time.monotonic()
        if known > now:
            return True
        condition, table = Condition(where, [tenant]), self._open_table
        some = (
            f"SELECT 1 FROM {table.name} WHERE tenant_id = $1::text AND ({condition.sql}) LIMIT {bound + 1}"
        )
        row = raw.execute(f"SELECT count(*) FROM ({some}) AS passing", condition.params).fetchone()
        if row[0] <= bound:
            return False
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[tenant, where] = now + REMEMBERED_SECONDS
        return True

    def count(self, tenant: str, where: Filter = EVERYTHING) -> int:
        table, condition = self._open_table, Condition(where, [tenant])
        sql = f"SELECT count(*) FROM {table.name} WHERE tenant_id = $1::text AND ({condition.sql})"
        return int(
            self._read("counting", tenant, lambda raw: raw.execute(sql, condition.params).fetchone()[0])
        )

    # --- maintenance --------------------------------------------------------------------------------

    def maintain(self) -> None:
        """Build the approximate index now if the table is large enough for one and has none."""
        with self._translated("building the index"):
            self._open_table.build_now()

    def compact(self) -> None:
        with self._translated("compacting"):
            self._save()
            self._database.vacuum([self._open_table.name], analyze=True).result()
        self.maintain()

    def health(self) -> dict[str, object]:
        table = self._open_table
        sql = f"SELECT count(*), count(DISTINCT tenant_id), pg_total_relation_size('{table.name}') FROM {table.name}"
        total, tenants, size = self._read("counting", None, lambda raw: raw.execute(sql).fetchone())
        with self._translated("looking"):
            table.refresh(at_once=True)
        return {
            "backend": "pgvector",
            "table": table.name,
            "version": table.version,
            "inside": self.inside,
            "index": self._options.index if table.built else "none",
            "vectors": total,
            "tenants": tenants,
            "bytes_in_memory": 0,
            "bytes_on_disk": size,
            "watermark": None if self.inside else self.watermark,
        }

    def close(self) -> None:
        if self._closed:
            return
        try:
            self._save()
        finally:
            self._closed = True
            self._release()

    def _release(self) -> None:
        if self._table is not None:
            self._table.cancel()
        if not self.inside:
            self._database.close()


def _last_of_each(batch: VectorBatch) -> NDArray[np.int64]:
    """Return the rows of the batch; of several for the same part of a memory, the last."""
    if (np.diff(batch.seqs) > 0).all():
        return np.arange(len(batch))
    keys = np.stack((batch.seqs, batch.parts.astype(np.int64)), axis=1)
    _, last = np.unique(keys[::-1], axis=0, return_index=True)
    return len(keys) - 1 - last[::-1] if len(last) < len(keys) else np.arange(len(keys))


class _Search:
    """One search in one transaction, exact or approximate, whichever is cheaper.

    Exact: every passing vector is compared, about 1 us each. By the approximate index: vectors come nearest first
    until enough have passed, about 10 us for each visited vector; the fewer pass, the more are visited. If the
    approximate search returns too few, an exact search follows, so fewer than `limit` are returned only if fewer pass.
    """

    def __init__(
        self, index: PgvectorIndex, table: Table, tenant: str, target: Binary, limit: int, where: Filter
    ) -> None:
        self._index = index
        self._table = table
        self._tenant = tenant
        self._limit = limit
        self._where = where
        self._condition = Condition(where, [tenant, target])

    def run(self, raw: Any) -> Matches:
        """Return the matches."""
        table = self._table
        if table.built:
            pool = self._limit + self._limit // 4 + 8
            bound = table.exact_bound(pool)
            if bound < table.rows and self._index.is_large(raw, self._tenant, self._where, bound):
                matches = self._near(raw, pool, bound)
                if matches is not None:
                    return matches
        return self._exact(raw)

    def _near(self, raw: Any, pool: int, bound: int) -> Matches | None:
        low, high = SCAN_TUPLES
        raw.execute(
            self._table.near_settings(pool, min(high, max(low, 4 * pool * self._table.rows // bound)))
        )
        rows = self._ask(raw, self._table.near, pool)
        matches = best_parts(*rows, self._limit)
        return matches if len(matches) == self._limit else None

    def _exact(self, raw: Any) -> Matches:
        """Search exactly, in final order, so that a longer list is only needed if several parts share a memory."""
        pool = self._limit + 8
        while True:
            rows = self._ask(raw, self._table.exact, pool)
            matches = best_parts(*rows, self._limit)
            if len(matches) == self._limit or len(rows[0]) < pool:
                return matches
            pool *= 4

    def _ask(
        self, raw: Any, sql: str, pool: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]:
        asked = sql.format(where=self._condition.sql, limit=pool)
        rows = raw.cursor(binary=True).execute(asked, self._condition.params).fetchall()
        values = np.array(rows, np.float64).reshape(len(rows), 3)
        seqs = np.array([row[0] for row in rows], np.int64)
        return seqs, np.clip(-values[:, 2], -1, 1).astype(np.float32), values[:, 1].astype(np.int32)
