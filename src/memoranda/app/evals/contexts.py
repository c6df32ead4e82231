"""Measures whether a context has what answers a question, by budget, beside a search in as many tokens."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from memoranda.app.evals import metrics
from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.run import Progress, Written
from memoranda.app.evals.written import written
from memoranda.app.memoranda import Memoranda
from memoranda.contexts.telling import listed, memory_text
from memoranda.text import tokens

BUDGETS = (500, 1_000, 2_000)
K = 10
DEPTH = 100
"""Search results from which as many are taken as fit."""


class ContextRecall(msgspec.Struct, kw_only=True):
    """The share of the memories that answer which are in the context, averaged over the questions of a category.

    `context` and `search` have a value for each budget: all of a context, and the best results of a search, one to a
    line, in as many tokens. `recall_at_10` is that of the first ten results.
    """

    category: str
    title: str
    questions: int
    context: dict[int, float]
    search: dict[int, float]
    recall_at_10: float


class ContextReport(msgspec.Struct, kw_only=True):
    """All categories of a dataset, first `all`. `as_of` says that the questions were asked about the end of the
    conversations."""

    dataset: str
    model: str
    as_of: bool
    categories: list[ContextRecall]


class _Answer(msgspec.Struct, frozen=True):
    question: Question
    context: dict[int, float]
    search: dict[int, float]
    ten: float


async def measure(
    dataset: Dataset,
    *,
    embedder: str | None,
    data: str,
    as_of: bool,
    budgets: Sequence[int] = BUDGETS,
    progress: Progress,
) -> ContextReport:
    """Ask for the context of every question at every budget."""
    moment = _end(dataset) if as_of else None
    async with written(dataset, embedder=embedder, data=data, progress=progress) as (product, stored):
        answers = []
        for number, question in enumerate(dataset.questions, 1):
            answers.append(await _asked(product, stored, question, moment, budgets))
            progress("asking", number, len(dataset.questions))
    overall = [
        answer for answer in answers if dataset.overall is None or answer.question.category in dataset.overall
    ]
    names = dict.fromkeys(answer.question.category for answer in answers)
    groups = {"all": overall} | {
        name: [answer for answer in answers if answer.question.category == name] for name in names
    }
    return ContextReport(
        dataset=dataset.name,
        model=stored.model,
        as_of=as_of,
        categories=[
            _mean(name, dataset.titles.get(name, ""), group, budgets)
            for name, group in groups.items()
            if group
        ],
    )


def _end(dataset: Dataset) -> datetime | None:
    dates = [memory.occurred_at for memory in dataset.memories.values() if memory.occurred_at is not None]
    return max(dates) + timedelta(seconds=1) if dates else None


async def _asked(
    product: Memoranda, stored: Written, question: Question, as_of: datetime | None, budgets: Sequence[int]
) -> _Answer:
    hits = (
        await product.memories.search(question.text, scopes=question.scopes, limit=DEPTH, as_of=as_of)
    ).results
    ranked = [key for hit in hits for key in stored.keys[hit.memory.id]]
    asked = tokens.count(question.text) + 1
    lines = [(hit.memory.id, tokens.count(listed([memory_text(hit.memory)], None)) + 1) for hit in hits]
    recalls, searched = {}, {}
    for budget in budgets:
        context = await product.context(question.text, scopes=question.scopes, budget=budget, as_of=as_of)
        ids = [
            id_ for piece in context.pieces if piece.citation and not piece.cut for id_ in piece.citation.ids
        ]
        recalls[budget] = _recall(ids, stored, question)
        searched[budget] = _recall(_fitting(lines, budget - asked), stored, question)
    return _Answer(question, recalls, searched, metrics.recall(ranked, question.grades, K))


def _fitting(lines: Iterable[tuple[str, int]], remaining: int) -> list[str]:
    """Return the first ids whose lines fit together."""
    ids = []
    for id_, spent in lines:
        remaining -= spent
        if remaining < 0:
            break
        ids.append(id_)
    return ids


def _recall(ids: Iterable[str], stored: Written, question: Question) -> float:
    keys = {key for id_ in ids for key in stored.keys.get(id_, [])}
    return len(keys & question.grades.keys()) / len(question.grades)


def _mean(name: str, title: str, answers: Sequence[_Answer], budgets: Sequence[int]) -> ContextRecall:
    return ContextRecall(
        category=name,
        title=title,
        questions=len(answers),
        context={at: round(statistics.fmean(answer.context[at] for answer in answers), 4) for at in budgets},
        search={at: round(statistics.fmean(answer.search[at] for answer in answers), 4) for at in budgets},
        recall_at_10=round(statistics.fmean(answer.ten for answer in answers), 4),
    )
