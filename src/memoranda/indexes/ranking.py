"""From candidate slots to matches: exact scores, ties, and each memory once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.vector.base import Matches, Vector, Vectors
from memoranda.indexes.vector.growing import Slots

Scored = tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]
Score = Callable[[Slots], Scored]
"""Seqs, exact cosines and parts of these slots."""


def cosines(rows: Vectors, query: Vector) -> NDArray[np.float32]:
    """Dot products of unit rows, in [-1, 1].

    Row by row and not as a matrix product: equal rows then score equal wherever they stand, and BLAS starts
    no threads, which cost more than they save here.
    """
    return np.asarray(np.clip(np.vecdot(rows, query), -1, 1), np.float32)


def top(scores: NDArray[np.float32], k: int) -> Slots:
    """Positions of the `k` highest scores and of all that tie with the last of them."""
    if k >= len(scores):
        return np.arange(len(scores))
    group = len(scores) // (4 * k)
    if group < 8:
        return np.flatnonzero(scores >= _kth(scores, k))
    # The k best of the groups' maxima are k scores, so the k-th of them bounds the k-th of all from below.
    maxima = scores[: 4 * k * group].reshape(4 * k, group).max(axis=1)
    near = np.flatnonzero(scores >= _kth(maxima, k))
    return near[scores[near] >= _kth(scores[near], k)]


def _kth(scores: NDArray[np.float32], k: int) -> np.float32:
    kth: np.float32 = np.partition(scores, len(scores) - k)[len(scores) - k]
    return kth


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
