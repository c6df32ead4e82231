"""The probability that the answer is among the results of a search. Values to values, no I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.store.retrieval.rerank_features import speaker_match, style_of, term_coverage
from memoranda.store.retrieval.scoring import WITHOUT_TOKENS, logits, scored_texts
from memoranda.store.rows import memory_speaker
from memoranda.text.numbers import bare, ids_in
from memoranda.text.questions import normalise, only_asks
from memoranda.text.regex import regex
from memoranda.types import EvidenceLevel, SearchResult

_LONG = regex(r"\d{4}")
RELATED = 0.02
"""The probability of being relevant below which a text is taken to be about something else: of the relevant ones, 95 to
99 % have more, of the other first twenty, 23 to 46 %."""
SIMILAR = 0.5
"""The similarity below which a text without a term of the question is taken to be about something else, with a model
whose similarities are not measured."""
LOOKED_AT = 10
"""The first results, from which evidence is estimated."""
WITHOUT_ID, WITHOUT_LONG_ID = 0.5, 0.1
"""The most probable answer to a question about a thing with a number, such as an error code, in results without it; the
second if the number has four digits or more, as that of an order."""
WORDS_ALONE = 0.59
"""The most probable answer in results of which no similarity is known: `weak`."""
NONE, STRONG = 0.25, 0.6
"""Probabilities: below the first, `none`; from the second on, `strong`."""


class Features(NamedTuple):
    """Features of the results of a search, see `features`."""

    best: float
    coverage: float
    other: float


class Weights(NamedTuple):
    """The weights of the features in a logistic regression."""

    intercept: float
    best: float
    coverage: float
    other: float

    def logit(self, of: Features) -> float:
        """Return the logit of the probability."""
        return self.intercept + sum(weight * value for weight, value in zip(self[1:], of, strict=True))


FITTED = Weights(intercept=-0.475, best=0.633, coverage=1.632, other=-0.482)
"""Fitted by `memoranda eval abstention --bundled --fit` on people, the bundled sets and documents, see
docs/evaluation.md."""
LEAST, MOST = 0.005, 0.9999
"""The bounds of the probabilities in `Features.best`: outside, all are alike."""


class Evidence(NamedTuple):
    """`probability` that the answer is among the first ten results, in 0..1, and what it amounts to."""

    level: EvidenceLevel
    probability: float


class Result(msgspec.Struct, frozen=True):
    """A result as evidence: its text, who said it, its calibrated similarity, and the probability that it is relevant
    (None: not known). `written` if it is of a document."""

    text: str
    speaker: str | None
    similarity: float | None
    relevance: float | None = None
    written: bool = False


def unrelated(
    relevance: float | None, asked: AbstractSet[str], terms: AbstractSet[str], similarity: float | None
) -> bool:
    """Return True if a text is about something else than the question, by the probability that it is relevant. Where
    that is not known: if it has no term of the question and is not known to be similar to it.

    `similarity` is calibrated, in 0..1; None where it is not known.
    """
    if relevance is not None:
        return relevance < RELATED
    return not asked & terms and (similarity is None or similarity < SIMILAR)


def evidence(question: str, results: Sequence[Result], searched: int | None = None) -> Evidence:
    """Return how likely the answer is among the results, which come best first, of so many texts (None: not known, or
    many).

    A logistic regression on the greatest probabilities that one is relevant, and on two features of all of them; it
    reads no answer and asks no model. What a caller prefers (scopes, kinds, what is new or in use) does not count.
    """
    if all(only_asks(result.text) for result in results[:LOOKED_AT]):
        return Evidence("none", 0.0)
    logit = FITTED.logit(features(question, results, searched))
    probability = round(1.0 / (1.0 + math.exp(-logit)), 4)
    if all(result.similarity is None for result in results):
        probability = min(probability, WORDS_ALONE)
    if missing := _missing_ids(question, results[:LOOKED_AT]):
        probability = min(probability, WITHOUT_LONG_ID if any(map(_LONG.search, missing)) else WITHOUT_ID)
    return Evidence(level_of(probability), probability)


def _missing_ids(question: str, results: Sequence[Result]) -> list[str]:
    """Return the ids of things in the question (`ids_in`), if no result has one of them."""
    wanted = ids_in(question)
    texts = [bare(result.text) for result in results] if wanted else []
    return [] if any(id_ in text for id_ in wanted for text in texts) else wanted


def with_evidence(result: SearchResult, question: str) -> SearchResult:
    """Return a search's result with its evidence."""
    shown = [
        Result(hit.memory.content, memory_speaker(hit.memory), hit.similarity, hit.relevance)
        for hit in result.results[:LOOKED_AT]
    ]
    level, probability = evidence(question, shown, result.searched)
    return msgspec.structs.replace(result, evidence=level, evidence_probability=probability)


def level_of(probability: float) -> EvidenceLevel:
    """Return the evidence level of a probability."""
    return "none" if probability < NONE else "weak" if probability < STRONG else "strong"


def _of_others(question: str, results: Sequence[Result]) -> NDArray[np.bool_]:
    """Return which results are of other speakers than those that the question names: said by others, or without
    a speaker, as facts are, and without such a name."""
    match = speaker_match(question, [result.speaker for result in results])
    named = {result.speaker for result, one in zip(results, match, strict=True) if one > 0}
    about = [
        result.speaker is None and any(name.lower() in result.text.lower() for name in named if name)
        for result in results
    ]
    return (match < 0) & ~np.array(about, np.bool_)


def features(question: str, results: Sequence[Result], searched: int | None = None) -> Features:
    """Return the features of the first ten results, at least one, without those that only ask: they answer nothing.

    `best` is the logit of the probability that one of the two most relevant is, as if each were so independently of
    the other, and `coverage` the greatest share of the question's terms in one text; if the question names some of the
    speakers, both are those of their texts alone. `other` is 1 if the first one is by a speaker that the question does
    not name. Results without a probability get one by their texts.
    """
    shown = [result for result in results[:LOOKED_AT] if not only_asks(result.text)] or results[:1]
    texts, said_by = [result.text for result in shown], [result.speaker for result in shown]
    covered = term_coverage(normalise(question), texts, said_by)
    other = _of_others(question, shown)
    chances = np.array([math.nan if one.relevance is None else one.relevance for one in shown], np.float64)
    if np.isnan(chances).any():
        similar = np.array([math.nan if one.similarity is None else one.similarity for one in shown])
        written = "documents" if all(result.written for result in shown) else "plain"
        weights = WITHOUT_TOKENS["people" if style_of(said_by) == "people" else written]
        estimates = scored_texts(weights, similar, covered, searched)
        chances = np.where(np.isnan(chances), estimates, chances)
    missed = 1.0 - np.clip(np.sort(chances[~other])[-2:], LEAST, MOST)
    return Features(
        best=float(logits(np.clip(1.0 - missed.prod(), LEAST, MOST))),
        coverage=float(covered[~other].max(initial=0.0)),
        other=float(other[0]),
    )
