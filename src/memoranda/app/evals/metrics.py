"""Measures of one ranked answer, each in [0, 1]. Pure.

`ranked` holds distinct ids, best first. `recall@k` and `hit@k` differ: if one of two relevant ids is retrieved, that is
a recall of one half and a hit of 1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import log2


def recall(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of the relevant ids that are among the first `k`.

    Raises:
        ValueError: nothing is relevant, or `k` is below 1 (so for every measure here that has them).
    """
    return _relevant_count(ranked, relevant, k) / len(relevant)


def hit(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return 1 if any relevant id is among the first `k`, else 0."""
    return float(_relevant_count(ranked, relevant, k) > 0)


def perfect(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return 1 if every relevant id is among the first `k`, else 0."""
    return float(_relevant_count(ranked, relevant, k) == len(relevant))


def precision(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Return the share of `k` places with a relevant id; empty places count as misses."""
    return _relevant_count(ranked, relevant, k) / k


def noise(ranked: Sequence[str], wrong: Collection[str], k: int) -> float:
    """Return the share of the first `k` answers that are marked wrong; 0 if there are none.

    An answer that is neither relevant nor marked wrong is no noise: it does not mislead.
    """
    _check(k)
    given = ranked[:k]
    return sum(id_ in wrong for id_ in given) / len(given) if given else 0.0


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Return 1 over the place of the first relevant id, 0 without one. Its mean is the MRR."""
    return next((1.0 / place for place, id_ in enumerate(ranked, start=1) if id_ in relevant), 0.0)


def ndcg(ranked: Sequence[str], grades: Mapping[str, float], k: int) -> float:
    """Return the discounted gain of the first `k` over that of the best possible order.

    The gain is the grade itself and the discount log2(place + 1), as trec_eval and BEIR have it (Järvelin and
    Kekäläinen 2002, without the exponential gain).

    Raises:
        ValueError: no grade is above 0, or `k` is below 1.
    """
    _check(k)
    best = _gain(sorted(grades.values(), reverse=True)[:k])
    if best <= 0:
        raise ValueError("no id has a grade above 0: there is nothing to rank")
    return _gain([grades.get(id_, 0.0) for id_ in ranked[:k]]) / best


def _gain(grades: Sequence[float]) -> float:
    return sum(grade / log2(place + 1) for place, grade in enumerate(grades, start=1))


def _relevant_count(ranked: Sequence[str], relevant: Collection[str], k: int) -> int:
    _check(k)
    if not relevant:
        raise ValueError("nothing is relevant: there is nothing to find")
    return sum(id_ in relevant for id_ in ranked[:k])


def _check(k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
