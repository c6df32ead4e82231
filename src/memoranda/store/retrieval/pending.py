"""Rows that a search should find although their vectors are not stored yet: which they are, and what they may score.

Between a write and the job that embeds it a row is found by keywords only, and any row with a vector outranks it. A
search therefore embeds the few pending rows that matter to it, and estimates the cosine of the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Filter, matches
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.where import compile_where
from memoranda.store.rows import Record, attributes, fetch
from memoranda.text.json import compact_json

Floats = NDArray[np.float64]
Vectors = Mapping[int, NDArray[np.float32]]
"""The vectors of rows by seq, each (windows, dim)."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """Vectors that were made for one search; `complete` if no other row in its scope is pending."""

    vectors: Vectors
    complete: bool


AT_ONCE = 32
"""Pending rows that one search embeds at most: about 170 ms of CPU with the model that ships. The vectors are stored,
so that no search and no job makes them again."""
LOOKED_AT = 5_000
"""Pending rows of a tenant, the newest, among which those of a scope are looked for."""
FEWEST = 3
"""Candidates with both scores that a line is fitted on; with fewer, their mean is the estimate."""


def exist(c: Connection, tenant: str, space: int) -> bool:
    """Return True if any row of the tenant is pending."""
    return bool(
        c.select("SELECT 1 FROM unembedded WHERE tenant_id = ? AND space = ? LIMIT 1", [tenant, space])
    )


def newest(c: Connection, tenant: str, space: int, where: Filter, limit: int) -> list[int]:
    """Return the seqs of at most `limit` pending rows that pass `where`, newest first."""
    compiled = compile_where(where)
    rows = c.select(
        "SELECT m.seq FROM (SELECT seq FROM unembedded WHERE tenant_id = ? AND space = ?"
        f" ORDER BY seq DESC LIMIT {LOOKED_AT}) u JOIN memories m ON m.tenant_id = ? AND m.seq = u.seq"
        f" WHERE {compiled.sql} ORDER BY m.seq DESC LIMIT ?",
        [tenant, space, tenant, *compiled.params, limit if compiled.exact else LOOKED_AT],
    )
    seqs = [int(seq) for (seq,) in rows]
    if compiled.exact or not seqs:
        return seqs
    found = fetch(c, tenant, seqs)
    return [seq for seq in seqs if seq in found and matches(where, attributes(found[seq]))][:limit]


def among(c: Connection, tenant: str, space: int, seqs: Iterable[int]) -> list[int]:
    """Return those of the rows that are pending, in their order."""
    listed = list(seqs)
    pending = {int(seq) for (seq,) in c.all("owed_among", [tenant, space, compact_json(listed)])}
    return [seq for seq in listed if seq in pending]


def cosines(query: NDArray[np.float32], rows: Vectors) -> tuple[NDArray[np.int64], Floats]:
    """Return the rows and the cosine of each one's best window to `query` (dim,); 0 where a vector is zero."""
    seqs = np.array(list(rows), np.int64)
    wanted = query.astype(np.float64)
    best = np.empty(len(seqs))
    for at, windows in enumerate(rows.values()):
        made = windows.astype(np.float64)
        sizes = np.linalg.norm(made, axis=1) * np.linalg.norm(wanted)
        best[at] = float(np.max(np.divide(made @ wanted, sizes, out=np.zeros(len(made)), where=sizes > 0)))
    return seqs, best


def estimated(known_bm25: Floats, known_cosines: Floats, bm25: Floats) -> Floats:
    """Return the cosines to expect of candidates with these BM25 scores (n,), given others with both scores.

    A line with a slope of at least 0 through the others (least squares), cut at their lowest and highest cosine.
    """
    if not len(known_cosines):
        return np.full(len(bm25), np.nan)
    slope, start = 0.0, float(known_cosines.mean())
    spread = known_bm25 - known_bm25.mean()
    if len(known_cosines) >= FEWEST and float(spread @ spread) > 1e-12:
        slope = max(0.0, float(spread @ (known_cosines - start)) / float(spread @ spread))
    made: Floats = start + slope * (bm25 - known_bm25.mean())
    return np.clip(made, known_cosines.min(), known_cosines.max())


def rows_of(c: Connection, tenant: str, seqs: Sequence[int]) -> list[Record]:
    """Return the rows that are still there, in the order of `seqs`."""
    found = fetch(c, tenant, seqs)
    return [found[seq] for seq in seqs if seq in found]
