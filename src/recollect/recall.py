"""The one read path: dense and words, each filtered before its limit, fused, weighed, explained."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from recollect.embedders.base import Calibration
from recollect.errors import EmbedderUnavailable, IndexUnavailable, InvalidInput
from recollect.filters import Compare, Filter, all_of, matches
from recollect.rank import Fused, fuse
from recollect.rows import Record, attributes, fetch, now_micros, to_memory
from recollect.store import Store
from recollect.text.highlights import highlights
from recollect.types import Explanation, Highlight, Hit, Query, SearchResult, Subject
from recollect.visibility import hierarchy_scopes, scope_filter, scopes_filter, selection_filter

MAX_LIMIT = 1_000
SNIPPET = 240


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults of a search, see `config.Search`. `candidates` is how deep each side is looked into."""

    limit: int = 10
    threshold: float | None = None
    scope: str | None = None
    dense_weight: float = 0.7
    words_weight: float = 0.3
    scope_weights: dict[str, float] = field(
        default_factory=lambda: {"session": 1.0, "user": 0.9, "agent": 0.8, "channel": 0.7, "global": 0.5}
    )
    candidates: int = 100


@dataclass(frozen=True, slots=True)
class Target:
    """One scope to search: what a hit in it weighs, and the rows that are in it."""

    name: str | None
    weight: float
    where: Filter


@dataclass(slots=True)
class Candidates:
    """What the two sides found, by seq, before any row is read."""

    cosines: dict[int, float] = field(default_factory=dict)
    parts: dict[int, int] = field(default_factory=dict)
    bm25: dict[int, float] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)
    scopes: dict[int, str] = field(default_factory=dict)
    degraded: set[str] = field(default_factory=set)

    def note(self, seq: int, target: Target) -> None:
        """A memory found in several scopes counts in the heaviest."""
        if target.name is not None and target.weight > self.weights.get(seq, -1.0):
            self.weights[seq], self.scopes[seq] = target.weight, target.name


class Recall:
    """Searches one store. Synchronous: run it on a worker thread."""

    def __init__(self, store: Store, calibration: Calibration, settings: Settings) -> None:
        self.store = store
        self.calibration = calibration
        self.settings = settings

    def search(self, subject: Subject, query: Query, vector: NDArray[np.float32] | None) -> SearchResult:
        """The best memories for `query` that `subject` may see.

        `vector` (dim,) is the embedded query; None when it could not be made, or is not wanted.

        Raises:
            InvalidInput: a field of the query is wrong.
            EmbedderUnavailable: `mode` is `dense` and there is no vector.
        """
        began = time.perf_counter()
        check(query)
        targets = self._targets(subject, query)
        found = self._gather(subject.tenant_id, query, vector, targets)
        floor = self._floor(query, found)
        weights = {"dense": self.settings.dense_weight, "words": self.settings.words_weight}
        weights |= {name: value for name, value in (query.weights or {}).items() if name in weights}
        ranked = fuse(
            found.cosines,
            found.bm25,
            dense_weight=weights["dense"],
            words_weight=weights["words"],
            scope_weights=found.weights,
        )
        if floor is not None:
            ranked = [one for one in ranked if found.cosines.get(one.seq, -2.0) >= floor]
        results = self._hits(subject.tenant_id, query, ranked, found, targets, weights)
        return SearchResult(
            results=results,
            total_count=len(results),
            query_time=time.perf_counter() - began,
            degraded=sorted(found.degraded),
        )

    def _targets(self, subject: Subject, query: Query) -> list[Target]:
        base = selection_filter(query, subject, now_micros())
        if query.hierarchy is None:
            scopes = query.scopes
            if scopes is None and self.settings.scope is not None:
                scopes = [self.settings.scope]
            return [Target(None, 1.0, all_of(scopes_filter(scopes, subject), base))]
        if query.scopes is not None:
            raise InvalidInput("hierarchy", "names the scopes itself; leave `scopes` out")
        weigh = self.settings.scope_weights | (query.weights or {})
        return [
            Target(scope, weigh[scope.partition(":")[0]], all_of(scope_filter(scope, subject), base))
            for scope in hierarchy_scopes(query.hierarchy)
        ]

    # --- the two sides -----------------------------------------------------------------------------

    def _gather(
        self, tenant: str, query: Query, vector: NDArray[np.float32] | None, targets: Sequence[Target]
    ) -> Candidates:
        found = Candidates()
        depth = max(self.settings.candidates, 4 * query.limit)
        found.degraded.update(self.store.behind)
        if query.mode != "words":
            self._dense_side(tenant, query, vector, targets, depth, found)
        if query.mode != "dense":
            self._words_side(tenant, query, targets, depth, found)
        if vector is not None and query.mode == "hybrid":
            self._complete(tenant, vector, found)
        return found

    def _dense_side(
        self,
        tenant: str,
        query: Query,
        vector: NDArray[np.float32] | None,
        targets: Sequence[Target],
        depth: int,
        found: Candidates,
    ) -> None:
        if vector is None:
            if query.mode == "dense":
                raise EmbedderUnavailable("the query could not be embedded; mode hybrid answers from words")
            found.degraded.add("embedding")
            return
        if self.store.owed.get(tenant, 0) > 0:
            found.degraded.add("embedding")
        for target in targets:
            try:
                near = self.store.index.search(tenant, vector, depth, target.where)
            except IndexUnavailable:
                found.degraded.add("index")
                return
            for seq, score, part in zip(
                near.seqs.tolist(), near.scores.tolist(), near.parts.tolist(), strict=True
            ):
                found.cosines[seq], found.parts[seq] = score, part
                found.note(seq, target)

    def _words_side(
        self, tenant: str, query: Query, targets: Sequence[Target], depth: int, found: Candidates
    ) -> None:
        for target in targets:
            try:
                hits = self.store.words.search(tenant, query.query, depth, target.where)
            except IndexUnavailable:
                found.degraded.add("words")
                return
            for seq, score in zip(hits.seqs.tolist(), hits.scores.tolist(), strict=True):
                found.bm25[seq] = max(score, found.bm25.get(seq, 0.0))
                found.note(seq, target)

    def _complete(self, tenant: str, vector: NDArray[np.float32], found: Candidates) -> None:
        """Cosines for memories that only words found, so that both sides judge every candidate."""
        missing = tuple(found.bm25.keys() - found.cosines.keys())
        if not missing or "index" in found.degraded:
            return
        near = self.store.index.search(tenant, vector, len(missing), Compare("$seq", "in", missing))
        for seq, score, part in zip(
            near.seqs.tolist(), near.scores.tolist(), near.parts.tolist(), strict=True
        ):
            found.cosines[seq], found.parts[seq] = score, part

    def _floor(self, query: Query, found: Candidates) -> float | None:
        """The cosine that the threshold asks for; None when there is no floor, or no dense side to judge by.
        None in the query takes the configured default, 0 is no floor at all."""
        threshold = query.threshold if query.threshold is not None else self.settings.threshold
        if not threshold or query.mode == "words" or not found.cosines:
            return None
        return self.calibration.cosine(threshold)

    # --- from candidates to hits -------------------------------------------------------------------

    def _hits(
        self,
        tenant: str,
        query: Query,
        ranked: Sequence[Fused],
        found: Candidates,
        targets: Sequence[Target],
        weights: dict[str, float],
    ) -> list[Hit]:
        hits: list[Hit] = []
        at = 0
        while len(hits) < query.limit and at < len(ranked):
            step = ranked[at : at + query.limit - len(hits)]
            at += len(step)
            rows = self.store.db.read(lambda c, step=step: fetch(c, tenant, [one.seq for one in step]))  # type: ignore[misc]
            for one in step:
                row = rows.get(one.seq)
                if row is None or not _passes(row, targets):
                    continue
                hits.append(self._hit(query, row, one, found, weights, len(hits) + 1))
        return hits

    def _hit(
        self, query: Query, row: Record, one: Fused, found: Candidates, weights: dict[str, float], rank: int
    ) -> Hit:
        cosine = found.cosines.get(one.seq)
        similarity = None if cosine is None else self.calibration.similarity(cosine)
        return Hit(
            memory=to_memory(row),
            score=round(one.score, 6),
            similarity=None if similarity is None else round(similarity, 6),
            highlights=highlights(row.content, query.query) or self._snippet(row, found.parts.get(one.seq)),
            explanation=_explain(one, found, similarity, weights, rank) if query.explain else None,
        )

    def _snippet(self, row: Record, part: int | None) -> list[Highlight]:
        """What to show when no word matched: the beginning of the window whose vector matched."""
        start = 0
        if part:
            key = [row.tenant_id, self.store.space, row.seq, part]
            span = self.store.db.read(lambda c: c.one("embedding_span", key))
            start = int(span[0]) if span else 0
        text = row.content[start : start + SNIPPET]
        return [Highlight(text=text, start=start, end=start + len(text))] if text else []


def check(query: Query) -> None:
    """Refuses a query whose numbers make no sense.

    Raises:
        InvalidInput: names the field and its range.
    """
    if not isinstance(query.query, str) or not query.query.strip():
        raise InvalidInput("query", "must hold some text")
    if not 1 <= query.limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be between 1 and {MAX_LIMIT}")
    if query.threshold is not None and not 0.0 <= query.threshold <= 1.0:
        raise InvalidInput(
            "threshold", "must be between 0 and 1; leave it out for the default, 0 is no floor"
        )
    if query.threshold and query.mode == "words":
        raise InvalidInput(
            "threshold", "is a floor on the dense similarity, which mode `words` does not have"
        )
    for name, value in (query.weights or {}).items():
        if name not in ("dense", "words", "session", "user", "agent", "channel", "global"):
            raise InvalidInput(f"weights.{name}", "is unknown; use dense, words, or a scope's name")
        if not 0.0 <= value <= 100.0:
            raise InvalidInput(f"weights.{name}", "must be between 0 and 100")


def _passes(row: Record, targets: Sequence[Target]) -> bool:
    """The row as it is now still belongs to the answer: an index may trail a write made meanwhile."""
    held = attributes(row)
    return any(matches(target.where, held) for target in targets)


def _explain(
    one: Fused, found: Candidates, similarity: float | None, weights: dict[str, float], rank: int
) -> Explanation:
    dense, words = one.dense or 0.0, one.words or 0.0
    return Explanation(
        cosine=found.cosines.get(one.seq),
        similarity=similarity,
        bm25=found.bm25.get(one.seq),
        dense_normalised=one.dense,
        words_normalised=one.words,
        dense_rank=_rank_in(found.cosines, one.seq),
        words_rank=_rank_in(found.bm25, one.seq),
        weights=weights,
        scope=found.scopes.get(one.seq),
        scope_weight=one.scope_weight,
        fused=one.score,
        rank_before=one.rank_before,
        rank_after=rank,
        formula=(
            f"{one.scope_weight:g} x ({weights['dense']:g} x {dense:.3f} dense"
            f" + {weights['words']:g} x {words:.3f} words)"
        ),
    )


def _rank_in(scores: dict[int, float], seq: int) -> int | None:
    if seq not in scores:
        return None
    mine: Callable[[int], bool] = lambda other: (-scores[other], other) < (-scores[seq], seq)  # noqa: E731
    return 1 + sum(1 for other in scores if mine(other))
