"""The candidates of a search: vector and keyword search, each filtered before its limit, and the messages beside the
best of both."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import EmbedderUnavailable, IndexUnavailable
from memoranda.storage.sql.base import Connection
from memoranda.store.index_sync import Live
from memoranda.store.retrieval.candidates import Candidates, Target
from memoranda.store.retrieval.pending import Fresh, Pending
from memoranda.store.retrieval.rerank_features import beside
from memoranda.store.store import Store
from memoranda.types import Query

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
        answered = query.mode != "words" and self._dense_side(
            tenant, query, vector, targets, depth, candidates
        )
        answered |= query.mode != "dense" and self._words_side(tenant, query, targets, depth, candidates)
        if not answered:  # an empty result would mean that nothing matches
            raise IndexUnavailable("No index answers this search. Rows are safe; try again.")
        if vector is not None and query.mode != "words":
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
                raise EmbedderUnavailable("the query could not be embedded; mode hybrid answers from words")
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
