"""What the two sides of a search found, by memory, before any row is read."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Filter
from memoranda.indexes.keyword.base import WordMatches
from memoranda.indexes.vector.base import Matches
from memoranda.store.index_sync import Live

Side = tuple[NDArray[np.int64], NDArray[np.float64]]
NONE: Side = (np.empty(0, np.int64), np.empty(0, np.float64))
FEWEST = 3
"""Candidates with both scores that a line is fitted on; with fewer, their mean is the estimate."""


@dataclass(frozen=True, slots=True)
class Target:
    """One scope to search: what a hit in it weighs, and the rows that are in it."""

    name: str | None
    weight: float
    where: Filter


@dataclass(slots=True)
class Candidates:
    """Cosines and BM25 by seq, merged over the searched scopes; the scope that a memory counts in is the heaviest it
    was found in. `live` is the index that is asked throughout. A row of a revision up to `as_of_rev` passed the
    filters in the indexes as it is."""

    live: Live
    as_of_rev: int = 0
    dense: Side = NONE
    words: Side = NONE
    parts: dict[int, int] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)
    scopes: dict[int, str] = field(default_factory=dict)
    degraded: set[str] = field(default_factory=set)
    cut: bool = False
    """Words found more than was looked at."""
    lowest: float | None = None
    """The greatest cosine beyond which more may be found in some scope; None: all was found."""
    estimated: set[int] = field(default_factory=set)
    """The memories whose cosine is an estimate: they have no vector yet."""

    def add_dense(self, found: Matches, target: Target | None, depth: int) -> None:
        """Takes in what the vector index found in one scope, looking `depth` deep."""
        if len(found.seqs) >= depth:
            last = float(found.scores.min())
            self.lowest = last if self.lowest is None else max(self.lowest, last)
        self.dense = _merged(self.dense, (found.seqs, found.scores.astype(np.float64)))
        late = np.nonzero(found.parts)[0]
        self.parts.update(zip(found.seqs[late].tolist(), found.parts[late].tolist(), strict=True))
        self._note(found.seqs, target)

    def add_fresh(self, seqs: NDArray[np.int64], cosines: NDArray[np.float64], target: Target) -> None:
        """Take in rows of one scope whose vectors are in no index yet."""
        self.dense = _merged(self.dense, (seqs, cosines))
        self._note(seqs, target)

    def estimate(self) -> None:
        """Give the memories that have no vector the cosine that their keyword score lets expect."""
        missing = self.only_words()
        if not len(missing):
            return
        both, of_words, of_dense = np.intersect1d(self.words[0], self.dense[0], return_indices=True)
        if len(both):
            bm25 = dict(zip(self.words[0].tolist(), self.words[1].tolist(), strict=True))
            scores = np.array([bm25[seq] for seq in missing.tolist()])
            made = estimated(self.words[1][of_words], self.dense[1][of_dense], scores)
            self.dense = _merged(self.dense, (missing, made))
            self.estimated |= set(missing.tolist())

    def add_words(self, found: WordMatches, target: Target, depth: int) -> None:
        """Takes in what words found in one scope, looking `depth` deep."""
        self.cut = self.cut or len(found) >= depth
        self.words = _merged(self.words, (found.seqs, found.scores.astype(np.float64)))
        self._note(found.seqs, target)

    def goes_on(self, floor: float | None) -> bool:
        """Return True if a deeper look may find more, with a cosine of at least `floor` where that is given."""
        if floor is None:
            return self.cut or self.lowest is not None
        return self.lowest is not None and self.lowest >= floor

    def only_words(self) -> NDArray[np.int64]:
        """The memories that words found and the vectors did not."""
        return np.setdiff1d(self.words[0], self.dense[0])

    def _note(self, seqs: NDArray[np.int64], target: Target | None) -> None:
        if target is None or target.name is None:
            return
        for seq in seqs.tolist():
            if target.weight > self.weights.get(seq, -1.0):
                self.weights[seq], self.scopes[seq] = target.weight, target.name


def estimated(
    known_bm25: NDArray[np.float64], known_cosines: NDArray[np.float64], bm25: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the cosines to expect of candidates with these BM25 scores (n,), given others with both scores.

    A line with a slope of at least 0 through the others (least squares), cut at their lowest and highest cosine.
    """
    if not len(known_cosines):
        return np.full(len(bm25), np.nan)
    slope, start = 0.0, float(known_cosines.mean())
    spread = known_bm25 - known_bm25.mean()
    if len(known_cosines) >= FEWEST and float(spread @ spread) > 1e-12:
        slope = max(0.0, float(spread @ (known_cosines - start)) / float(spread @ spread))
    made: NDArray[np.float64] = start + slope * (bm25 - known_bm25.mean())
    return np.clip(made, known_cosines.min(), known_cosines.max())


def _merged(one: Side, other: Side) -> Side:
    """Both sides as one, a memory that is in both with its higher score."""
    if not len(one[0]):
        return other
    seqs = np.concatenate((one[0], other[0]))
    scores = np.concatenate((one[1], other[1]))
    order = np.lexsort((-scores, seqs))
    seqs, scores = seqs[order], scores[order]
    first = np.ones(len(seqs), np.bool_)
    first[1:] = seqs[1:] != seqs[:-1]
    return seqs[first], scores[first]
