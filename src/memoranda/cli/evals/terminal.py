"""Terminal output of an evaluation: progress bars, then a table and a few lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import TaskID
from rich.table import Table

from memoranda.app.evals import report
from memoranda.app.evals.abstention import Abstention
from memoranda.app.evals.answers import AnswerReport
from memoranda.app.evals.chunking import ChunkingReport
from memoranda.app.evals.contexts import ContextRecall, ContextReport
from memoranda.app.evals.current import CurrentReport
from memoranda.app.evals.dataset import Dataset
from memoranda.app.evals.facts import FactReport
from memoranda.app.evals.freshness import Freshness
from memoranda.app.evals.languages import LanguageReport
from memoranda.app.evals.run import Progress, Run, Written
from memoranda.cli.progress import Lines

PLAIN_WIDTH = 200
"""The width of output to a file, so that no table is folded."""


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Yield what shows progress on standard error: a bar per step on a terminal, else a line every ten seconds."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines().show
        return
    with Bars(console=console, transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield advance


def show_freshness(result: Freshness) -> None:
    """Print recall in each state, and its share of the settled value."""
    table = Table(title=f"{result.dataset}, {result.model}", title_justify="left")
    for column in ("state", "questions", "recall@10", "settled", "share", "degraded"):
        table.add_column(column, justify="left" if column == "state" else "right")
    for name, questions, now, then, degraded in (
        ("right after a write", result.questions, result.fresh, result.settled, result.fresh_degraded),
        (
            "during an import",
            result.import_questions,
            result.importing,
            result.imported,
            result.importing_degraded,
        ),
    ):
        share = now / then if then else 1.0
        table.add_row(name, str(questions), f"{now:.3f}", f"{then:.3f}", f"{share:.3f}", f"{degraded:.2f}")
    console = Console()
    console.print(table)


def show_contexts(result: ContextReport) -> None:
    """Print the recall of contexts and of searches by category and budget; below each category the same with facts and
    with summaries."""
    table = Table(title=f"{result.dataset}, {result.model}", title_justify="left")
    budgets = list(result.categories[0].context)
    names = [f"{what}@{budget}" for budget in budgets for what in ("context", "search")]
    for column in ("category", "questions", *names, "recall@10"):
        table.add_column(column, justify="left" if column == "category" else "right")
    for place, category in enumerate(result.categories):
        table.add_row(f"{category.category} {category.title}".strip(), *_recalls(category))
        for added in result.derived:
            table.add_row(f"  with {added.derived}", *_recalls(added.categories[place]))
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)
    for added in result.derived:
        console.print(f"{added.number} {added.derived} by {added.by}", highlight=False)


def _recalls(category: ContextRecall) -> list[str]:
    values = [
        value for at, in_context in category.context.items() for value in (in_context, category.search[at])
    ]
    return [str(category.questions), *(f"{value:.3f}" for value in (*values, category.recall_at_10))]


def show_answers(result: AnswerReport) -> None:
    """Print the quality of the replies, by category."""
    table = Table(
        title=f"{result.dataset}, {result.model}, answered by {result.answered_by}", title_justify="left"
    )
    for column in ("category", "questions", "match", "terms", "judged", "evidence none", "words"):
        table.add_column(column, justify="left" if column == "category" else "right")
    for category in result.categories:
        judged = "" if category.judged is None else f"{category.judged:.3f}"
        cells = (
            f"{category.match:.3f}",
            f"{category.terms:.3f}",
            judged,
            f"{category.none:.3f}",
            f"{category.words:.0f}",
        )
        table.add_row(f"{category.category} {category.title}".strip(), str(category.questions), *cells)
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)


def show_facts(result: FactReport) -> None:
    """Print the quality of the facts, by category, and the wrong ones."""
    table = Table(title=f"{result.dataset}, found by {result.found_by}", title_justify="left")
    for column in ("category", "expected", "extracted", "precision", "recall", "attribution", "current"):
        table.add_column(column, justify="left" if column == "category" else "right")
    for category in result.categories:
        shares = (category.precision, category.recall, category.attribution, category.current)
        cells = ["" if share is None else f"{share:.3f}" for share in shares]
        table.add_row(category.category, str(category.expected), str(category.extracted), *cells)
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)
    if result.confidence is not None:
        console.print(
            f"mean confidence {result.confidence:.3f}, expected calibration error {result.error:.3f}"
        )
    for line in result.wrong:
        console.print(f"wrong: {line}", markup=False, highlight=False)


def show_current(result: CurrentReport) -> None:
    """Print how current the contexts of each conversation are, and the questions on which they are not."""
    title = f"{result.dataset}, {result.model}, contexts of {result.budget} tokens"
    table = Table(title=title, title_justify="left")
    for column in ("case", "questions", "current", "first", "search@1", "tokens", "facts", "stale"):
        table.add_column(column, justify="left" if column == "case" else "right")
    for case in result.cases:
        shares = [f"{share:.3f}" for share in (case.current, case.first, case.search_first)]
        counts = [f"{case.tokens:.0f}", str(case.facts), str(case.stale)]
        table.add_row(case.case, str(case.questions), *shares, *counts)
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)
    for case in result.cases:
        for line in case.wrong:
            console.print(f"{case.case}, {line}", markup=False, highlight=False)


def show_languages(result: LanguageReport) -> None:
    """Print how a search does in each language, and in each half of them."""
    table = Table(title=f"{result.dataset}, {result.model}", title_justify="left")
    columns = ("half", "questions", "R@1", "R@5", "strong", "score", "never said", "strong", "score")
    for column in ("language", *columns):
        table.add_column(column, justify="left" if column in ("language", "half") else "right")
    for rows in (result.languages, result.halves):
        for row in rows:
            recalls = (f"{row.recall_at_1:.3f}", f"{row.recall_at_5:.3f}")
            said = (str(row.questions), *recalls, str(row.strong), f"{row.score:.3f}")
            never = (str(row.never), str(row.never_strong), f"{row.never_score:.3f}")
            table.add_row(row.language, "fit" if row.fit else "held out", *said, *never)
        table.add_section()
    Console(width=None if Console().is_terminal else PLAIN_WIDTH).print(table)


def show_chunking(result: ChunkingReport) -> None:
    """Print for each way to split how much of the gold text is found, a row for each half."""
    title = f"{result.dataset}, {result.model}, gold text in the first characters of the results"
    table = Table(title=title, title_justify="left")
    at = str(result.characters)
    recalls = [f"recall@{limit}" for limit in result.ways[0].halves[0].recall]
    shares = (*recalls, f"whole@{at}", f"precision@{at}", f"passages@{at}")
    for column in ("split", "chunks", "bytes/chunk", "half", "questions", *shares):
        table.add_column(column, justify="left" if column in ("split", "half") else "right")
    for way in result.ways:
        split = f"{way.strategy} {way.size}/{way.overlap}{' header' if way.header else ''}"
        for half in way.halves:
            values = [*half.recall.values(), half.whole[at], half.precision[at]]
            cells = [*(f"{value:.3f}" for value in values), f"{half.passages[at]:.1f}"]
            counts = (str(way.chunks), str(way.bytes_per_chunk), half.half, str(half.questions))
            table.add_row(split, *counts, *cells)
        table.add_section()
    Console(width=None if Console().is_terminal else PLAIN_WIDTH).print(table)


def show_abstention(results: Sequence[Abstention]) -> None:
    """Print how well the evidence of each dataset separates answered questions, a row for each kind of unanswered
    ones."""
    table = Table(title=f"evidence, {results[0].model}", title_justify="left")
    left = ("dataset", "unanswered")
    columns = ("answered", "found", "probability", "ECE", "by chance", "unanswered", "", "AUC", "rejected")
    for column in ("dataset", *columns):
        table.add_column(column, justify="left" if column in left else "right")
    for dataset in results:
        cells = [
            str(dataset.answered),
            *(
                f"{value:.3f}"
                for value in (dataset.found, dataset.probability, dataset.error, dataset.chance)
            ),
        ]
        for kind in dataset.kinds:
            table.add_row(
                dataset.dataset,
                *cells,
                kind.kind,
                str(kind.questions),
                f"{kind.auc:.3f}",
                f"{kind.rejected:.3f}",
            )
    short = Table(title="in short conversations, half of which answer", title_justify="left")
    for column in ("dataset", "memories", "questions", "ECE", "by chance", "missed", "refused", "wrong"):
        short.add_column(column, justify="left" if column == "dataset" else "right")
    for dataset in results:
        for row in dataset.short:
            measures = (row.error, row.chance, row.missed, row.refused, row.wrong)
            short.add_row(
                dataset.dataset,
                str(row.memories),
                str(row.questions),
                *(f"{value:.3f}" for value in measures),
            )
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)
    console.print(short)


def show(dataset: Dataset, stored: Written, runs: Sequence[Run]) -> None:
    """Print the table of all runs, and the remarks."""
    groups = {run.asking.label: report.by_category(dataset, run) for run in runs}
    columns = report.columns(groups[runs[-1].asking.label]["all"])
    table = Table(title=f"{dataset.name}, {stored.model}", title_justify="left")
    for name in ("mode", "category"):
        table.add_column(name)
    for name in columns:
        table.add_column(name, justify="right")
    for mode, categories in groups.items():
        for category, means in categories.items():
            label = f"{category} {means['title']}" if "title" in means else category
            table.add_row(mode, label, *(report.cell(means.get(name)) for name in columns))
        table.add_section()
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)
    for line in report.remarks(dataset, stored, runs):
        console.print(line, highlight=False)
