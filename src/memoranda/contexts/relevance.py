"""Which memories are relevant to a question, so that a context has them and nothing to fill it. No I/O.

A logistic regression on what a search knows of a memory and of the others that it found, fitted by
`benchmarks/relevance.py`, see docs/evaluation.md. It is relative to the best that was found: where that is not likely
to answer at all (`store.retrieval.evidence`), what is similar to the question, or has its words, is left. With a model
that compares words alone, one that has any of them is enough for all; with one whose similarities are not measured, the
rule does not apply.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memoranda.contexts.choosing import Chosen, left
from memoranda.contexts.matters import Floats, Vectors, by_one_author, likeness
from memoranda.contexts.telling import since
from memoranda.contexts.values import LeftOut
from memoranda.providers.embeddings.base import Calibration
from memoranda.sessions.values import is_person
from memoranda.store.retrieval.evidence import FLOOR, UNKNOWN, WORDS, Result, evidence
from memoranda.store.retrieval.rerank_features import without_names
from memoranda.store.retrieval.rerank_weights import unsquashed
from memoranda.store.rows import memory_speaker
from memoranda.text.cover import coverage, only_asks
from memoranda.text.instructions import is_standing
from memoranda.text.questions import normalise

FEATURES = (
    "similarity",
    "behind",
    "words",
    "score",
    "best",
    "machine",
    "asks",
    "older_score",
    "older_likeness",
)
"""The features of a memory:

| feature | range | what it is |
|---|---|---|
| similarity | 0..1 | its calibrated similarity to the question |
| behind | -1..0 | that, less the greatest of all |
| words | 0..1 | share of the question's terms that it has |
| score | .. | its score, in units of the fused score |
| best | .. | the greatest score of all |
| machine | 0, 1 | it was said by an assistant or a tool |
| asks | 0, 1 | it only asks |
| older_score | .. | the greatest score of older ones of its author about the same thing, 0 without one |
| older_likeness | >= 0 | the greatest likeness to one of these, see `matters.likeness`, 0 without one |
"""
INTERCEPT = 1.127
WEIGHTS = (-2.729, 6.953, 2.289, 3.241, -4.451, -4.389, -1.051, 1.731, -0.164)
LEAST = 0.003
"""The probability from which on a memory is relevant."""


def features(
    question: str, candidates: Sequence[Chosen], vectors: Vectors, calibration: Calibration
) -> Floats:
    """Return the features (n, len(FEATURES)) of candidates. Their hits are explained (`Query.explain`); `vectors` are
    those of memories, by id."""
    memories = [candidate.memory for candidate in candidates]
    names = [name for memory in memories for name in (memory.user_id, memory_speaker(memory))]
    words = np.zeros(len(memories))
    if wanted := without_names(normalise(question), names):
        words = coverage([memory.content for memory in memories], wanted).mean(axis=1)
    similarity = np.array(
        [
            UNKNOWN[0] + UNKNOWN[1] * share if known is None else known
            for known, share in zip((one.ranking.similarity for one in candidates), words, strict=True)
        ]
    )
    scores = _scores(candidates)
    began = np.array([since(memory).timestamp() for memory in memories])
    alike = likeness(candidates, vectors, calibration)
    older = (alike >= 1) & by_one_author(candidates) & (began[:, None] < began[None, :])
    columns = (
        similarity,
        similarity - similarity.max(initial=0.0),
        words,
        scores,
        np.full(len(memories), scores.max(initial=0.0)),
        [not is_person(memory.role or "user") for memory in memories],
        [only_asks(memory.content) for memory in memories],
        np.where(older, scores[:, None], 0.0).max(axis=0, initial=0.0),
        np.where(older, alike, 0.0).max(axis=0, initial=0.0),
    )
    return np.column_stack(columns).astype(np.float64)


def _scores(candidates: Sequence[Chosen]) -> Floats:
    """Return the scores (n,) in units of the fused score, whether or not the second stage of ranking has mapped them
    onto 0..1."""
    scores = np.array([candidate.score for candidate in candidates])
    explained = (candidate.hit.explanation for candidate in candidates)
    styled = any(one is not None and one.added and one.preset != "sessions" for one in explained)
    return unsquashed(scores) if styled else scores


def probabilities(matrix: Floats) -> Floats:
    """Return the probability (n,) that each memory with these features belongs to the answer."""
    result: Floats = 1.0 / (1.0 + np.exp(-(matrix @ np.array(WEIGHTS) + INTERCEPT)))
    return result


def relevant(
    candidates: Sequence[Chosen],
    question: str,
    vectors: Vectors,
    calibration: Calibration,
    searched: int | None = None,
    *,
    topic: bool = False,
) -> tuple[list[Chosen], list[LeftOut]]:
    """Return the candidates that are relevant to a question, in their order, and the others; `searched` is how many
    there were to compare, None: many. Of a `topic`, which has no answer, it is not asked whether something answers.
    What took the place of what a relevant one says is relevant, and standing instructions are for every question."""
    if not candidates:
        return [], []
    matrix = features(question, candidates, vectors, calibration)
    sure = probabilities(matrix) >= LEAST
    if calibration.center is not None and not topic and not _may_answer(question, candidates, searched):
        similar = matrix[:, FEATURES.index("similarity")] >= FLOOR
        words = matrix[:, FEATURES.index("words")]
        sure &= (similar | (words >= WORDS)) if calibration.center else (similar | (words > 0.0)).any()
    kept = {
        one.memory.id
        for one, stays in zip(candidates, sure.tolist(), strict=True)
        if stays or is_standing(one.memory)
    }
    kept |= {one.ended.successor for one in candidates if one.memory.id in kept and one.ended is not None}
    return (
        [one for one in candidates if one.memory.id in kept],
        [left(one, "floor") for one in candidates if one.memory.id not in kept],
    )


def _may_answer(question: str, candidates: Sequence[Chosen], searched: int | None) -> bool:
    best = sorted(candidates, key=lambda one: -one.score)
    shown = [
        Result(one.memory.content, memory_speaker(one.memory), one.ranking.similarity)
        for one in best
        if not is_standing(one.memory)
    ]
    return bool(shown) and evidence(question, shown, searched).level != "none"
