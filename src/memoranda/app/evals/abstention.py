"""Measures how well the evidence of a search separates questions that its results answer from the others."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from memoranda.app.evals import assistant, synthetic
from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.run import Progress, Written
from memoranda.app.evals.written import written
from memoranda.app.memoranda import Memoranda
from memoranda.store.retrieval import scoring
from memoranda.store.retrieval.evidence import (
    LOOKED_AT,
    NONE,
    STRONG,
    Features,
    Result,
    Weights,
    evidence,
    features,
)
from memoranda.store.retrieval.scoring import FEATURES, PRESETS, WITHOUT_TOKENS
from memoranda.store.rows import memory_speaker
from memoranda.types import MAX_LIMIT, Hit, NewMemory

Floats = NDArray[np.float64]
BINS, DRAWS = 10, 500
PENALTY = 0.1
"""The penalty on the squared length of the weights."""
ANSWERED, NEVER_SAID, ELSEWHERE, REMOVED = "answered", "never said", "elsewhere", "removed"
FEW = (1, 2, 3, 5, 10, 20)
"""How many memories that follow one another are the only ones in a short conversation."""
NEAREST = 3
"""Results without an answer that are about the subject of a question: the first ones."""


class Unanswered(msgspec.Struct, kw_only=True):
    """One kind of questions that nothing answers, beside those that are answered.

    `auc` is the chance that an answered question has the greater probability. `rejected` is the share of the answered
    ones that are rejected by a threshold that rejects half of these.
    """

    kind: str
    questions: int
    auc: float
    rejected: float


class ShortConversations(msgspec.Struct, kw_only=True):
    """The probabilities in conversations of so many memories, half of which answer. `missed` is the share of the
    answered questions that are called `none`, `refused` that of the others, `wrong` the share of these that are called
    `strong`."""

    memories: int
    questions: int
    error: float
    chance: float
    missed: float
    refused: float
    wrong: float


class Abstention(msgspec.Struct, kw_only=True):
    """The probabilities of one dataset. `error` is the expected calibration error (Naeini et al. 2015) over ten bins,
    `chance` the error of the same number of questions if each probability were right: what is found is a draw, so the
    error of few questions is never 0. `found` is the share of all questions whose first ten results have what
    answers. `short` are the same questions in conversations of a few of these memories, which follow one another."""

    dataset: str
    model: str
    answered: int
    found: float
    probability: float
    error: float
    chance: float
    kinds: list[Unanswered]
    short: list[ShortConversations]


class Case(msgspec.Struct, frozen=True):
    """A question with what its results show; `found` says that they have what answers it. `short` is the number of
    memories of a short conversation, 0 for the whole."""

    kind: str
    features: Features
    probability: float
    found: bool
    short: int = 0


def bundled() -> Dataset:
    """Return both bundled sets as one, each a conversation of its own."""
    memories: dict[str, NewMemory] = {}
    questions: list[Question] = []
    for name, dataset in (("people", synthetic.read()), ("assistant", assistant.read())):
        memories |= {
            f"{name}/{key}": msgspec.structs.replace(memory, session_id=name)
            for key, memory in dataset.memories.items()
        }
        questions += [
            replace(
                question,
                grades={f"{name}/{key}": grade for key, grade in question.grades.items()},
                scopes=[f"session:{name}"],
                group=name,
            )
            for question in dataset.questions
        ]
    return Dataset("bundled", memories, questions)


def spread(dataset: Dataset, limit: int | None) -> Dataset:
    """Return a dataset with at most so many of its questions, evenly spread."""
    step = 1 if limit is None else max(1, -(-len(dataset.questions) // limit))
    return replace(dataset, questions=dataset.questions[::step])


async def cases(
    dataset: Dataset, *, embedder: str | None, data: str, progress: Progress
) -> tuple[str, list[Case]]:
    """Ask every question, and questions without an answer: what was never said (LoCoMo has such), and each question
    in another conversation (every second one where some were never said, so that about half of all are answered); in a
    set without either, in results without those that answer. Then ask those that are answered in short conversations:
    in some memories that follow one another, with what answers and without, every second time around one of the first
    results. Return the name of the embedding model, and the cases."""
    groups = sorted({question.group for question in dataset.questions})
    scopes = {question.group: question.scopes for question in dataset.questions}
    results: list[Case] = []
    async with written(dataset, embedder=embedder, data=data, progress=progress) as (product, stored):
        for number, question in enumerate(dataset.questions):
            answerable = dataset.overall is None or question.category in dataset.overall
            kind = ANSWERED if answerable else NEVER_SAID
            results.append(await _asked(product, stored, question, kind))
            every = 1 if dataset.overall is None else 2
            if len(groups) > 1 and number % every == 0:
                step = 1 + number % (len(groups) - 1)
                other = groups[(groups.index(question.group) + step) % len(groups)]
                moved = replace(question, scopes=scopes[other])
                results.append(await _asked(product, stored, moved, ELSEWHERE))
            elif len(groups) == 1 and dataset.overall is None:
                results.append(await _asked(product, stored, question, REMOVED))
            if answerable:
                results += await _shortened(product, stored, question, number)
            progress("asking", number + 1, len(dataset.questions))
        return stored.model, results


async def _asked(product: Memoranda, stored: Written, question: Question, kind: str) -> Case:
    spare = len(question.grades) if kind == REMOVED else 0
    result = await product.memories.search(
        question.text, scopes=question.scopes, limit=LOOKED_AT + spare, threshold=0.0
    )
    hits = result.results
    right = [_answers(stored, question, hit) for hit in hits]
    remaining = [hit for hit, answers in zip(hits, right, strict=True) if kind != REMOVED or not answers]
    return _case(question, kind, remaining, kind == ANSWERED and any(right[:LOOKED_AT]), result.searched)


async def _shortened(product: Memoranda, stored: Written, question: Question, number: int) -> list[Case]:
    """Return the cases of short conversations, cut out of a search through the whole one."""
    search, rng = product.memories.search, random.Random(number)
    hits = (
        await search(question.text, scopes=question.scopes, limit=MAX_LIMIT, threshold=0.0, explain=True)
    ).results
    ranks = {hit.memory.id: rank for rank, hit in enumerate(hits)}
    said = sorted(hits, key=lambda hit: (hit.memory.occurred_at, hit.memory.id))
    right = [_answers(stored, question, hit) for hit in said]
    places = [at for at, answers in enumerate(right) if answers]
    others = [at for at, answers in enumerate(right) if not answers]
    nearest = {*sorted(others, key=lambda at: ranks[said[at].memory.id])[:NEAREST]}
    results = []
    for turn, size in enumerate(FEW, number) if places and len(said) > FEW[-1] else ():
        at = rng.choice(places)
        first = rng.randint(max(0, at - size + 1), min(at, len(said) - size))
        elsewhere = [at for at in range(len(said) - size + 1) if not any(right[at : at + size])]
        if turn % 2:
            near = [at for at in elsewhere if nearest.intersection(range(at, at + size))]
            elsewhere = near or elsewhere
        for kind, start in ((ANSWERED, first), (REMOVED, rng.choice(elsewhere or [-1]))):
            if start >= 0:
                some = sorted(said[start : start + size], key=lambda hit: ranks[hit.memory.id])
                found = any(_answers(stored, question, hit) for hit in some[:LOOKED_AT])
                results.append(_case(question, kind, _alone(some), found, size, size))
    return results


def _alone(hits: Sequence[Hit]) -> list[Hit]:
    """Return some explained hits with the probabilities that they have if there is nothing else to search."""
    added = [{} if hit.explanation is None else hit.explanation.added for hit in hits]
    presets = PRESETS if any("tokens" in parts for parts in added) else WITHOUT_TOKENS
    styles = [presets[(hit.explanation and hit.explanation.preset) or "plain"] for hit in hits]
    few = scoring.fewness(len(hits))
    of_all = (scoring.FEW, scoring.LEVEL, scoring.BEHIND)
    near = [parts.get(FEATURES[style.nearness], 0.0) for style, parts in zip(styles, added, strict=True)]
    sums = np.array(
        [
            style.few * few + sum(part for name, part in parts.items() if name not in of_all)
            for style, parts in zip(styles, added, strict=True)
        ]
    )
    sums += [style.level * max(near) / style.weights[FEATURES[style.nearness]] for style in styles]
    behind = np.array([style.behind for style in styles]) * (sums - sums.max())
    chances = scoring.logistic(sums + behind)
    return [replace(hit, relevance=float(chance)) for hit, chance in zip(hits, chances, strict=True)]


def _answers(stored: Written, question: Question, hit: Hit) -> bool:
    return not question.grades.keys().isdisjoint(stored.keys[hit.memory.id])


def _case(
    question: Question, kind: str, hits: Sequence[Hit], found: bool, searched: int | None, short: int = 0
) -> Case:
    shown = [
        Result(hit.memory.content, memory_speaker(hit.memory), hit.similarity, hit.relevance) for hit in hits
    ]
    return Case(
        kind=kind,
        features=features(question.text, shown, searched),
        probability=evidence(question.text, shown, searched).probability,
        found=found,
        short=short,
    )


def report(name: str, model: str, every: Sequence[Case]) -> Abstention:
    """Return how good the probabilities of some cases are."""
    asked = [case for case in every if not case.short]
    probabilities = np.array([case.probability for case in asked])
    right = np.array([case.found for case in asked])
    answered = probabilities[[case.kind == ANSWERED for case in asked]]
    kinds = []
    for kind in (NEVER_SAID, ELSEWHERE, REMOVED):
        others = probabilities[[case.kind == kind for case in asked]]
        if len(others):
            kinds.append(_unanswered(kind, answered, others))
    return Abstention(
        dataset=name,
        model=model,
        answered=len(answered),
        found=round(float(right.mean()), 4),
        probability=round(float(probabilities.mean()), 4),
        error=round(calibration_error(probabilities, right), 4),
        chance=round(chance_error(probabilities), 4),
        kinds=kinds,
        short=[
            _short_conversations(size, some)
            for size in FEW
            if (some := [case for case in every if case.short == size])
        ],
    )


def _short_conversations(size: int, asked: Sequence[Case]) -> ShortConversations:
    probabilities = np.array([case.probability for case in asked])
    right = np.array([case.found for case in asked])
    return ShortConversations(
        memories=size,
        questions=len(asked),
        error=round(calibration_error(probabilities, right), 4),
        chance=round(chance_error(probabilities), 4),
        missed=round(float((probabilities[right] < NONE).mean()), 4),
        refused=round(float((probabilities[~right] < NONE).mean()), 4),
        wrong=round(float((probabilities[~right] >= STRONG).mean()), 4),
    )


def _unanswered(kind: str, answered: Floats, others: Floats) -> Unanswered:
    above = (answered[:, None] > others).mean() + 0.5 * (answered[:, None] == others).mean()
    rejected = (answered < np.median(others)).mean()
    return Unanswered(
        kind=kind, questions=len(others), auc=round(float(above), 4), rejected=round(float(rejected), 4)
    )


def calibration_error(probabilities: Floats, right: NDArray[np.bool_]) -> float:
    """Return the mean over bins of `|mean probability - share found|`, weighted by their size."""
    bins = np.minimum((probabilities * BINS).astype(int), BINS - 1)
    gaps = [
        abs(probabilities[bins == at].mean() - right[bins == at].mean()) * (bins == at).mean()
        for at in np.unique(bins)
    ]
    return float(sum(gaps))


def chance_error(probabilities: Floats) -> float:
    """Return the mean calibration error of draws with exactly these probabilities."""
    draws = np.random.default_rng(1).random((DRAWS, len(probabilities))) < probabilities
    return float(np.mean([calibration_error(probabilities, right) for right in draws]))


def fitted(datasets: Sequence[Sequence[Case]]) -> Weights:
    """Return the weights of evidence; each dataset, and the short conversations of each, count the same.

    Raises:
        ValueError: all or none of the cases are found.
    """
    groups = [
        some
        for cases in datasets
        for short in (0, 1)
        if (some := [one for one in cases if bool(one.short) == short])
    ]
    asked = [case for some in groups for case in some]
    right = np.array([float(case.found) for case in asked])
    counts = np.concatenate([np.full(len(some), len(asked) / len(groups) / len(some)) for some in groups])
    if not len(right) or right.min() == right.max():
        raise ValueError("has no questions that are answered beside others that are not")
    x = np.array([[*case.features, 1.0] for case in asked])
    *weights, intercept = newton(x, right, np.array([*[PENALTY] * (x.shape[1] - 1), 0.0]), counts)
    return Weights(*(round(float(weight), 3) for weight in (intercept, *weights)))


def newton(x: Floats, right: Floats, penalty: Floats, counts: Floats) -> Floats:
    """Return the logistic regression of `right` on the columns of `x`, each row counting so many times, with a penalty
    on the square of each weight: by Newton's method, in steps of at most 1."""
    weights = np.zeros(x.shape[1])
    for _ in range(200):
        chances = 1.0 / (1.0 + np.exp(-(x @ weights)))
        slope = x.T @ (counts * (chances - right)) + penalty * weights
        curve = (x * (counts * chances * (1.0 - chances))[:, None]).T @ x + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        weights -= step * min(1.0, 1.0 / max(float(np.abs(step).max()), 1e-9))
    return weights
