"""From candidate slots to an answer: exact scores, ties, and each memory once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from recollect.indexes.base import Matches, Vector, Vectors
from recollect.indexes.growing import Slots

Scored = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]
Score = Callable[[Slots], Scored]
"""Seqs, exact cosines and parts of these slots."""

ROUNDING = np.float32(4e-6)
"""More than two ways of summing one dot product of unit vectors differ by."""


def cosines(rows: Vectors, query: Vector) -> NDArray[np.float32]:
    """Dot products of unit rows, in [-1, 1]. Equal rows score equal wherever they stand, which a
    matrix product does not promise."""
    return np.asarray(np.clip(np.vecdot(rows, query), -1, 1), np.float32)


def top(scores: NDArray[np.float32], k: int) -> Slots:
    """Positions of the `k` highest scores and of all that rounding may have put below them."""
    if k >= len(scores):
        return np.arange(len(scores))
    floor = np.partition(scores, len(scores) - k)[len(scores) - k] - ROUNDING
    return np.flatnonzero(scores >= floor)


def best_parts(
    seqs: NDArray[np.int64], scores: NDArray[np.float32], parts: NDArray[np.int32], limit: int
) -> Matches:
    """The `limit` best seqs, each with its best part: by score, then seq, then part."""
    order = np.lexsort((parts, seqs, -scores))
    _, first = np.unique(seqs[order], return_index=True)
    chosen = order[np.sort(first)[:limit]]
    return Matches(seqs[chosen], scores[chosen], parts[chosen])


def widen(nearest: Callable[[int], Slots], score: Score, limit: int, pool: int, total: int) -> Matches:
    """The `limit` best memories of `total` candidate vectors, of which `nearest(n)` lists the `n` nearest.

    The list grows until no vector outside of it can belong: several parts of one memory take one place, and
    vectors beyond the list may tie with the last place.
    """
    while True:
        seqs, scores, parts = score(nearest(pool))
        matches = best_parts(seqs, scores, parts, limit)
        settled = len(matches) == limit and matches.scores[-1] > scores.min()
        if settled or pool >= total:
            return matches
        pool = min(total, pool * 4)
