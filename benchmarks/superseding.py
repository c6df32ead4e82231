"""Fits when a newer memory ranks before an older one of the same author (`memoranda.store.retrieval.superseding`).

    python benchmarks/superseding.py locomo.json longmemeval.json [--embedder URL]

Pairs of the fitting half of `memoranda eval current`, of LoCoMo, and of LongMemEval, there a message per turn of the
user: the turn of an answering session that has most words of the answer. Each set counts the same. Weights for a
conversation are fitted on the others, in five parts; `current, fit` is always among them, so that its line is no test.
`as shipped` has the weights and the bound of the product, which are fitted on the default model.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.app.evals import current, locomo
from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.observed import embed_pending
from memoranda.app.evals.reading import read_json
from memoranda.app.evals.run import Written, write
from memoranda.app.evals.written import measured
from memoranda.app.memoranda import Memoranda
from memoranda.clock import now_micros
from memoranda.filters import all_of
from memoranda.providers.embeddings.base import QueryEmbedding
from memoranda.store.access import scopes_filter, selection_filter
from memoranda.store.retrieval import superseding
from memoranda.store.retrieval.fusion import Target
from memoranda.store.retrieval.rerank_features import read as read_candidates
from memoranda.store.retrieval.scoring import logits
from memoranda.text.stored import compact_json
from memoranda.text.terms import query_terms
from memoranda.types import NewMemory, Query, Subject

PARTS = 5
ROUNDS = 80
OTHERS = 45
"""Questions of LongMemEval on something else than what changed."""
SHORTEST = 20
EFFECTIVE = 500.0
"""The number of pairs that all sets together count as, beside a penalty of 1 on squared standardised weights."""
BOUNDS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9)
Floats = NDArray[np.float64]


class Example(msgspec.Struct):
    """A question: its set, its conversation, scores of its candidates without the fitted step, their pairs, and which
    answer it."""

    set: str
    group: str
    scores: Floats
    pairs: superseding.Pairs
    right: NDArray[np.bool_]


class Fitted(msgspec.Struct):
    """A logistic regression."""

    intercept: float
    weights: Floats

    def probabilities(self, features: Floats) -> Floats:
        """The probabilities (n,) of rows with these features (n, m)."""
        result: Floats = 1.0 / (1.0 + np.exp(-(features @ self.weights + self.intercept)))
        return result


def words(text: str) -> set[str]:
    """The terms of a text, and its words with digits as they are written."""
    numbers = {word.strip(".,$?!") for word in text.lower().split() if any(map(str.isdigit, word))}
    return set(query_terms(text)) | numbers


def turns_of(path: Path) -> tuple[Dataset, set[str]]:
    """LongMemEval with a message for each turn, its questions on what changed and some others; the ids of the first."""
    items = read_json(path, "LongMemEval")
    changed = [item for item in items if item["question_type"] == "knowledge-update"]
    others = [item for item in items if item["question_type"] != "knowledge-update"]
    random.Random(3).shuffle(others)
    memories: dict[str, NewMemory] = {}
    questions = []
    for item in [*changed, *others[:OTHERS]]:
        name, asked, answer = str(item["question_id"]), words(item["question"]), words(str(item["answer"]))
        said: dict[str, dict[str, NewMemory]] = {}
        for session in sorted(item["sessions"], key=lambda session: session["date"]):
            day, _, hour = session["date"].replace(")", "(").split("(")
            began = datetime.strptime(day + hour.strip(), "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
            turns = [turn for turn in session["text"].split("\n") if len(turn.strip()) > SHORTEST]
            said[session["id"]] = {
                f"{name}/{session['id']}/{place}": NewMemory(
                    content=turn,
                    kind="message",
                    role="user",
                    session_id=name,
                    occurred_at=began + timedelta(minutes=place),
                )
                for place, turn in enumerate(turns)
            }
        answering = [id_ for id_ in said if id_ in item["answer_session_ids"] and said[id_]]
        if item in changed:
            answering = answering[-1:]
        grades = {}
        for id_ in answering:
            of = {key: words(turn.content) for key, turn in said[id_].items()}
            grades[max(of, key=lambda key: 2 * len(answer & of[key]) + len(asked & of[key]))] = 1.0
        memories |= {key: turn for turns in said.values() for key, turn in turns.items()}
        if grades:
            questions.append(
                Question(
                    name,
                    item["question"],
                    item["question_type"],
                    grades,
                    scopes=[f"session:{name}"],
                    group=name,
                )
            )
    return Dataset("longmemeval", memories, questions), {str(item["question_id"]) for item in changed}


async def example_of(case: Case) -> Example:
    """Ask the product, and take its last step off the scores."""
    product, subject, set_, question, is_right = case
    core, tenant = product.core, subject.tenant_id
    asked = Query(query=question.text, scopes=question.scopes, limit=superseding.DEPTH)
    where = all_of(scopes_filter(asked.scopes, subject), selection_filter(asked, subject, now_micros()))
    vector = (await core.embedder.embed([asked.query], "query")).vectors[0]
    how, targets = core.recall.settings.how, [Target(None, 1.0, where)]
    found = await core.threads.run(core.recall.find, tenant, asked, QueryEmbedding(vector), targets, 0.0, how)
    scores = found.ranked.scores[found.places]
    if "newer" in found.stage.factors:
        scores = scores / found.ranked.factors[found.places, found.stage.factors.index("newer")]
    order = np.argsort(-scores, kind="stable")
    rows, scores = [found.rows[i] for i in order], logits(scores[order]) / superseding.UNIT
    seqs = [row.seq for row in rows]
    db, key = core.store.db, [tenant, core.store.space, compact_json(seqs)]
    candidates = db.read(lambda c: read_candidates(c, tenant, seqs), tenant)
    stored = db.read(lambda c: c.all("part_vectors", key), tenant)
    vectors = {seq: np.frombuffer(blob, dtype="<f4") for seq, blob in stored}
    pairs = superseding.pairs(
        asked.query, vector, [candidates.get(seq) for seq in seqs], vectors, scores, core.recall.calibration
    )
    right = np.array([is_right(row.id, row.content) for row in rows], np.bool_)
    return Example(set_, question.group, scores, pairs, right)


Case = tuple[Memoranda, Subject, str, Question, Callable[[str, str], bool]]
"""A product with a conversation, the tenant, the name of the set, a question, and a function that returns True for the
id and the text of a memory that answers it."""


async def cases(locomo_file: Path, longmemeval_file: Path, embedder: dict[str, str]) -> AsyncIterator[Case]:
    """The questions of all sets, each while the product of its set is open."""
    config = measured(":memory:", jobs={"workers": 0}, embedder=embedder)
    changing, changed = turns_of(longmemeval_file)
    talks = locomo.read(locomo_file)
    talks.questions[:] = [question for question in talks.questions if question.category in locomo.OVERALL]
    for dataset in (changing, talks):
        async with await Memoranda.open(config=config) as product:
            stored = await write(product.memories, dataset)
            for question in dataset.questions:
                set_ = "updates" if question.id in changed else dataset.name
                yield product, product.subject, set_, question, partial(_graded, stored, question)
    async with await Memoranda.open(config=config) as product:
        for case in current.read():
            subject = msgspec.structs.replace(product.subject, tenant_id=case.name)
            await product.as_subject(subject).sessions.observe(case.messages, channel_id=current.CHANNEL)
            await embed_pending(product.core, case.name)
            scopes = [f"channel:{current.CHANNEL}"]
            for asked in case.questions:
                question = Question(asked.ask, asked.ask, "", {}, scopes=scopes, group=case.name)
                yield product, subject, f"current, {case.name}", question, partial(_says, asked.now)


def _graded(stored: Written, question: Question, id_: str, _: str) -> bool:
    return any(key in question.grades for key in stored.keys.get(id_, ()))


def _says(words_of_answer: str, _: str, text: str) -> bool:
    return words_of_answer.casefold() in text.casefold()


def logistic(x: Floats, y: Floats, weight: Floats, penalty: Floats) -> Fitted:
    """The logistic regression of labels y (n,) on features x (n, m), standardised, by Newton's method; `penalty`
    (1 + m,) is that on the squared intercept and weights."""
    means, deviations = x.mean(axis=0), np.maximum(x.std(axis=0), 1e-9)
    columns = np.column_stack([np.ones(len(x)), (x - means) / deviations])
    solved = np.zeros(columns.shape[1])
    for _ in range(ROUNDS):
        chance = 1.0 / (1.0 + np.exp(-columns @ solved))
        slope = columns.T @ (weight * (chance - y)) + penalty * solved
        curve = (columns * (weight * chance * (1 - chance))[:, None]).T @ columns + np.eye(len(solved))
        solved = solved - np.linalg.solve(curve, slope)
    weights = solved[1:] / deviations
    return Fitted(float(solved[0] - weights @ means), weights)


def fitted(asked: Sequence[Example]) -> Fitted:
    """Weights under which the one of each pair that answers is likely; each set counts the same."""
    sets: dict[str, list[Floats]] = {}
    for example in asked:
        old, new = example.right[example.pairs.older], example.right[example.pairs.newer]
        differ = old != new
        sets.setdefault(example.set, []).append(
            np.column_stack([example.pairs.features[differ], new[differ]])
        )
    by_set = [np.concatenate(parts) for parts in sets.values()]
    rows = np.concatenate(by_set)
    weight = np.concatenate([np.full(len(part), EFFECTIVE / len(by_set) / len(part)) for part in by_set])
    return logistic(rows[:, :-1], rows[:, -1], weight, np.ones(rows.shape[1]))


async def examples(locomo_file: Path, longmemeval_file: Path, embedder: dict[str, str]) -> list[Example]:
    """All cases as examples."""
    return [await example_of(case) async for case in cases(locomo_file, longmemeval_file, embedder)]


def ranked(one: Example, fit: Fitted | None, bound: float) -> NDArray[np.bool_]:
    """Which candidates answer, in their order with these weights."""
    scores = one.scores.copy()
    if fit is not None:
        probability = fit.probabilities(one.pairs.features)
        sure = probability >= bound
        above = one.scores[one.pairs.older[sure]] + 1e-3 * probability[sure]
        np.maximum.at(scores, one.pairs.newer[sure], above)
    return one.right[np.argsort(-scores, kind="stable")]


def line(rankings: Sequence[NDArray[np.bool_]]) -> str:
    """The share with an answer first, its mean reciprocal rank, and the recall at 5 and 10."""
    first = [1.0 / (1 + int(np.argmax(right))) if right.any() else 0.0 for right in rankings]
    at = [[right[:k].sum() / max(1, right.sum()) for right in rankings] for k in (5, 10)]
    values: list[Any] = [np.mean(np.array(first) == 1.0), np.mean(first), *(np.mean(one) for one in at)]
    return " ".join(f"{value:.3f}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("locomo", type=Path)
    parser.add_argument("longmemeval", type=Path)
    parser.add_argument("--embedder", metavar="URL")
    given = parser.parse_args()
    embedder = {"url": given.embedder} if given.embedder else {}
    asked = asyncio.run(examples(given.locomo, given.longmemeval, embedder))
    shipped = Fitted(superseding.INTERCEPT, np.array(superseding.WEIGHTS))
    learnt = [one for one in asked if one.set != "current, report"]
    groups = {name: i for i, name in enumerate(sorted({one.group for one in learnt}))}
    parts = [
        fitted([one for one in learnt if one.set.startswith("current") or groups[one.group] % PARTS != part])
        for part in range(PARTS)
    ]
    whole = fitted(learnt)
    print(f"INTERCEPT = {whole.intercept:.3f}")
    print("WEIGHTS", dict(zip(superseding.FEATURES, whole.weights.round(3).tolist(), strict=True)))
    print("first, MRR, recall@5, recall@10")
    for name in dict.fromkeys(one.set for one in asked):
        own = [one for one in asked if one.set == name]
        print(f"{name:16} {len(own):4}  without {line([ranked(one, None, 1.0) for one in own])}")
        with_shipped = [ranked(one, shipped, superseding.PROBABLE) for one in own]
        print(f"{'':22} as shipped {line(with_shipped)}")
        for bound in BOUNDS:
            fits = [
                whole
                if one.group not in groups or name.startswith("current")
                else parts[groups[one.group] % PARTS]
                for one in own
            ]
            print(
                f"{'':22} {bound:7} {line([ranked(one, fit, bound) for one, fit in zip(own, fits, strict=True)])}"
            )


if __name__ == "__main__":
    main()
