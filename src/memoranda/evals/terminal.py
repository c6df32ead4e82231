"""What a terminal shows of an evaluation: bars while it runs, a table and a few lines when it is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress as Bars
from rich.progress import TaskID
from rich.table import Table

from memoranda.evals import report
from memoranda.evals.abstention import Abstention
from memoranda.evals.answers import AnswerReport
from memoranda.evals.contexts import ContextReport
from memoranda.evals.dataset import Dataset
from memoranda.evals.facts import FactReport
from memoranda.evals.freshness import Freshness
from memoranda.evals.run import Progress, Run, Written

PLAIN_WIDTH = 200
"""Columns where output goes to a file, so that no table is folded."""


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """A bar per step on standard error; nothing where that is no terminal."""
    console = Console(stderr=True)
    with Bars(console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield advance


def show_freshness(found: Freshness) -> None:
    """Print recall in each state, and what share of the settled value it is."""
    table = Table(title=f"{found.dataset}, {found.model}", title_justify="left")
    for column in ("state", "questions", "recall@10", "settled", "share", "degraded"):
        table.add_column(column, justify="left" if column == "state" else "right")
    for name, questions, now, then, degraded in (
        ("right after a write", found.questions, found.fresh, found.settled, found.fresh_degraded),
        (
            "during an import",
            found.import_questions,
            found.importing,
            found.imported,
            found.importing_degraded,
        ),
    ):
        share = now / then if then else 1.0
        table.add_row(name, str(questions), f"{now:.3f}", f"{then:.3f}", f"{share:.3f}", f"{degraded:.2f}")
    console = Console()
    console.print(table)


def show_contexts(found: ContextReport) -> None:
    """Print the recall of contexts and of searches by category and budget."""
    table = Table(title=f"{found.dataset}, {found.model}", title_justify="left")
    budgets = list(found.categories[0].context)
    names = [f"{what}@{budget}" for budget in budgets for what in ("context", "search")]
    for column in ("category", "questions", *names, "recall@10"):
        table.add_column(column, justify="left" if column == "category" else "right")
    for one in found.categories:
        values = [value for budget in budgets for value in (one.context[budget], one.search[budget])]
        cells = [f"{value:.3f}" for value in (*values, one.recall_at_10)]
        table.add_row(f"{one.category} {one.title}".strip(), str(one.questions), *cells)
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)


def show_answers(found: AnswerReport) -> None:
    """Print how good the replies are, by category."""
    table = Table(
        title=f"{found.dataset}, {found.model}, answered by {found.answered_by}", title_justify="left"
    )
    for column in ("category", "questions", "match", "terms", "judged", "evidence none", "words"):
        table.add_column(column, justify="left" if column == "category" else "right")
    for one in found.categories:
        judged = "" if one.judged is None else f"{one.judged:.3f}"
        cells = (f"{one.match:.3f}", f"{one.terms:.3f}", judged, f"{one.none:.3f}", f"{one.words:.0f}")
        table.add_row(f"{one.category} {one.title}".strip(), str(one.questions), *cells)
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)


def show_facts(found: FactReport) -> None:
    """Print how good the facts are, by category, and those that are wrong."""
    table = Table(title=f"{found.dataset}, found by {found.found_by}", title_justify="left")
    for column in ("category", "expected", "extracted", "precision", "recall", "attribution", "current"):
        table.add_column(column, justify="left" if column == "category" else "right")
    for one in found.categories:
        shares = (one.precision, one.recall, one.attribution, one.current)
        cells = ["" if share is None else f"{share:.3f}" for share in shares]
        table.add_row(one.category, str(one.expected), str(one.extracted), *cells)
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)
    if found.confidence is not None:
        console.print(f"mean confidence {found.confidence:.3f}, expected calibration error {found.error:.3f}")
    for line in found.wrong:
        console.print(f"wrong: {line}", markup=False, highlight=False)


def show_abstention(found: Sequence[Abstention]) -> None:
    """Print how well the evidence of each dataset tells what is answered, a row for each kind of what is not."""
    table = Table(title=f"evidence, {found[0].model}", title_justify="left")
    for column in ("dataset", "answered", "found", "probability", "ECE", "unanswered", "", "AUC", "rejected"):
        table.add_column(column, justify="left" if column in ("dataset", "unanswered") else "right")
    for one in found:
        cells = [str(one.answered), *(f"{value:.3f}" for value in (one.found, one.probability, one.error))]
        for kind in one.kinds:
            table.add_row(
                one.dataset, *cells, kind.kind, str(kind.questions), f"{kind.auc:.3f}", f"{kind.rejected:.3f}"
            )
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)


def show(dataset: Dataset, held: Written, runs: Sequence[Run]) -> None:
    """Prints the table of all runs, and what is to be known beside it."""
    groups = {run.asking.label: report.by_category(dataset, run) for run in runs}
    columns = report.columns(groups[runs[-1].asking.label]["all"])
    table = Table(title=f"{dataset.name}, {held.model}", title_justify="left")
    for name in ("mode", "category"):
        table.add_column(name)
    for name in columns:
        table.add_column(name, justify="right")
    for mode, found in groups.items():
        for category, means in found.items():
            label = f"{category} {means['title']}" if "title" in means else category
            table.add_row(mode, label, *(report.cell(means.get(name)) for name in columns))
        table.add_section()
    console = Console(width=None if Console().is_terminal else PLAIN_WIDTH)
    console.print(table)
    for line in report.remarks(dataset, held, runs):
        console.print(line, highlight=False)
