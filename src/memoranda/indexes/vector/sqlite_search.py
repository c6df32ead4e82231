"""Searches of a sqlite-vec table, with filters on the table of records beside it."""

from __future__ import annotations

import json
import random
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import EVERYTHING, Filter, matches
from memoranda.indexes.ranking import best_parts, cosines
from memoranda.indexes.vector.base import Matches, Vector
from memoranda.indexes.vector.sqlite_where import condition

MOST_NEAREST = 4096
"""The largest k that sqlite-vec takes."""
MARGIN = 1e-5
"""The most by which the distance of sqlite-vec and the score computed from the vectors may differ."""
GATHER_SHARE = 20
"""Reading one vector by its id costs 3.3 us; a search that skips it .15 us, and .4 us more if it is scored."""
SAMPLE = 48
WIDE = 0.4
"""From this share of passing rows on, searching all rows and dropping the others is cheaper."""

TENANT = """
SELECT generation, id,
    EXISTS (SELECT 1 FROM records WHERE tenant = tenants.id AND zero = 1),
    EXISTS (SELECT 1 FROM records WHERE tenant = tenants.id AND original IS NOT NULL),
    (SELECT max(id) FROM records)
FROM tenants, about WHERE name = ?
"""
NEAREST = """
SELECT records.seq, records.part, near.vector, {hit} FROM (
    SELECT rowid AS id, vector FROM vectors{generation} WHERE vector MATCH ? AND k = ? AND tenant = ? {among}) AS near
CROSS JOIN records ON records.id = near.id
"""
GATHER = """
SELECT records.seq, records.part, one.vector FROM json_each(?) AS wanted
CROSS JOIN records ON records.id = wanted.value CROSS JOIN vectors{generation} AS one ON one.rowid = records.id
"""

Candidates = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]
"""Seqs, exact cosines, parts."""


class FilteredQuery(NamedTuple):
    """One search as SQL: the tenant's number, the table of its vectors, and the rows that pass.

    `passing` completes `SELECT ... FROM records WHERE`; there is one for rows stored as columns and, if the tenant has
    any, one for rows with their original attributes. `hit` is True for a row that passes.
    """

    generation: int
    tenant: int
    zeros: bool
    last: int
    everything: bool
    passing: list[tuple[str, list[Any]]]
    hit: tuple[str, list[Any]]

    def select(self, what: str, more: str = "") -> tuple[str, list[Any]]:
        """Return the SQL for `what` of every row that passes, and meets `more`."""
        sql = " UNION ALL ".join(f"SELECT {what} FROM records WHERE {sql}{more}" for sql, _ in self.passing)
        return sql, [value for _, values in self.passing for value in values]


class Search:
    """A search for the `limit` memories nearest to a vector of length 1, among the rows that pass."""

    def __init__(self, db: Any, asked: FilteredQuery, vector: Vector, limit: int) -> None:
        self._db = db
        self._asked = asked
        self._vector = vector
        self._blob = vector.tobytes()
        self._limit = limit
        self._pool = limit + limit // 4 + 8

    def matches(self) -> Matches:
        """Return the matches, by the cheapest way: read the few that pass, skip many, or search everything."""
        if self._asked.everything:
            return self._widen("", [])
        share = self._share()
        if share >= WIDE:
            results = self._among_all(min(MOST_NEAREST, int(self._pool / share * 1.2)))
            if results is not None:
                return results
        sql, values = self._asked.select("id")
        count, ids = self._db.execute(
            f"SELECT count(*), json_group_array(id) FROM ({sql})", values
        ).fetchone()
        if count <= self._asked.last // GATHER_SHARE + 1:
            return best_parts(*self._gather(ids), self._limit)
        return self._widen("AND rowid IN (SELECT value FROM json_each(?))", [ids])

    def _share(self) -> float:
        """Return the approximate share of the tenant's rows that pass, by a sample of all rows."""
        asked, last = self._asked, self._asked.last
        some = (
            range(1, last + 1) if last <= SAMPLE else [random.randrange(1, last + 1) for _ in range(SAMPLE)]
        )
        sql, values = asked.hit
        marks = ", ".join(map(str, some))
        (share,) = self._db.execute(
            f"SELECT avg({sql}) FROM records WHERE id IN ({marks}) AND +tenant = ?", [*values, asked.tenant]
        ).fetchone()
        return share or 0.0

    def _among_all(self, pool: int) -> Matches | None:
        """Return the matches if they are among the `pool` nearest of all rows, else None."""
        seqs, scores, parts, passed = self._nearest(pool, *self._asked.hit)
        results = best_parts(seqs[passed], scores[passed], parts[passed], self._limit)
        settled = len(results) == self._limit and results.scores[-1] > scores.min() + MARGIN
        return results if settled or len(seqs) < pool else None

    def _widen(self, among: str, values: list[Any]) -> Matches:
        """Search longer and longer lists, until no vector beyond the list can be a match: several parts of one memory
        take one place, and vectors beyond the list may tie with the last place."""
        pool = self._pool
        while pool <= MOST_NEAREST:
            seqs, scores, parts, _ = self._nearest(pool, "1", [], among, values)
            results = best_parts(seqs, scores, parts, self._limit)
            settled = len(results) == self._limit and results.scores[-1] > scores.min() + MARGIN
            if settled or len(seqs) < pool:
                return results
            pool *= 4
        sql, values = self._asked.select("id")
        (ids,) = self._db.execute(f"SELECT json_group_array(id) FROM ({sql})", values).fetchone()
        return best_parts(*self._gather(ids), self._limit)

    def _nearest(
        self, pool: int, hit: str, hits: list[Any], among: str = "", values: list[Any] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32], NDArray[np.bool_]]:
        sql = NEAREST.format(generation=self._asked.generation, hit=hit, among=among)
        asked = [*hits, self._blob, pool, self._asked.tenant, *(values or [])]
        rows = self._db.execute(sql, asked).fetchall()
        return *self._scored(rows), np.array([row[3] for row in rows], np.bool_)

    def _gather(self, ids: str) -> Candidates:
        sql = GATHER.format(generation=self._asked.generation)
        return self._scored(self._db.execute(sql, (ids,)).fetchall())

    def _scored(self, rows: list[Any]) -> Candidates:
        vectors = np.frombuffer(b"".join([row[2] for row in rows]), np.float32).reshape(-1, len(self._vector))
        seqs = np.array([row[0] for row in rows], np.int64)
        parts = np.array([row[1] for row in rows], np.int32)
        return seqs, cosines(vectors, self._vector), parts


def ask(db: Any, tenant: str, where: Filter) -> FilteredQuery | None:
    """Return the search as SQL; None if there is no such tenant."""
    row = db.execute(TENANT, (tenant_name(tenant),)).fetchone()
    if row is None:
        return None
    generation, owner, zeros, odd, last = row
    everything = where == EVERYTHING
    compiled = condition(where)
    sql, values = compiled.sql, [*compiled.params]
    mine = "tenant = ?"
    if everything or not odd:
        passing = [(f"{mine} AND ({sql})", [owner, *values])]
        hit = (f"({sql}) IS TRUE", values)
    else:
        db.create_function("passes", 1, lambda original: matches(where, json.loads(original)))
        passing = [
            (f"{mine} AND original IS NULL AND ({sql})", [owner, *values]),
            (f"{mine} AND original IS NOT NULL AND passes(original)", [owner]),
        ]
        hit = (f"CASE WHEN original IS NULL THEN ({sql}) IS TRUE ELSE passes(original) END", values)
    return FilteredQuery(generation, owner, bool(zeros), last or 0, everything, passing, hit)


def unscored(db: Any, asked: FilteredQuery, limit: int, more: str = "") -> Matches:
    """The first memories that pass, each with cosine 0."""
    sql, values = asked.select("seq, part", more)
    rows = db.execute(
        f"SELECT seq, min(part) FROM ({sql}) GROUP BY seq ORDER BY seq LIMIT ?", [*values, limit]
    ).fetchall()
    seqs, parts = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    return Matches(seqs, np.zeros(len(rows), np.float32), parts.astype(np.int32))


def tenant_name(tenant: str) -> bytes:
    """Return the tenant's name in the file: its bytes, so that no two tenants are equal."""
    return tenant.encode("utf-8", "surrogatepass")
