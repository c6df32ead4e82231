"""Which memories are relevant to a question, so that a context has them and nothing to fill it. No I/O.

A memory is relevant if the probability of that is not far below the best one, or if that of an older one of its author
about the same thing is not: what was said later may hold instead. Where what was found is not likely to answer at all
(`store.retrieval.evidence`), one that is hardly relevant is left out, too. With a model that compares words alone, one
that has any of the question is enough for all; with one whose similarities are not measured, that rule does not apply.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memoranda.contexts.choosing import Chosen, left
from memoranda.contexts.matters import Floats, Vectors, by_one_author, likeness
from memoranda.contexts.telling import since
from memoranda.contexts.values import LeftOut
from memoranda.providers.embeddings.base import Calibration
from memoranda.store.retrieval.evidence import RELATED, Result, evidence
from memoranda.store.retrieval.rerank_features import term_coverage
from memoranda.store.rows import memory_speaker
from memoranda.text.instructions import is_standing
from memoranda.text.questions import normalise

LEAST = 0.02
"""The share of the best probability from which on a memory is relevant."""
GUESSED = 0.003
"""The same share of scores, with a model whose similarities are not measured."""
LIKELY = 0.03
"""The least probability of a relevant memory where none is likely to answer."""


def scores_of_matters(candidates: Sequence[Chosen], vectors: Vectors, calibration: Calibration) -> Floats:
    """Return the probability (n,) that each candidate is relevant, or the greatest of older ones of its author about
    the same thing, if that is greater. `vectors` are those of memories, by id."""
    scores = np.array([candidate.relevance for candidate in candidates])
    began = np.array([since(candidate.memory).timestamp() for candidate in candidates])
    alike = likeness(candidates, vectors, calibration)
    older = (alike >= 1) & by_one_author(candidates) & (began[:, None] < began[None, :])
    inherited: Floats = np.where(older, scores[:, None], 0.0).max(axis=0, initial=0.0)
    greatest: Floats = np.maximum(scores, inherited)
    return greatest


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
    scores = scores_of_matters(candidates, vectors, calibration)
    measured = bool(calibration.center)
    for one, score in zip(candidates, scores.tolist(), strict=True):
        one.weak = one.weak and not (measured and score >= RELATED)
    sure = scores >= (LEAST if measured else GUESSED) * scores.max(initial=0.0)
    shown = _shown(candidates)
    if not topic and calibration.center is not None and evidence(question, shown, searched).level == "none":
        sure &= scores >= LIKELY if measured else _has_a_word(question, shown)
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


def _has_a_word(question: str, shown: Sequence[Result]) -> bool:
    texts, said_by = [one.text for one in shown], [one.speaker for one in shown]
    return bool(term_coverage(normalise(question), texts, said_by).max(initial=0.0) > 0)


def _shown(candidates: Sequence[Chosen]) -> list[Result]:
    """Return the candidates as evidence, best first; standing instructions answer nothing."""
    return [
        Result(one.memory.content, memory_speaker(one.memory), one.ranking.similarity, one.ranking.relevance)
        for one in sorted(candidates, key=lambda one: -one.relevance)
        if not is_standing(one.memory)
    ]
