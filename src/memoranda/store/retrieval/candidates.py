"""Candidates of a search, by memory: of vector and keyword search, each filtered before its limit, and rows with
pending embeddings.

Between a write and the job that embeds it, only keyword search finds a row, and any row with a vector outranks it. A
search therefore embeds the few pending rows that matter to it; `fusion.estimated` gives the others a cosine. Rows
that are pending because the model was changed are left to `reembed`: until then only keyword search finds them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.errors import EmbedderUnavailable, IndexUnavailable
from memoranda.filters import Filter, matches
from memoranda.indexes.keyword.base import WordMatches
from memoranda.indexes.vector.base import Matches
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.where import compile_where
from memoranda.store.index_sync import Live
from memoranda.store.retrieval.fusion import Target, estimated
from memoranda.store.retrieval.rerank_features import beside
from memoranda.store.rows import Record, attributes, fetch
from memoranda.store.store import Store
from memoranda.text.stored import compact_json
from memoranda.types import Query

Side = tuple[NDArray[np.int64], NDArray[np.float64]]
NONE: Side = (np.empty(0, np.int64), np.empty(0, np.float64))


class Candidates(msgspec.Struct):
    """Cosines and BM25 by seq, merged over the searched scopes; a memory counts in the heaviest scope that has it.
    `live` is the vector index of the whole search. A row of a revision up to `as_of_rev` passed the filters in the
    indexes in its current state."""

    live: Live
    as_of_rev: int = 0
    dense: Side = NONE
    words: Side = NONE
    parts: dict[int, int] = msgspec.field(default_factory=dict)
    weights: dict[int, float] = msgspec.field(default_factory=dict)
    scopes: dict[int, str] = msgspec.field(default_factory=dict)
    degraded: set[str] = msgspec.field(default_factory=set)
    cut: bool = False
    """True if keyword search has more matches than its depth."""
    lowest: float | None = None
    """The greatest cosine below which some scope may have more matches; None: there are no more."""
    estimated: set[int] = msgspec.field(default_factory=set)
    """The memories whose cosine is an estimate: they have no vector yet."""

    def add_dense(self, matches: Matches, target: Target | None, depth: int) -> None:
        """Add the matches of vector search in one scope, searched `depth` deep."""
        if len(matches.seqs) >= depth:
            last = float(matches.scores.min())
            self.lowest = last if self.lowest is None else max(self.lowest, last)
        self.dense = _merged(self.dense, (matches.seqs, matches.scores.astype(np.float64)))
        late = np.nonzero(matches.parts)[0]
        self.parts.update(zip(matches.seqs[late].tolist(), matches.parts[late].tolist(), strict=True))
        self._note(matches.seqs, target)

    def add_fresh(self, seqs: NDArray[np.int64], cosines: NDArray[np.float64], target: Target) -> None:
        """Add rows of one scope whose vectors are in no index yet."""
        self.dense = _merged(self.dense, (seqs, cosines))
        self._note(seqs, target)

    def estimate(self) -> None:
        """Give the memories without a vector the cosine that their keyword score predicts."""
        missing = self.only_words()
        if not len(missing):
            return
        both, of_words, of_dense = np.intersect1d(self.words[0], self.dense[0], return_indices=True)
        if len(both):
            bm25 = dict(zip(self.words[0].tolist(), self.words[1].tolist(), strict=True))
            scores = np.array([bm25[seq] for seq in missing.tolist()])
            cosines = estimated(self.words[1][of_words], self.dense[1][of_dense], scores)
            self.dense = _merged(self.dense, (missing, cosines))
            self.estimated |= set(missing.tolist())

    def add_words(self, matches: WordMatches, target: Target, depth: int) -> None:
        """Add the matches of keyword search in one scope, searched `depth` deep."""
        self.cut = self.cut or len(matches) >= depth
        self.words = _merged(self.words, (matches.seqs, matches.scores.astype(np.float64)))
        self._note(matches.seqs, target)

    def searched(self) -> int | None:
        """Return how many memories vector search compared with the question, if these are all that there are."""
        complete = self.lowest is None and not self.degraded & {"embedding", "index"}
        return len(self.dense[0]) - len(self.estimated) if complete else None

    def goes_on(self, floor: float | None) -> bool:
        """Return True if a deeper search may find more, with a cosine of at least `floor` unless that is None."""
        if floor is None:
            return self.cut or self.lowest is not None
        return self.lowest is not None and self.lowest >= floor

    def only_words(self) -> NDArray[np.int64]:
        """Return the memories that keyword search found and vector search did not."""
        return np.setdiff1d(self.words[0], self.dense[0])

    def _note(self, seqs: NDArray[np.int64], target: Target | None) -> None:
        if target is None or target.name is None:
            return
        for seq in seqs.tolist():
            if target.weight > self.weights.get(seq, -1.0):
                self.weights[seq], self.scopes[seq] = target.weight, target.name


def _merged(first: Side, second: Side) -> Side:
    """Return both sides merged; a memory in both has its higher score."""
    if not len(first[0]):
        return second
    seqs = np.concatenate((first[0], second[0]))
    scores = np.concatenate((first[1], second[1]))
    order = np.lexsort((-scores, seqs))
    seqs, scores = seqs[order], scores[order]
    best = np.ones(len(seqs), np.bool_)
    best[1:] = seqs[1:] != seqs[:-1]
    return seqs[best], scores[best]


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


NONE_WAITING = Waiting([], complete=True)


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
            return NONE_WAITING
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


log = logging.getLogger("memoranda.search")
BESIDE = 10
"""The best candidates of vector search, and of keyword search, whose neighbours are candidates as well."""


class Gathering:
    """Looks for candidates in one store. Synchronous."""

    def __init__(self, store: Store, pending: Pending) -> None:
        self.store = store
        self.pending = pending

    def gather(
        self,
        tenant: str,
        query: Query,
        vector: NDArray[np.float32] | None,
        targets: Sequence[Target],
        live: Live,
        fresh: Fresh | None,
        depth: int,
    ) -> Candidates:
        """Return the candidates of both sides, each searched `depth` deep.

        Raises:
            EmbedderUnavailable: `mode` is `dense` and there is no vector.
            IndexUnavailable: no index answers.
        """
        candidates = Candidates(live, as_of_rev=self.store.derived.applied)
        candidates.degraded.update(self.store.behind)
        answered = query.mode != "keyword" and self._dense_side(
            tenant, query, vector, targets, depth, candidates
        )
        answered |= query.mode != "dense" and self._words_side(tenant, query, targets, depth, candidates)
        if not answered:  # an empty result would mean that nothing matches
            raise IndexUnavailable("No index answers this search. Rows are safe; try again.")
        if vector is not None and query.mode != "keyword":
            self.pending.add(tenant, vector, targets, fresh, candidates)
        if vector is not None and query.mode == "hybrid":
            self._complete(tenant, vector, candidates)
        return candidates

    def _dense_side(
        self,
        tenant: str,
        query: Query,
        vector: NDArray[np.float32] | None,
        targets: Sequence[Target],
        depth: int,
        candidates: Candidates,
    ) -> bool:
        """Add the candidates of vector search. Return False if it failed; `degraded` then says why."""
        if vector is None:
            if query.mode == "dense":
                raise EmbedderUnavailable(
                    "the query could not be embedded; mode hybrid answers from keyword search"
                )
            candidates.degraded.add("embedding")
            return False
        if self.store.next_space is not None:
            candidates.degraded.add("embedding")
        for target in targets:
            try:
                near = candidates.live.index.search(tenant, vector, depth, target.where)
            except BaseException as exc:
                _check_degradable("index", exc)
                candidates.degraded.add("index")
                return False
            candidates.add_dense(near, target, depth)
        return True

    def _words_side(
        self, tenant: str, query: Query, targets: Sequence[Target], depth: int, candidates: Candidates
    ) -> bool:
        """Add the candidates of keyword search. Return False if it failed; `degraded` then says so."""
        for target in targets:
            try:
                hits = self.store.words.search(tenant, query.query, depth, target.where)
            except BaseException as exc:
                _check_degradable("words", exc)
                candidates.degraded.add("words")
                return False
            candidates.add_words(hits, target, depth)
        return True

    def _complete(self, tenant: str, vector: NDArray[np.float32], candidates: Candidates) -> None:
        """Add cosines for the memories that only keyword search found, so that every candidate has both scores."""
        missing = candidates.only_words()
        if not len(missing) or "index" in candidates.degraded:
            return
        try:
            near = candidates.live.index.scores(tenant, vector, missing)
        except BaseException as exc:
            _check_degradable("index", exc)
            candidates.degraded.add("index")
            return
        candidates.add_dense(near, None, len(missing) + 1)
        candidates.estimate()

    def add_neighbours(
        self, tenant: str, vector: NDArray[np.float32], targets: Sequence[Target], candidates: Candidates
    ) -> None:
        """Add the messages right before and after the best of vector search and of keyword search: what answers a
        question is often said beside what repeats its words."""
        best = [
            seqs[np.argsort(-scores, kind="stable")[:BESIDE]]
            for seqs, scores in (candidates.dense, candidates.words)
        ]
        seqs = np.unique(np.concatenate(best)).tolist()
        if not seqs or "index" in candidates.degraded:
            return

        def read(c: Connection) -> list[list[int]]:
            return [beside(c, tenant, seqs, target.where) for target in targets]

        for target, near in zip(targets, self.store.db.read(read, tenant, late=True), strict=True):
            new = np.setdiff1d(np.array(near, np.int64), candidates.dense[0])
            try:
                scored = candidates.live.index.scores(tenant, vector, new)
            except BaseException as exc:
                _check_degradable("index", exc)
                candidates.degraded.add("index")
                return
            candidates.add_dense(scored, target, len(new) + 1)


def _check_degradable(side: str, exc: BaseException) -> None:
    """Log that a search continues without a side, if its index is unavailable or its native code panicked (which is no
    Exception). Raise any other exception again."""
    if not isinstance(exc, IndexUnavailable) and type(exc).__name__ != "PanicException":
        raise exc
    log.warning("search goes on without the %s: %s", side, exc)
