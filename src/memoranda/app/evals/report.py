"""Scores of answers: per category and overall, as one JSON object or as rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from memoranda.app.evals import metrics
from memoranda.app.evals.dataset import Dataset
from memoranda.app.evals.run import Answer, Run, Written

CUTS = (1, 3, 5, 10, 20, 50, 100)
"""The cut-offs of measures; those beyond the requested depth are left out."""

MEASURES: dict[str, Callable[[Answer, int], float]] = {
    "recall": lambda answer, k: metrics.recall(answer.ranked, answer.question.grades, k),
    "hit": lambda answer, k: metrics.hit(answer.ranked, answer.question.grades, k),
    "perfect": lambda answer, k: metrics.perfect(answer.ranked, answer.question.grades, k),
    "precision": lambda answer, k: metrics.precision(answer.ranked, answer.question.grades, k),
    "ndcg": lambda answer, k: metrics.ndcg(answer.ranked, answer.question.grades, k),
    "noise": lambda answer, k: metrics.noise(answer.ranked, answer.question.wrong, k),
}


def scores(answers: Sequence[Answer], depth: int) -> dict[str, float]:
    """Return the means over these answers, by name (`recall@10`), and `questions`, their number.

    `depth` is how many answers each question asked for: `mrr` looks that far. `noise@k` is present if any question has
    memories that were written to mislead. Empty without answers.
    """
    if not answers:
        return {}
    means: dict[str, float] = {"questions": len(answers)}
    noisy = any(answer.question.wrong for answer in answers)
    for k in (cut for cut in CUTS if cut <= depth):
        for name, measure in MEASURES.items():
            if name != "noise" or noisy:
                means[f"{name}@{k}"] = fmean(measure(answer, k) for answer in answers)
    means["mrr"] = fmean(metrics.reciprocal_rank(answer.ranked, answer.question.grades) for answer in answers)
    return means


def by_category(dataset: Dataset, run: Run) -> dict[str, dict[str, Any]]:
    """Return the scores of `all` and of each category. `all` are the dataset's overall categories."""
    groups: dict[str, list[Answer]] = {}
    for answer in run.answers:
        groups.setdefault(answer.question.category, []).append(answer)
    counted = [name for name in groups if dataset.overall is None or name in dataset.overall]
    everything = [answer for name in counted for answer in groups[name]]
    by_name: dict[str, dict[str, Any]] = {"all": scores(everything, run.asking.limit)}
    for name in sorted(groups):
        title = {"title": dataset.titles[name]} if name in dataset.titles else {}
        by_name[name] = title | scores(groups[name], run.asking.limit)
    return by_name


def as_json(dataset: Dataset, stored: Written, runs: Sequence[Run]) -> dict[str, Any]:
    """Return one object: the scores of the last run under `all` and each category, its settings under `run`, and with
    several runs the scores of each under `modes`, by the name of its configuration."""
    last = runs[-1]
    report: dict[str, Any] = _rounded(by_category(dataset, last))
    report["run"] = {
        "dataset": dataset.name,
        "embedder": stored.model,
        "mode": last.asking.mode,
        "depth": last.asking.limit,
        "memories": len(dataset.memories),
        "rows": len(stored.keys),
        "written_per_cpu_second": stored.per_cpu_second and round(stored.per_cpu_second, 1),
        "questions": len(last.answers),
        "unresolved": [
            {"question": item.question, "evidence": item.evidence, "left_out": item.left_out}
            for item in dataset.unresolved
        ],
        **_run_facts(last),
    }
    if len(runs) > 1:
        report["modes"] = {
            run.asking.label: _rounded(by_category(dataset, run)) | {"run": _run_facts(run)} for run in runs
        }
    return report


def _run_facts(run: Run) -> dict[str, Any]:
    return {
        "cpu_ms_p50": None if run.cpu_ms is None else round(run.cpu_ms, 3),
        "degraded": sum(bool(answer.degraded) for answer in run.answers),
    }


def _rounded(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {
        name: {key: round(value, 4) if isinstance(value, float) else value for key, value in group.items()}
        for name, group in groups.items()
    }


def dump(run: Run) -> Iterable[dict[str, Any]]:
    """Return one object per question: its text, the relevant keys, the results with their scores."""
    for answer in run.answers:
        question = answer.question
        yield {
            "mode": run.asking.label,
            "id": question.id,
            "question": question.text,
            "category": question.category,
            "evidence": sorted(question.grades),
            "wrong": sorted(question.wrong),
            "ranked": answer.ranked,
            "scores": answer.scores,
            "degraded": answer.degraded,
        }


SHOWN = (
    "questions",
    "recall@1",
    "recall@5",
    "recall@10",
    "hit@10",
    "perfect@10",
    "ndcg@10",
    "mrr",
    "noise@1",
    "noise@5",
)
"""The columns of the table, as far as they were measured; JSON has all."""


def columns(means: Mapping[str, Any]) -> list[str]:
    """Return which measures a table shows, given what was measured."""
    return [name for name in SHOWN if name in means]


def cell(value: Any) -> str:
    """Return a number as a table shows it: counts as they are, shares with three places."""
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def remarks(dataset: Dataset, stored: Written, runs: Sequence[Run]) -> Iterable[str]:
    """Yield remarks on the table, a line each."""
    rate = "all of them there before"
    if stored.per_cpu_second is not None:
        rate = f"{stored.per_cpu_second:.0f} a CPU-second, embedding included"
    yield f"{len(dataset.memories)} memories in {len(stored.keys)} rows; {rate}"
    for run in runs:
        if run.cpu_ms is not None:
            yield f"{run.asking.label}: {run.cpu_ms:.2f} ms of CPU per search (median, question embedded before)"
        degraded = sum(bool(answer.degraded) for answer in run.answers)
        if degraded:
            yield f"{run.asking.label}: {degraded} answers were degraded"
    if dataset.unresolved:
        left_out = sum(item.left_out for item in dataset.unresolved)
        yield (
            f"{len(dataset.unresolved)} questions name evidence that is not in the set;"
            f" {left_out} of them have no other and are left out"
        )
