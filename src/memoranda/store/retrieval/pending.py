"""Rows with pending embeddings in a search: which rows matter to a query, and their scores.

Between a write and the job that embeds it, only keyword search finds a row, and any row with a vector outranks it. A
search therefore embeds the few pending rows that matter to it; `candidates.estimated` gives the others a cosine. Rows
that are pending because the model was changed are left to `reembed`: until then only keyword search finds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.errors import IndexUnavailable
from memoranda.filters import Filter, matches
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.where import compile_where
from memoranda.store.retrieval.candidates import Candidates, Target
from memoranda.store.rows import Record, attributes, fetch
from memoranda.store.store import Store
from memoranda.text.json import compact_json

Vectors = Mapping[int, NDArray[np.float32]]
"""The vectors of rows by seq, each (windows, dim)."""
AT_ONCE = 32
"""Pending rows that one search embeds at most: about 170 ms of CPU with the model that ships. The vectors are stored,
so that no search and no job makes them again."""
RESERVED = 8
"""The rows among `AT_ONCE` that are the newest of the targets, taken in turn, however many others have words of the
query: so the newest rows, mostly the previous turn of a conversation, are embedded."""
LOOKED_AT = 5_000
"""The newest pending rows of a tenant that are read to evaluate a filter that SQL cannot."""
_STEP = 500


class Waiting(msgspec.Struct, frozen=True):
    """Pending rows in the scope of a search; `complete` if there are no others."""

    rows: list[Record]
    complete: bool


class Fresh(msgspec.Struct, frozen=True):
    """Vectors that were made for one search; `complete` if no other row in its scope is pending."""

    vectors: Vectors
    complete: bool


NONE = Waiting([], complete=True)


class Pending:
    """The pending rows of one store. Synchronous."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def possible(self, tenant: str) -> bool:
        """Return False if no row of the tenant is pending, as far as this process must know."""
        return self.store.db.shared or self.store.pending_counts.get(tenant, 0) > 0

    def find(self, tenant: str, query: str | None, targets: Sequence[Target], depth: int) -> Waiting:
        """Return the pending rows that matter most, at most `AT_ONCE`: those among the `depth` best of a keyword search
        for `query` (None: no keyword search), then the newest of `targets`, for which `RESERVED` places are kept."""
        db, space = self.store.db, self.store.space
        if not db.read(lambda c: exist(c, tenant, space), tenant):
            return NONE
        if not self.store.has_vectors(tenant):
            return Waiting([], complete=False)
        keyword_seqs: list[int] = []
        for target in targets if query is not None else ():
            with suppress(IndexUnavailable):
                assert query is not None
                keyword_seqs += self.store.words.search(tenant, query, depth, target.where).seqs.tolist()

        def read(c: Connection) -> Waiting:
            by_words = among(c, tenant, space, list(dict.fromkeys(keyword_seqs)))
            some = [newest(c, tenant, space, target.where, AT_ONCE) for target in targets]
            in_turn = [
                seq for seqs in zip_longest(*(new for new, _ in some)) for seq in seqs if seq is not None
            ]
            latest = list(dict.fromkeys(in_turn))
            first = by_words[: AT_ONCE - RESERVED] + latest[:RESERVED]
            seqs = list(dict.fromkeys([*first, *by_words, *latest]))
            chosen = seqs[:AT_ONCE]
            rows = fetch(c, tenant, chosen)
            complete = all(all_of_them for _, all_of_them in some) and len(seqs) == len(chosen)
            return Waiting([rows[seq] for seq in chosen if seq in rows], complete)

        return db.read(read, tenant)

    def add(
        self,
        tenant: str,
        vector: NDArray[np.float32],
        targets: Sequence[Target],
        fresh: Fresh | None,
        candidates: Candidates,
    ) -> None:
        """Add the rows whose vectors were made for this search to the candidates for `vector` (dim,); report
        `embedding` if other rows in scope are pending."""
        vectors = {} if fresh is None else fresh.vectors
        complete = fresh.complete if fresh is not None else not self.possible(tenant)
        if complete and not vectors:
            return
        space, most = self.store.space, len(vectors) + 1

        def read(c: Connection) -> tuple[dict[int, Record], bool]:
            others = False
            for target in [] if complete else targets:
                seqs, all_of_them = newest(c, tenant, space, target.where, most)
                others = others or not all_of_them or bool(set(seqs) - vectors.keys())
            return fetch(c, tenant, list(vectors)), others

        rows, others = self.store.db.read(read, tenant)
        if others:
            candidates.degraded.add("embedding")
        seqs, scores = cosines(vector, {seq: vectors[seq] for seq in rows})
        for target in targets:
            passing = np.array(
                [matches(target.where, attributes(rows[seq])) for seq in seqs.tolist()], np.bool_
            )
            if passing.any():
                candidates.add_fresh(seqs[passing], scores[passing], target)


def exist(c: Connection, tenant: str, space: int) -> bool:
    """Return True if any row of the tenant is pending."""
    return bool(
        c.select("SELECT 1 FROM unembedded WHERE tenant_id = ? AND space = ? LIMIT 1", [tenant, space])
    )


def newest(c: Connection, tenant: str, space: int, where: Filter, limit: int) -> tuple[list[int], bool]:
    """Return the seqs of at most `limit` pending rows that pass `where`, newest first, and True if there are no others.

    If SQL cannot decide, only the `LOOKED_AT` newest rows that pass the SQL part of the filter are read.
    """
    compiled = compile_where(where)
    step = limit if compiled.exact else _STEP
    passing: list[int] = []
    below, looked_at = 2**63 - 1, 0
    while looked_at < LOOKED_AT:
        rows = c.select(
            "SELECT m.seq FROM unembedded u JOIN memories m ON m.tenant_id = u.tenant_id AND m.seq = u.seq"
            f" WHERE u.tenant_id = ? AND u.space = ? AND u.seq < ? AND ({compiled.sql})"
            " ORDER BY u.seq DESC LIMIT ?",
            [tenant, space, below, *compiled.params, step],
        )
        seqs = [int(seq) for (seq,) in rows]
        looked_at += len(seqs)
        if compiled.exact:
            passing += seqs
        elif seqs:
            read = fetch(c, tenant, seqs)
            passing += [seq for seq in seqs if seq in read and matches(where, attributes(read[seq]))]
        if len(passing) >= limit or len(seqs) < step:
            return passing[:limit], len(seqs) < step and len(passing) <= limit
        below = seqs[-1]
    return passing, False


def among(c: Connection, tenant: str, space: int, seqs: Sequence[int]) -> list[int]:
    """Return those of the rows that are pending, in their order."""
    pending = {int(seq) for (seq,) in c.all("pending_among", [tenant, space, compact_json(seqs)])}
    return [seq for seq in seqs if seq in pending]


def cosines(query: NDArray[np.float32], rows: Vectors) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the rows and the cosine of each one's best window to `query` (dim,); 0 where a vector is zero."""
    seqs = np.array(list(rows), np.int64)
    wanted = query.astype(np.float64)
    best = np.empty(len(seqs))
    for at, windows in enumerate(rows.values()):
        vectors = windows.astype(np.float64)
        sizes = np.linalg.norm(vectors, axis=1) * np.linalg.norm(wanted)
        best[at] = float(
            np.max(np.divide(vectors @ wanted, sizes, out=np.zeros(len(vectors)), where=sizes > 0))
        )
    return seqs, best
