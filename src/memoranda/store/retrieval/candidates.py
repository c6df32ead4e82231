"""Candidates of vector and keyword search, by memory, before any row is read."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Filter
from memoranda.indexes.keyword.base import WordMatches
from memoranda.indexes.vector.base import Matches
from memoranda.store.index_sync import Live

Side = tuple[NDArray[np.int64], NDArray[np.float64]]
NONE: Side = (np.empty(0, np.int64), np.empty(0, np.float64))
FEWEST = 3
"""The fewest candidates with both scores for fitting a line; with fewer, the estimate is their mean cosine."""


class Target(msgspec.Struct, frozen=True):
    """One scope to search: the weight of a hit in it, and its rows."""

    name: str | None
    weight: float
    where: Filter


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
