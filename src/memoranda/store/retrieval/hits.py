"""The result of a search as hits: what each one's score is made of, and where it has the question's words."""

from __future__ import annotations

import msgspec

from memoranda.providers.embeddings.base import Calibration
from memoranda.store.retrieval.candidates import Candidates
from memoranda.store.retrieval.fusion import Ranking, rank_of
from memoranda.store.retrieval.reranking import Stage
from memoranda.store.rows import Record, to_memory
from memoranda.store.store import Store
from memoranda.text.analysis import Wanted
from memoranda.text.highlights import highlights
from memoranda.types import Explanation, Highlight, Hit

SNIPPET = 240


class Found(msgspec.Struct):
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


def hit(store: Store, found: Found, at: int, terms: Wanted | None, explain: bool) -> Hit:
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


def _highlights(store: Store, found: Found, row: Record, terms: Wanted) -> list[Highlight]:
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


def _explain(found: Found, i: int, similarity: float | None, rank: int) -> Explanation:
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
