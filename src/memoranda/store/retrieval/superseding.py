"""Ranks a newer memory before an older one that it probably supersedes. Arithmetic on values, no I/O.

A logistic regression on pairs of candidates of one author says how likely the newer one answers the question rather
than the older one. It is fitted by `benchmarks/superseding.py`, see docs/evaluation.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoranda.providers.embeddings.base import Calibration, centred
from memoranda.store.retrieval.rerank_features import SITTING_GAP, Candidate, without_names
from memoranda.store.rows import speaker_of
from memoranda.text.questions import coverage, normalise
from memoranda.types import MACHINES

Floats = NDArray[np.float64]
Vectors = Mapping[int, NDArray[np.float32]]
TOP, DEPTH = 5, 50
"""The first candidates that may be superseded, and those that may supersede them."""
UNIT = 3.2
"""The difference of two logits that counts as 1."""
FARTHEST = 1.0
"""How much more the older one may score, in `UNIT`."""
LEAST = 1.0
"""The least similarity of a pair, as a share of `Calibration.same`."""
PROBABLE = 0.85
"""The probability from which on the newer one is placed first."""
STEP = 1e-3
"""A newer one that is as good as certain scores so much more than the older one, relative to it."""


class Pairs(NamedTuple):
    """Pairs of candidates: the places (p,) of the older and of the newer ones in the ranking, and the features (p,
    len(FEATURES)) of each pair, see `FEATURES`."""

    older: NDArray[np.int64]
    newer: NDArray[np.int64]
    features: Floats


FEATURES = ("same", "newer", "older", "lead", "apart", "closer", "older_words", "newer_words")
"""The features of a pair:

| feature | range | what it is |
|---|---|---|
| same | .. | similarity of the two, as a share of `Calibration.same`; all similarities are of centred vectors |
| newer, older | .. | similarity of the newer, and of the older one, to the question, as such a share |
| lead | 0..1 | how much more the older one scores |
| apart | 0, 1 | they are of two sittings |
| closer | >= 0 | logarithm of 1 + how many candidates the newer one is even more similar to |
| older_words, newer_words | 0..1 | share of the question's terms that the older, and the newer one has |
"""
INTERCEPT = -7.584
WEIGHTS = (2.661, 6.064, -2.856, -2.377, 2.432, -0.861, 0.062, 3.997)


NONE = Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, len(FEATURES))))


def pairs(
    question: str,
    vector: NDArray[np.float32],
    rows: Sequence[Candidate | None],
    vectors: Vectors,
    scores: Floats,
    calibration: Calibration,
) -> Pairs:
    """Return the pairs of an older candidate among the first `TOP` and a newer one of its author that ranks below it.

    `rows` are candidates in the order of their `scores` (n,), in `UNIT`, best first, None where there is none.
    Candidates without a vector are in no pair, nor is any where the direction that all vectors of the model have is not
    known.
    """
    at = [i for i, row in enumerate(rows[:DEPTH]) if row is not None and row.seq in vectors]
    known = [row for i in at if (row := rows[i]) is not None]
    if len(known) < 2 or calibration.center is None:
        return NONE
    said_by = [speaker_of(row.metadata, row.role) for row in known]
    who, times = _authors(known, said_by), np.array([row.occurred_at for row in known])
    later = (who[:, None] == who[None, :]) & (times[None, :] > times[:, None])
    placed = scores[at]
    lead = placed[:TOP, None] - placed[None, :]
    possible = later[:TOP] & (lead > 0) & (lead <= FARTHEST)
    if not possible.any():
        return NONE
    units = centred(np.stack([vector, *(vectors[row.seq] for row in known)]), calibration.center)
    likeness = units @ units[1:].T / calibration.same
    related, alike = likeness[0], np.where(later, likeness[1:], -np.inf)
    old, new = np.nonzero(possible & (alike[:TOP] >= LEAST))
    if not len(old):
        return NONE
    shares = _shares(question, known, said_by, np.union1d(old, new))
    closer = (alike[:, new] > alike[old, new]).sum(axis=0)
    columns = (
        alike[old, new], related[new], related[old], lead[old, new],
        times[new] - times[old] > SITTING_GAP, np.log1p(closer), shares[old], shares[new],
    )  # fmt: skip
    return Pairs(np.array(at)[old], np.array(at)[new], np.column_stack(columns).astype(np.float64))


def _authors(rows: Sequence[Candidate], said_by: Sequence[str | None]) -> NDArray[np.int64]:
    """Return a number (n,) for the author of each row. A machine is not the person that it talks to: the two may say
    the same of themselves."""
    numbers: dict[tuple[str | None, bool], int] = {}
    result = []
    for row, speaker in zip(rows, said_by, strict=True):
        author = (row.user_id, False)
        if row.kind == "message":
            author = (row.user_id or speaker, (row.role or "user").lower() in MACHINES)
        result.append(numbers.setdefault(author, len(numbers)))
    return np.array(result)


def _shares(
    question: str, rows: Sequence[Candidate], said_by: Sequence[str | None], places: NDArray[np.int64]
) -> Floats:
    """Return the share (n,) of the question's terms in the rows of these places, 0 in the others."""
    shares = np.zeros(len(rows))
    if wanted := without_names(normalise(question), said_by):
        shares[places] = coverage([rows[i].content for i in places.tolist()], wanted).mean(axis=1)
    return shares


def lifted(scores: Floats, found: Pairs) -> Floats:
    """Return the scores (n,) with each candidate that probably supersedes an older one right above the best of
    these."""
    probability = 1.0 / (1.0 + np.exp(-(found.features @ np.array(WEIGHTS) + INTERCEPT)))
    sure = probability >= PROBABLE
    result = scores.copy()
    np.maximum.at(result, found.newer[sure], scores[found.older[sure]] * (1.0 + STEP * probability[sure]))
    return result
