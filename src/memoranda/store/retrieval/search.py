"""The read path: vector and keyword search, each filtered before its limit, fused, weighed, explained."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace

from memoranda.clock import moment, now_micros
from memoranda.errors import InvalidInput
from memoranda.filters import all_of, check_unicode, matches
from memoranda.providers.embeddings.base import Calibration, QueryEmbedding
from memoranda.store.access import (
    default_scopes,
    hierarchy_scopes,
    scope_filter,
    scopes_filter,
    selection_filter,
)
from memoranda.store.retrieval.candidates import Candidates, Fresh, Gathering, Pending, Waiting
from memoranda.store.retrieval.evidence import LOOKED_AT, with_evidence
from memoranda.store.retrieval.fusion import Ranking, Target, followed_by, fuse, rank_of
from memoranda.store.retrieval.reranking import PASSAGES, How, RerankQuery, Stage, rescored
from memoranda.store.retrieval.scoring import factors
from memoranda.store.rows import Record, attributes, fetch, to_memory
from memoranda.store.store import Store
from memoranda.text.analysis import Wanted, wanted_by
from memoranda.text.highlights import highlights
from memoranda.text.numbers import has_long_number
from memoranda.types import MAX_LIMIT, Explanation, Highlight, Hit, Query, SearchResult, Subject

SNIPPET = 240


class RankedRows(msgspec.Struct):
    """The result of a search: rows, best first, each with its place in the ranking. `stage` says how candidates were
    scored; those behind the `first` ones were found by a deeper search. `searched` is that of `SearchResult`. `covered`
    is False if the model was not trained on the language of the question: cosines weigh nothing then."""

    tenant: str
    calibration: Calibration
    ranked: Ranking
    candidates: Candidates
    weights: dict[str, float]
    stage: Stage
    first: int = 0
    searched: int | None = None
    covered: bool = True
    rows: list[Record] = msgspec.field(default_factory=list)
    places: list[int] = msgspec.field(default_factory=list)

    def relevance(self, at: int) -> float | None:
        """Return the probability that result row `at` is relevant; None where hits are scored otherwise."""
        return self.chances()[self.places[at]]

    def chances(self) -> list[float | None]:
        """Return the probability that each candidate is relevant, see `relevance`."""
        return [None if value != value else round(value, 6) for value in self.ranked.relevance.tolist()]

    @property
    def degraded(self) -> list[str]:
        """The parts of the search that could not answer in full."""
        return sorted(self.candidates.degraded)

    def similarities(self) -> list[float | None]:
        """Return the calibrated similarity of each candidate; None if its cosine is unknown, estimated, or of a
        question in a language that the model was not trained on."""
        return [self._similarity(place) for place in range(len(self.ranked))]

    def similarity(self, at: int) -> float | None:
        """Return the calibrated similarity of result row `at`, see `similarities`."""
        return self._similarity(self.places[at])

    def _similarity(self, place: int) -> float | None:
        cosine = float(self.ranked.cosines[place])
        if not self.covered or cosine != cosine or int(self.ranked.seqs[place]) in self.candidates.estimated:
            return None
        return round(self.calibration.similarity(cosine), 6)

    def explain(self, at: int) -> Explanation:
        """Return every part of the score of result row `at`."""
        return _explain(self, self.places[at], self.similarity(at), at + 1)


def hit(store: Store, found: RankedRows, at: int, terms: Wanted | None, explain: bool) -> Hit:
    """Return result row `at`, with its highlights if there are `terms` to look for."""
    row = found.rows[at]
    return Hit(
        memory=to_memory(row),
        score=round(float(found.ranked.scores[found.places[at]]), 6),
        relevance=found.relevance(at),
        similarity=found.similarity(at),
        highlights=[] if terms is None else _highlights(store, found, row, terms),
        explanation=found.explain(at) if explain else None,
    )


def _highlights(store: Store, found: RankedRows, row: Record, terms: Wanted) -> list[Highlight]:
    part = found.candidates.parts.get(row.seq)
    return highlights(row.content, terms) or _snippet(store, row, part, terms)


def _snippet(store: Store, row: Record, part: int | None, terms: Wanted) -> list[Highlight]:
    """Return the highlights if no term matches near the beginning of the text: matches in the window whose vector
    matched, else the beginning of that window."""
    start = 0
    if part:
        key = [row.tenant_id, store.space, row.seq, part]
        span = store.db.read(lambda c: c.one("embedding_span", key), row.tenant_id, late=True)
        start, stop = (int(span[0]), int(span[1])) if span else (0, 0)
        inside = highlights(row.content[start:stop], terms)
        if inside:
            return [Highlight(text=h.text, start=start + h.start, end=start + h.end) for h in inside]
    text = row.content[start : start + SNIPPET]
    return [Highlight(text=text, start=start, end=start + len(text))] if text else []


def _explain(found: RankedRows, i: int, similarity: float | None, rank: int) -> Explanation:
    ranked, stage = found.ranked, found.stage
    scope_weight = float(ranked.scope_weights[i])
    added = {name: float(part) for name, part in zip(stage.added, ranked.added[i], strict=True) if part}
    factors = {name: float(part) for name, part in zip(stage.factors, ranked.factors[i], strict=True)}
    return Explanation(
        cosine=_number(ranked.cosines[i]),
        similarity=similarity,
        bm25=_number(ranked.bm25[i]),
        dense_normalised=_number(ranked.dense[i]),
        words_normalised=_number(ranked.words[i]),
        dense_rank=rank_of(ranked.cosines, ranked.seqs, i),
        words_rank=rank_of(ranked.bm25, ranked.seqs, i),
        weights=found.weights,
        scope=found.candidates.scopes.get(int(ranked.seqs[i])),
        scope_weight=scope_weight,
        fused=float(ranked.fused[i]),
        preset=stage.preset,
        added=added,
        factors=factors,
        rank_before=int(ranked.rank_before[i]),
        rank_after=rank,
        formula=stage.formula(scope_weight, added, factors),
    )


def _number(value: float) -> float | None:
    return float(value) if value == value else None


log = logging.getLogger("memoranda.search")
NEIGHBOURLY = ("auto", "people", "assistant")
"""Ways to score candidates in which messages count by their conversation."""
READY_LIMIT = 50
"""The most results of a search that runs on an event loop."""


class Settings(msgspec.Struct, frozen=True):
    """The defaults of a search, see `config.Search`. `candidates` is the depth of vector and keyword search."""

    limit: int = 10
    threshold: float | None = None
    scope: str | None = None
    dense_weight: float = 0.7
    words_weight: float = 0.3
    scope_weights: dict[str, float] = msgspec.field(
        default_factory=lambda: {"session": 1.0, "user": 0.9, "agent": 0.8, "channel": 0.7, "global": 0.5}
    )
    candidates: int = 50
    how: How = msgspec.field(default_factory=How)


class ModelChanged(Exception):
    """The query was embedded with a model that was replaced meanwhile."""


class Recall:
    """Searches one store. Synchronous: run it on a worker thread, or on the event loop where it is `ready`."""

    def __init__(self, store: Store, calibration: Calibration, settings: Settings) -> None:
        self.store = store
        self.calibration = calibration
        self.settings = settings
        self.pending = Pending(store)
        self._gathering = Gathering(store, self.pending)

    def search(
        self,
        subject: Subject,
        query: Query,
        embedding: QueryEmbedding | None,
        fresh: Fresh | None = None,
    ) -> SearchResult:
        """Return the best memories for `query` that `subject` may see.

        `embedding` is None if the query could not be embedded, or need not be. `fresh` has the vectors made
        for the rows of `unembedded`; None: none were wanted.

        Raises:
            ModelChanged: the model was replaced since; embed the query again.
            InvalidInput: a field of the query is wrong.
            EmbedderUnavailable: `mode` is `dense` and there is no vector.
        """
        began = time.perf_counter()
        check(query)
        targets = self._targets(subject, query)
        threshold = query.threshold if query.threshold is not None else self.settings.threshold
        how = self._how(query)
        judged = msgspec.structs.replace(query, limit=max(query.limit, LOOKED_AT))
        found = self.find(subject.tenant_id, judged, embedding, targets, threshold, how, fresh)
        terms = wanted_by(query.query) if query.highlights else None
        results = [hit(self.store, found, at, terms, query.explain) for at in range(len(found.rows))]
        result = SearchResult(
            results=results,
            total_count=0,
            query_time=0.0,
            searched=found.searched,
            degraded=found.degraded,
        )
        result = with_evidence(result, query.query)
        result.results = results[: query.limit]
        result.total_count = len(result.results)
        result.query_time = time.perf_counter() - began
        return result

    def find(
        self,
        tenant: str,
        query: Query,
        embedding: QueryEmbedding | None,
        targets: Sequence[Target],
        threshold: float | None,
        how: How = PASSAGES,
        fresh: Fresh | None = None,
    ) -> RankedRows:
        """Return the best rows of a tenant for `query` among those that pass one of `targets`. Every search uses this.
        Only text, limit, mode, weights and `as_of` of the query are used; `threshold` 0 or None is no floor. `how` is
        how they are scored. Errors as `search`.

        Scores and order do not depend on the limit: the best `candidates` of vector and keyword search, and the
        neighbours of the very best, are ranked among themselves. Hits from a deeper search follow them."""
        late = self.store.derived.follow(tenant)
        live = self.store.derived.live
        if embedding is not None and embedding.model not in ("", live.model):
            raise ModelChanged(f"{live.model} has taken over from {embedding.model}")
        vector = None if embedding is None else embedding.vector
        covered = embedding is None or embedding.covered or query.mode == "dense"
        depth = self.settings.candidates
        candidates = self._gathering.gather(tenant, query, vector, targets, live, fresh, depth)
        if vector is not None and covered and how.rerank in NEIGHBOURLY:
            self._gathering.add_neighbours(tenant, vector, targets, candidates)
        searched = None if vector is None or query.mode == "keyword" else candidates.searched()
        weights = self._weights(query)
        sides = weights if covered else {"dense": 0.0, "words": 1.0}
        asked = RerankQuery(
            tenant,
            query.query,
            query.as_of or moment(now_micros()),
            targets,
            embedding if covered and query.mode != "keyword" else None,
            live.space,
            self.calibration,
            {} if fresh is None else fresh.vectors,
            searched,
            factors(weights),
        )
        ranked, stage = rescored(self.store.db, asked, self._fused(candidates, sides), how)
        floor = self._floor(threshold, query, candidates) if covered else None
        ranked = _above(ranked, floor)
        first = len(ranked)
        if query.limit > first and depth < MAX_LIMIT and candidates.goes_on(floor):
            candidates = self._gathering.gather(tenant, query, vector, targets, live, fresh, MAX_LIMIT)
            deeper, _ = rescored(self.store.db, asked, self._fused(candidates, sides), how)
            ranked = followed_by(ranked, _above(deeper, floor))
        candidates.degraded.update(late)
        searched = None if "index" in late else searched
        if not covered:
            candidates.degraded.add("language")
        found = RankedRows(
            tenant, self.calibration, ranked, candidates, weights, stage, first, searched, covered
        )
        self._take_rows(query.limit, found, targets)
        return found

    def ready(self, tenant: str, limit: int) -> bool:
        """Return True if a search takes a few milliseconds now and waits for nobody: it may run on an event loop."""
        derived = self.store.derived
        local = not self.store.db.shared and self.store.db.called.is_set() and limit <= READY_LIMIT
        return local and not derived.behind and self.store.words.ready and derived.live.index.ready(tenant)

    def unembedded(self, subject: Subject, query: Query) -> Waiting:
        """Return the rows without a stored vector that matter most to `query`, see `Pending.find`."""
        text = None if query.mode == "dense" else query.query
        targets = self._targets(subject, query)
        return self.pending.find(subject.tenant_id, text, targets, self.settings.candidates)

    def _how(self, query: Query) -> How:
        """Return how the query asks for its candidates to be scored."""
        default = self.settings.how
        return replace(
            default,
            rerank=(query.rerank or default.rerank) if query.mode == "hybrid" else "off",
            recency=query.recency or default.recency,
            times=default.times if query.times is None else query.times,
        )

    def _weights(self, query: Query) -> dict[str, float]:
        """Return the weights of vectors and words. Vectors of rows that differ in a number are nearly the same, so that
        words get the greater weight if the query has a number such as that of an order."""
        dense, words = self.settings.dense_weight, self.settings.words_weight
        if 0 < words < dense and has_long_number(query.query):
            dense, words = words, dense
        weights = {"dense": dense, "words": words}
        return weights | {name: value for name, value in (query.weights or {}).items() if name in weights}

    def _targets(self, subject: Subject, query: Query) -> list[Target]:
        base = selection_filter(query, subject, now_micros())
        if query.hierarchy is None:
            scopes = query.scopes
            if scopes is None:
                scopes = default_scopes(subject, self.settings.scope)
            return [Target(None, 1.0, all_of(scopes_filter(scopes, subject), base))]
        if query.scopes is not None:
            raise InvalidInput("hierarchy", "names the scopes itself; leave `scopes` out")
        weigh = self.settings.scope_weights | (query.weights or {})
        return [
            Target(scope, weigh[scope.partition(":")[0]], all_of(scope_filter(scope, subject), base))
            for scope in hierarchy_scopes(query.hierarchy)
        ]

    # --- from candidates to rows --------------------------------------------------------------------

    def _fused(self, candidates: Candidates, weights: dict[str, float]) -> Ranking:
        """Return the candidates by their fused scores."""
        return fuse(
            candidates.dense,
            candidates.words,
            dense_weight=weights["dense"],
            words_weight=weights["words"],
            cut=candidates.cut,
            scope_weights=candidates.weights,
        )

    def _floor(self, threshold: float | None, query: Query, candidates: Candidates) -> float | None:
        """Return the least cosine for a threshold; None without a threshold or without vector matches."""
        if not threshold or query.mode == "keyword" or not len(candidates.dense[0]):
            return None
        return self.calibration.cosine(threshold)

    def _take_rows(self, limit: int, found: RankedRows, targets: Sequence[Target]) -> None:
        """Read the rows of the best candidates that still exist, until there are `limit`."""
        seqs, tenant = found.ranked.seqs.tolist(), found.tenant
        at = 0
        while len(found.rows) < limit and at < len(seqs):
            step = range(at, min(len(seqs), at + limit - len(found.rows)))
            at = step.stop
            wanted = [seqs[i] for i in step]
            stored = self.store.db.read(lambda c, wanted=wanted: fetch(c, tenant, wanted), tenant, late=True)  # type: ignore[misc]
            rows = {row.seq: row for row in self.store.damage.intact(stored.values())}
            if len(rows) < len(stored):
                found.candidates.degraded.add("rows")
            for i in step:
                row = rows.get(seqs[i])
                if row is None or (row.rev > found.candidates.as_of_rev and not _passes(row, targets)):
                    continue
                found.rows.append(row)
                found.places.append(i)


def check(query: Query) -> None:
    """Check the values of a query.

    Raises:
        InvalidInput: names the field and its range.
    """
    if not isinstance(query.query, str) or not query.query.strip():
        raise InvalidInput("query", "must hold some text")
    check_unicode(query.query, "query")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}")
    if query.threshold is not None and not 0.0 <= query.threshold <= 1.0:
        raise InvalidInput(
            "threshold", "must be between 0 and 1; leave it out for the default, 0 is no floor"
        )
    if query.threshold and query.mode == "keyword":
        raise InvalidInput(
            "threshold", "is a floor on the dense similarity, which mode `keyword` does not have"
        )
    for name, value in (query.weights or {}).items():
        if name not in ("dense", "words", "session", "user", "agent", "channel", "global"):
            raise InvalidInput(f"weights.{name}", "is unknown; use dense, words, or a scope's name")
        if not 0.0 <= value <= 100.0:
            raise InvalidInput(f"weights.{name}", "must be between 0 and 100")


def _above(ranked: Ranking, floor: float | None) -> Ranking:
    return ranked if floor is None else ranked.where(np.nan_to_num(ranked.cosines, nan=-2.0) >= floor)


def _passes(row: Record, targets: Sequence[Target]) -> bool:
    """Return True if a row that changed during the search still passes a target."""
    values = attributes(row)
    return any(matches(target.where, values) for target in targets)
