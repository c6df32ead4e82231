"""Ranking as arithmetic on arrays: estimating, normalising, fusing, weighing. No I/O, no state."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Filter

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


class Ranking(msgspec.Struct, frozen=True):
    """Candidates, best first, with the parts of each score; every array is (n,).

    A part that a candidate does not have is NaN. `rank_before` is the 1-based rank without scope weights. `fused` is
    the score of the fusion, `relevance` the probability of being relevant, which is the logistic function of the sum of
    `added` (n, a); `factors` (n, f) make `scores` of it. Without a second stage these have no columns.
    """

    seqs: Ids
    scores: Floats
    relevance: Floats
    fused: Floats
    cosines: Floats
    bm25: Floats
    dense: Floats
    words: Floats
    scope_weights: Floats
    rank_before: NDArray[np.int64]
    added: Floats
    factors: Floats

    def __len__(self) -> int:
        return len(self.seqs)

    def first(self, count: int) -> Ranking:
        """The first candidates, at most so many."""
        return self if len(self) <= count else self.where(np.arange(len(self)) < count)

    def where(self, keep: NDArray[np.bool_]) -> Ranking:
        """The candidates that `keep` (n,) marks, in the same order."""
        return Ranking(*(getattr(self, name)[keep] for name in self.__struct_fields__))


def min_max(scores: Floats) -> Floats:
    """Scores mapped linearly onto [0, 1]: the lowest to 0, the highest to 1, all to 1 when they are equal."""
    if not len(scores):
        return scores
    low, high = scores.min(), scores.max()
    return np.ones_like(scores) if high - low < 1e-12 else (scores - low) / (high - low)


def fuse(
    dense: tuple[Ids, Floats],
    words: tuple[Ids, Floats],
    *,
    dense_weight: float,
    words_weight: float,
    cut: bool = False,
    scope_weights: Mapping[int, float] | None = None,
) -> Ranking:
    """Candidates by descending `scope weight x (dense_weight x dense + words_weight x words)`.

    `dense` and `words` are (seqs, scores) with distinct seqs each: cosines, and BM25. The dense part is the
    min-max normalised cosine. The words part is BM25 over the best BM25 when the list holds every match, so that
    0 means "no term"; when it was `cut` at its depth what is missing may have matched too, and it is min-max
    normalised as well. Weights are scaled to sum to 1 over the sides with results. Ties go to the older
    memory.
    """
    seqs = np.union1d(dense[0], words[0])
    cosines = _spread(seqs, *dense)
    bm25 = _spread(seqs, *words)
    dense_part = _spread(seqs, dense[0], min_max(dense[1]))
    words_part = _spread(seqs, words[0], min_max(words[1]) if cut else _of_best(words[1]))
    left, right = dense_weight * bool(len(dense[0])), words_weight * bool(len(words[0]))
    total = left + right or 1.0
    plain = (left * np.nan_to_num(dense_part) + right * np.nan_to_num(words_part)) / total
    weights = np.ones(len(seqs))
    if scope_weights:
        weights = np.array([scope_weights.get(seq, 1.0) for seq in seqs.tolist()])
    before = np.argsort(-plain, kind="stable")
    rank_before = np.empty(len(seqs), np.int64)
    rank_before[before] = np.arange(1, len(seqs) + 1)
    order = np.lexsort((rank_before, -plain * weights)) if scope_weights else before
    return Ranking(
        seqs=seqs[order],
        scores=(plain * weights)[order],
        relevance=np.full(len(seqs), np.nan),
        fused=(plain * weights)[order],
        cosines=cosines[order],
        bm25=bm25[order],
        dense=dense_part[order],
        words=words_part[order],
        scope_weights=weights[order],
        rank_before=rank_before[order],
        added=np.empty((len(seqs), 0)),
        factors=np.empty((len(seqs), 0)),
    )


def reordered(ranked: Ranking, scores: Floats, relevance: Floats, added: Floats, factors: Floats) -> Ranking:
    """The same candidates by descending new scores (n,), given in the present order; ties stay as they were. No score
    is shown as more than 1."""
    order = np.argsort(-scores, kind="stable")
    columns = {name: getattr(ranked, name)[order] for name in Ranking.__struct_fields__}
    new = {"scores": np.minimum(scores, 1.0), "relevance": relevance, "added": added, "factors": factors}
    return Ranking(**columns | {name: values[order] for name, values in new.items()})


def followed_by(first: Ranking, rest: Ranking) -> Ranking:
    """`first`, and behind it what only `rest` has, in its order, with no score above the lowest of `first`."""
    rest = rest.where(~np.isin(rest.seqs, first.seqs))
    behind = {
        "scores": np.minimum(rest.scores, first.scores.min(initial=1.0)),
        "rank_before": np.arange(len(first) + 1, len(first) + len(rest) + 1),
    }
    return Ranking(
        **{
            name: np.concatenate((getattr(first, name), behind.get(name, getattr(rest, name))))
            for name in Ranking.__struct_fields__
        }
    )


def decayed(unused_days: Floats, half_life_days: float) -> Floats:
    """Factors for memories by the days since they were last used: `max(0, 1 - decay_factor x days)` with
    decay_factor = .5 / half life, so half of the score is left after one and nothing after two."""
    factors: Floats = np.clip(1.0 - 0.5 / half_life_days * np.maximum(unused_days, 0.0), 0.0, 1.0)
    return factors


BOOST_CAP = 1.25
BOOST_DAYS = 30.0


def boosted(importance: Floats, age_days: Floats) -> Floats:
    """Factors in (0, 1.25] for memories by importance and age: `(1 + .05 x importance) x (1 + .25 x .5^(age / 30))`,
    cut at 1.25 together; negative importance makes less of a memory, to nothing at -20."""
    recency = 1.0 + (BOOST_CAP - 1.0) * 0.5 ** (np.maximum(age_days, 0.0) / BOOST_DAYS)
    factors: Floats = np.clip((1.0 + 0.05 * importance) * recency, 0.0, BOOST_CAP)
    return factors


SESSION_BONUS = 1.25
COVERED_PENALTY = 0.5
AGE_HALF_LIFE_HOURS = 72.0


def blended(base: Floats, age_hours: Floats, overlap: Floats) -> Floats:
    """Return the score parts of a merged list of messages and session summaries, (n, 3): .45 of the score in [0, 1],
    .25 of recency with a half-life of 72 hours, and .30 of the share of the question's terms in the text. Their sum is
    the score, before the bonus of a session (x 1.25) and the penalty (x .5) of a message whose session is a result."""
    recency = 0.5 ** (np.maximum(age_hours, 0.0) / AGE_HALF_LIFE_HOURS)
    return np.stack([0.45 * base, 0.25 * recency, 0.30 * overlap], axis=1)


def _of_best(scores: Floats) -> Floats:
    return scores / scores.max() if len(scores) else scores


def _spread(seqs: Ids, subset: Ids, values: Floats) -> Floats:
    """Return `values` at the places of `subset` among the sorted `seqs`, NaN elsewhere."""
    spread = np.full(len(seqs), np.nan)
    spread[np.searchsorted(seqs, subset)] = values
    return spread


def rank_of(scores: Floats, seqs: Ids, at: int) -> int | None:
    """The 1-based rank of candidate `at` among those that have a score; None when it has none."""
    mine = scores[at]
    if np.isnan(mine):
        return None
    ahead = (scores > mine) | ((scores == mine) & (seqs < seqs[at]))
    return 1 + int(np.count_nonzero(ahead))


def mmr(scores: Floats, vectors: NDArray[np.floating], limit: int, diversity: float) -> NDArray[np.int64]:
    """Candidates in the order of maximal marginal relevance (Carbonell & Goldstein, SIGIR 1998), at most `limit`.

    `scores` (n,) are relevances on the scale of a cosine, `vectors` (n, d) unit vectors. Each pick is the candidate
    with the greatest `(1 - diversity) x score - diversity x its greatest cosine to one picked before`; ties go to the
    earlier one. `diversity` 0 orders by score, 1 looks at the score of the first pick alone. O(n x d x limit).
    """
    count = min(limit, len(scores))
    if count <= 0:
        return np.empty(0, np.int64)
    picks = np.empty(count, np.int64)
    picks[0] = np.argmax(scores)
    nearest = np.full(len(scores), -np.inf)
    left = np.ones(len(scores), np.bool_)
    for place in range(1, count):
        left[picks[place - 1]] = False
        nearest = np.maximum(nearest, vectors @ vectors[picks[place - 1]])
        marginal = (1.0 - diversity) * scores - diversity * nearest
        picks[place] = np.argmax(np.where(left, marginal, -np.inf))
    return picks


FEWEST = 3
"""The fewest candidates with both scores for fitting a line; with fewer, the estimate is their mean cosine."""


class Target(msgspec.Struct, frozen=True):
    """One scope to search: the weight of a hit in it, and its rows."""

    name: str | None
    weight: float
    where: Filter


def estimated(
    known_bm25: NDArray[np.float64], known_cosines: NDArray[np.float64], bm25: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the predicted cosines of candidates with these BM25 scores (n,), given others with both scores.

    A line with a slope of at least 0 through the others (least squares), cut at their lowest and highest cosine.
    """
    if not len(known_cosines):
        return np.full(len(bm25), np.nan)
    slope, start = 0.0, float(known_cosines.mean())
    spread = known_bm25 - known_bm25.mean()
    if len(known_cosines) >= FEWEST and float(spread @ spread) > 1e-12:
        slope = max(0.0, float(spread @ (known_cosines - start)) / float(spread @ spread))
    cosines: NDArray[np.float64] = start + slope * (bm25 - known_bm25.mean())
    return np.clip(cosines, known_cosines.min(), known_cosines.max())
