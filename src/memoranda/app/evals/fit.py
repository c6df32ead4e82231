"""Fits the weights of scores on labelled questions, and tries them on conversations they were not fitted on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from memoranda.app.evals.abstention import newton
from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.fit_sets import bundled, excerpts, unanswered
from memoranda.app.evals.run import Answer, Progress, Written
from memoranda.app.memoranda import Memoranda
from memoranda.clock import now_micros
from memoranda.filters import all_of
from memoranda.store.access import scopes_filter, selection_filter
from memoranda.store.retrieval.fusion import Target
from memoranda.store.retrieval.questions import embed_questions
from memoranda.store.retrieval.reranking import How
from memoranda.store.retrieval.scoring import (
    FEATURES,
    PARTS,
    PRESETS,
    SIMILARITY,
    TOKENS,
    Weights,
    fewness,
    logistic,
    summands,
)
from memoranda.store.rows import fetch
from memoranda.store.store import Store
from memoranda.types import Query, Subject

Floats = NDArray[np.float64]
PENALTY, SLIGHT = 10.0, 2.0
"""The penalties on the squared length of the weights, with features scaled to a deviation of 1, when candidates are
ranked, and when sums become probabilities: few questions move them little."""
FIRST = 20
"""The first candidates of a question, of which the scores are made probabilities."""
ASIDE = 0.25
"""The weight of a question whose category is not among the dataset's overall ones."""
ROUNDS = 50


class Example(msgspec.Struct, frozen=True):
    """One question with its candidates (n): their keys, features (n, len(FEATURES)), and which of them are labelled as
    right. `searched` is how many texts there were to compare, None: many."""

    question: Question
    keys: list[list[str]]
    features: Floats
    right: Floats
    searched: int | None = None


class Part(msgspec.Struct, frozen=True):
    """Questions that the probabilities are fitted on, and how much all of them count together, beside 1 for those of
    the dataset itself. Nothing answers those of other categories than `overall`."""

    weight: float
    examples: list[Example]
    overall: frozenset[str] | None = None


def parts_of(dataset: Dataset, style: str) -> list[tuple[float, Dataset]]:
    """Return what weights of a style are fitted on, and how much each part counts: the dataset, the bundled ones,
    excerpts of all, and questions that nothing answers there."""
    parts = []
    for whole in (dataset, *(one for one in bundled(style) if one.name != dataset.name)):
        short = excerpts(whole)
        parts += [(1.0, whole), (0.5, short), (0.25, unanswered(short)), (0.25, unanswered(whole))]
    return [(weight, part) for weight, part in parts if part.questions]


async def examples(
    product: Memoranda, stored: Written, questions: Sequence[Question], style: str, progress: Progress
) -> list[Example]:
    """Return every question with its candidates."""
    core, subject = product.core, Subject()
    bare = Weights(style, 0.0, dict.fromkeys(FEATURES, 1.0))
    how = How(rerank=style, recency="off", styles=dict.fromkeys(PRESETS, bare))
    results: list[Example] = []
    for number, question in enumerate(questions, start=1):
        query = Query(query=question.text, scopes=question.scopes)
        where = all_of(scopes_filter(query.scopes, subject), selection_filter(query, subject, now_micros()))
        embedded, _ = await embed_questions(core.costs, core.embedder, [query.query], subject.tenant_id)
        assert embedded is not None
        targets = [Target(None, 1.0, where)]
        come = await core.threads.run(
            core.recall.find, subject.tenant_id, query, embedded[0], targets, 0.0, how
        )
        ranked = come.ranked.first(come.first)
        keys = await core.threads.run(_keys, core.store, ranked.seqs.tolist(), stored)
        right = np.array([float(any(key in question.grades for key in some)) for some in keys])
        columns = [PARTS.index(name) for name in FEATURES]
        results.append(Example(question, keys, ranked.added[:, columns], right, come.searched))
        progress("looking", number, len(questions))
    return results


def _keys(store: Store, seqs: list[int], stored: Written) -> list[list[str]]:
    """Return the dataset's keys of each of these rows."""
    rows = store.db.read(lambda c: fetch(c, Subject().tenant_id, seqs))
    return [stored.keys[rows[seq].id] if seq in rows else [] for seq in seqs]


def fitted(
    style: str, asked: Sequence[Example], overall: frozenset[str] | None, more: Sequence[Part] = ()
) -> Weights:
    """Return weights under which the right candidates are likely, each question being a choice among its candidates
    (conditional logit, McFadden 1974), with a penalty on their squares; scaled so that the sums are logits of the
    probability that a candidate answers, in these questions and in `more`.

    Raises:
        ValueError: no question has both a right and a wrong candidate.
    """
    used = [example for example in asked if 0 < example.right.sum() < len(example.right)]
    if not used:
        raise ValueError("no question has a right and a wrong candidate: there is nothing to learn from")
    everything = np.concatenate([example.features for example in used])
    deviations = everything.std(axis=0)
    scale = np.where(deviations > 1e-9, deviations, np.inf)
    counts = [overall is None or example.question.category in overall for example in used]
    shares = [
        (1.0 if counted else ASIDE) / example.right.sum() ** 0.25
        for example, counted in zip(used, counts, strict=True)
    ]
    order = _logit(
        [(example.features - everything.mean(axis=0)) / scale for example in used],
        [example.right for example in used],
        shares,
    )
    return _calibrated(style, [Part(1.0, list(asked), overall), *more], order / scale)


def _calibrated(style: str, parts: Sequence[Part], order: Floats) -> Weights:
    """Return the weights of a style that ranks by `order` (len(FEATURES),), as logits of probabilities."""
    columns, right, counts, features = [], [], [], []
    nearness = TOKENS if order[TOKENS] else SIMILARITY
    for part in parts:
        for example in part.examples:
            sums = example.features @ order
            first = np.argsort(-sums, kind="stable")[:FIRST]
            same = np.ones(len(first))
            behind = sums[first] - sums.max(initial=-np.inf)
            nearest = example.features[:, nearness].max(initial=0.0)
            few = fewness(example.searched)
            columns.append(np.column_stack([sums[first], behind, nearest * same, few * same]))
            answers = part.overall is None or example.question.category in part.overall
            right.append(example.right[first] * answers)
            counts.append(np.full(len(first), part.weight * len(parts[0].examples) / len(part.examples)))
            features.append(example.features[first])
    x, y, count = np.concatenate(columns), np.concatenate(right), np.concatenate(counts)
    means, deviations = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    scaled = np.column_stack([(x - means) / deviations, np.ones(len(x))])
    penalty = np.array([SLIGHT] * 4 + [0.0])
    *slopes, constant = newton(scaled, y, penalty, count)
    if min(slopes[2:]) < 0:  # where the nearest text is nearer, or there are fewer, none is less likely
        scaled[:, [at for at in (2, 3) if slopes[at] < 0]] = 0.0
        *slopes, constant = newton(scaled, y, penalty, count)
    slope, behind, level, few = np.array(slopes) / deviations
    if slope <= 0:
        raise ValueError("the candidates' features say nothing here: the labels do not go with these texts")
    typical = np.concatenate(features).mean(axis=0)
    return Weights(
        style,
        round(float(constant - means @ [slope, behind, level, few]), 3),
        {name: round(float(value), 3) for name, value in zip(FEATURES, slope * order, strict=True) if value},
        {name: round(float(value), 3) for name, value in zip(FEATURES, typical, strict=True) if value},
        round(float(few), 3),
        round(float(level), 3),
        round(float(behind / slope), 3),
    )


def _logit(features: Sequence[Floats], right: Sequence[Floats], shares: Sequence[float]) -> Floats:
    """Return the maximum of the penalised likelihood, by Newton's method with halved steps."""
    sizes = [len(labels) for labels in right]
    x, y = np.concatenate(features), np.concatenate(right)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    shared = np.repeat(shares, sizes)
    weight = np.add.reduceat(y, starts) * np.array(shares)
    weights = np.zeros(x.shape[1])

    def chances(at: Floats) -> tuple[Floats, float]:
        scores = x @ at
        top = np.maximum.reduceat(scores, starts)
        odds = np.exp(scores - np.repeat(top, sizes))
        total = np.add.reduceat(odds, starts)
        cost = (weight * (np.log(total) + top)).sum() - (shared * y * scores).sum() + PENALTY / 2 * at @ at
        return odds / np.repeat(total, sizes), float(cost)

    chance, cost = chances(weights)
    for _ in range(ROUNDS):
        pull = np.repeat(weight, sizes) * chance
        slope = x.T @ (pull - shared * y) + PENALTY * weights
        centres = np.add.reduceat(x * chance[:, None], starts, axis=0)
        curve = (x * pull[:, None]).T @ x - (centres * weight[:, None]).T @ centres
        step = np.linalg.solve(curve + PENALTY * np.eye(len(weights)), slope)
        size = 1.0
        while (tried := chances(weights - size * step))[1] > cost and size > 1e-6:
            size /= 2
        if cost - tried[1] < 1e-9 * abs(cost):
            break
        weights, (chance, cost) = weights - size * step, tried
    return weights


def ranked(example: Example, weights: Weights, limit: int) -> Answer:
    """Return the ranking of a question's candidates under these weights."""
    added = summands(example.features, [weights] * len(example.features), example.searched)
    scores = logistic(added.sum(axis=1))
    order = np.argsort(-scores, kind="stable")[:limit]
    keys = [(key, float(scores[i])) for i in order for key in example.keys[i]]
    return Answer(example.question, [key for key, _ in keys], [score for _, score in keys], [])


def left_out(
    style: str,
    asked: Sequence[Example],
    overall: frozenset[str] | None,
    limit: int,
    more: Sequence[Part] = (),
) -> list[Answer]:
    """Return every question answered with weights fitted on the other conversations, and on `more` of others.

    Raises:
        ValueError: there is only one conversation, or nothing to learn from in the others.
    """
    groups = sorted({example.question.group for example in asked})
    if len(groups) < 2:
        raise ValueError("has one conversation; weights are tried on others than they are fitted on")
    weights = {}
    for group in groups:
        own, *others = [
            replace(part, examples=[one for one in part.examples if one.question.group != group])
            for part in (Part(1.0, list(asked)), *more)
        ]
        weights[group] = fitted(style, own.examples, overall, [part for part in others if part.examples])
    return [ranked(example, weights[example.question.group], limit) for example in asked]


def as_file(weights: Weights) -> dict[str, dict[str, object]]:
    """Return the weights in the form of `search.rerank_weights`."""
    fields = {name: value for name, value in msgspec.structs.asdict(weights).items() if name != "name"}
    return {weights.name: fields}
