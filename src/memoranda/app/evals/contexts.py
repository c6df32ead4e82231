"""Measures whether a context has what answers a question, by budget, beside a search in as many tokens."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec
from msgspec.structs import replace

from memoranda.app.evals.dataset import Dataset, Question
from memoranda.app.evals.observed import Conversations, Derived, derive, derived_by, observed
from memoranda.app.evals.run import Progress, Written
from memoranda.app.evals.written import written
from memoranda.app.memoranda import Memoranda
from memoranda.contexts.result_text import listed, memory_text
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


class DerivedRecall(msgspec.Struct, kw_only=True):
    """The same categories with facts or summaries, `number` of them, made `by` a language model or `rules`."""

    derived: str
    number: int
    by: str
    categories: list[ContextRecall]


class ContextReport(msgspec.Struct, kw_only=True):
    """All categories of a dataset, first `all`. `as_of` says that the questions were asked about the end of the
    conversations. `derived` has the same with facts and with summaries, each in addition to those before it."""

    dataset: str
    model: str
    as_of: bool
    categories: list[ContextRecall]
    derived: list[DerivedRecall] = []


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
    derived: Sequence[Derived] = (),
    budgets: Sequence[int] = BUDGETS,
    progress: Progress,
) -> ContextReport:
    """Ask for the context of every question at every budget. With `derived`, observe the messages in memory, ask, and
    ask again after each: once facts, and once summaries, are made of them.

    Raises:
        InvalidInput: `derived` is given, and the memories of the dataset are no messages of sessions.
    """
    asking = _Asking(dataset, _end(dataset) if as_of else None, budgets, progress)
    if not derived:
        async with written(dataset, embedder=embedder, data=data, progress=progress) as (product, stored):
            return asking.report(stored.model, await asking.recalls(product, stored))
    async with observed(dataset, embedder=embedder, progress=progress) as (product, conversations):
        stored = conversations.written
        asking.dataset = _asked_in(dataset, conversations)
        report = asking.report(stored.model, await asking.recalls(product, stored))
        for what in derived:
            number = await derive(product, conversations, what, progress)
            categories = await asking.recalls(product, stored, f"asking with {what.value}")
            report.derived.append(
                DerivedRecall(
                    derived=what.value, number=number, by=derived_by(product, what), categories=categories
                )
            )
        return report


def _asked_in(dataset: Dataset, conversations: Conversations) -> Dataset:
    """Return the dataset with the scopes of the observed conversations in its questions."""
    questions = [
        replace(question, scopes=conversations.scopes[question.group]) for question in dataset.questions
    ]
    return replace(dataset, questions=questions)


class _Asking(msgspec.Struct):
    """The questions of a dataset, and how they are asked."""

    dataset: Dataset
    as_of: datetime | None
    budgets: Sequence[int]
    progress: Progress

    def report(self, model: str, categories: list[ContextRecall]) -> ContextReport:
        """Return the report of these categories."""
        return ContextReport(
            dataset=self.dataset.name, model=model, as_of=self.as_of is not None, categories=categories
        )

    async def recalls(self, product: Memoranda, stored: Written, step: str = "asking") -> list[ContextRecall]:
        """Ask every question; return the recall of each category, first `all`."""
        answers = []
        for number, question in enumerate(self.dataset.questions, 1):
            answers.append(await _asked(product, stored, question, self.as_of, self.budgets))
            self.progress(step, number, len(self.dataset.questions))
        counted, titles = self.dataset.overall, self.dataset.titles
        overall = [answer for answer in answers if counted is None or answer.question.category in counted]
        names = dict.fromkeys(answer.question.category for answer in answers)
        groups = {"all": overall} | {
            name: [answer for answer in answers if answer.question.category == name] for name in names
        }
        return [
            _mean(name, titles.get(name, ""), group, self.budgets) for name, group in groups.items() if group
        ]


def _end(dataset: Dataset) -> datetime | None:
    dates = [memory.occurred_at for memory in dataset.memories.values() if memory.occurred_at is not None]
    return max(dates) + timedelta(seconds=1) if dates else None


async def _asked(
    product: Memoranda, stored: Written, question: Question, as_of: datetime | None, budgets: Sequence[int]
) -> _Answer:
    hits = (
        await product.memories.search(question.text, scopes=question.scopes, limit=DEPTH, as_of=as_of)
    ).results
    asked = tokens.count(question.text) + 1
    lines = [(hit.memory.id, tokens.count(listed([memory_text(hit.memory)], None)) + 1) for hit in hits]
    recalls, searched = {}, {}
    for budget in budgets:
        context = await product.context(question.text, scopes=question.scopes, budget=budget, as_of=as_of)
        ids = [
            id_ for piece in context.pieces if piece.citation and not piece.cut for id_ in piece.citation.ids
        ]
        recalls[budget] = await recall(product, ids, stored, question)
        searched[budget] = await recall(product, _fitting(lines, budget - asked), stored, question)
    ten = await recall(product, [id_ for id_, _ in lines[:K]], stored, question)
    return _Answer(question, recalls, searched, ten)


def _fitting(lines: Iterable[tuple[str, int]], remaining: int) -> list[str]:
    """Return the first ids whose lines fit together."""
    ids = []
    for id_, spent in lines:
        remaining -= spent
        if remaining < 0:
            break
        ids.append(id_)
    return ids


async def recall(product: Memoranda, ids: Iterable[str], stored: Written, question: Question) -> float:
    """Return the share of the memories that answer which are among these, or which facts among these rest on. A
    summary rests on sessions: it has none of them."""
    keys: set[str] = set()
    for id_ in ids:
        if id_ not in stored.keys:
            refs = (await product.memories.get(id_)).source_refs
            stored.keys[id_] = [key for ref in refs for key in stored.keys.get(ref, [])]
        keys.update(stored.keys[id_])
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
