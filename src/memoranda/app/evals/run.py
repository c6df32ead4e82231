"""Runs a dataset through the product: writes its memories, asks its questions, records the results."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

from memoranda.app.evals.dataset import Dataset, Question
from memoranda.errors import InvalidInput
from memoranda.memories.memories import Memories
from memoranda.types import Hit, NewMemory

BATCH = 500
Progress = Callable[[str, int, int], None]
"""A callback: called with the step, how many are done, and of how many."""


class Asking(msgspec.Struct, frozen=True):
    """How to ask: `mode`, `limit`, `rerank`, `recency`, `times` and `enrich` as in `types.Query`; `dense_weight` in [0,
    1] overrides the fusion weights, keyword search gets the rest; None keeps the configured ones. `assisted` is False
    where the language model shall not help with a search. `name` is its label in a report, by default the mode."""

    mode: str = "hybrid"
    limit: int = 10
    dense_weight: float | None = None
    rerank: str | None = None
    recency: str | None = None
    times: bool | None = None
    enrich: bool | None = None
    assisted: bool = True
    name: str = ""

    @property
    def label(self) -> str:
        """The label in a report."""
        return self.name or self.mode


class Answer(msgspec.Struct, frozen=True):
    """The answer to one question: keys of the dataset with their scores, best first, at most `limit`."""

    question: Question
    ranked: list[str]
    scores: list[float]
    degraded: list[str]


class Run(msgspec.Struct, frozen=True):
    """All answers of one configuration. `cpu_ms` is the median CPU time of a search whose question is already
    embedded, all threads counted, in milliseconds; None if no search was timed."""

    asking: Asking
    answers: list[Answer]
    cpu_ms: float | None


class Written(msgspec.Struct, frozen=True):
    """The memories as stored: the dataset's keys by memory id (several if equal texts became one row).

    `per_cpu_second` counts memories embedded, stored and indexed; None if all were stored before.
    """

    keys: dict[str, list[str]]
    model: str
    created: int
    per_cpu_second: float | None


def unreported(step: str, done: int, total: int) -> None:
    """Report no progress."""


async def write(memories: Memories, dataset: Dataset, progress: Progress = unreported) -> Written:
    """Store the memories of a dataset, in their order."""
    keys: dict[str, list[str]] = {}
    created = 0
    began = time.process_time()
    for at, batch in _batches(list(dataset.memories.items())):
        for (key, _), added in zip(
            batch, await memories.add_many([memory for _, memory in batch]), strict=True
        ):
            keys.setdefault(added.memory.id, []).append(key)
            created += added.created
        progress("writing", at + len(batch), len(dataset.memories))
    spent = time.process_time() - began
    stats = await memories.stats()
    return Written(keys, stats["model"], created, created / spent if created else None)


def _batches(
    items: Sequence[tuple[str, NewMemory]],
) -> Iterator[tuple[int, Sequence[tuple[str, NewMemory]]]]:
    for at in range(0, len(items), BATCH):
        yield at, items[at : at + BATCH]


async def ask(
    memories: Memories, stored: Written, questions: Sequence[Question], asking: Asking, progress: Progress
) -> Run:
    """Ask every question twice: the second time its vector is cached, and the search is timed.

    Raises:
        InvalidInput: the store holds memories that are not of the dataset.
    """
    answers: list[Answer] = []
    spent: list[float] = []
    for number, question in enumerate(questions, start=1):
        await search_as(memories, question, asking)
        began = time.process_time()
        hits, degraded = await search_as(memories, question, asking)
        spent.append(time.process_time() - began)
        answers.append(_answer(question, hits, degraded, stored))
        progress(f"asking, {asking.label}", number, len(questions))
    return Run(asking, answers, 1_000 * statistics.median(spent) if spent else None)


async def search_as(memories: Memories, question: Question, asking: Asking) -> tuple[list[Hit], list[str]]:
    """Return the hits for a question, without a floor, and the degraded parts."""
    weights = None
    if asking.dense_weight is not None:
        weights = {"dense": asking.dense_weight, "words": 1.0 - asking.dense_weight}
    result = await memories.search(
        question.text,
        scopes=question.scopes,
        limit=asking.limit,
        mode=asking.mode,
        weights=weights,
        threshold=0.0,
        rerank=asking.rerank,
        recency=asking.recency,
        times=asking.times,
        enrich=asking.enrich,
        hyde=None if asking.assisted else False,
        model_rerank=None if asking.assisted else 0,
    )
    return result.results, result.degraded


def _answer(question: Question, hits: Sequence[Hit], degraded: list[str], stored: Written) -> Answer:
    ranked: list[str] = []
    scores: list[float] = []
    for hit in hits:
        if hit.memory.id not in stored.keys:
            raise InvalidInput(
                "data", "holds memories that are not of this dataset; use an empty folder, or one per dataset"
            )
        for key in stored.keys[hit.memory.id]:
            ranked.append(key)
            scores.append(hit.score)
    return Answer(question, ranked, scores, degraded)
