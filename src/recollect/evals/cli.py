"""`recollect eval`: the bundled set, LoCoMo-style files and BEIR folders, as tables or as one JSON object."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from recollect.errors import InvalidInput, RecollectError
from recollect.evals import beir, locomo, report, synthetic
from recollect.evals.dataset import Dataset
from recollect.evals.run import Asking, Progress, Run, Written, ask, written

app = typer.Typer(help="Measure how well recall works on questions whose answers are known.")


class Mode(StrEnum):
    """How to search; `all` runs the three one after the other."""

    HYBRID = "hybrid"
    DENSE = "dense"
    WORDS = "words"
    ALL = "all"


ModeOption = Annotated[Mode, typer.Option("--mode", help="How to search; `all` compares the three.")]
EmbedderOption = Annotated[
    str | None, typer.Option("--embedder", metavar="URL", help="The model, instead of the configured one.")
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", min=1, help="Ask only the first so many questions.")
]
DepthOption = Annotated[int, typer.Option("--depth", min=1, max=100, help="Answers per question.")]
WeightOption = Annotated[
    float | None,
    typer.Option("--dense-weight", min=0, max=1, help="Weight of meaning against words, when fused."),
]
DataOption = Annotated[
    str, typer.Option("--data", metavar="FOLDER", help="Keep the store here; a second run embeds nothing.")
]
DumpOption = Annotated[
    Path | None, typer.Option("--dump", metavar="FILE", help="Write one JSON line per question and mode.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@app.command("synthetic")
def synthetic_command(
    mode: ModeOption = Mode.HYBRID,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    depth: DepthOption = 10,
    dense_weight: WeightOption = None,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """The bundled set: memories with near misses written beside them (look at k=1 and at noise)."""
    asking = Asking(mode.value, depth, dense_weight)
    _evaluate(synthetic.read(), asking, embedder, limit, data, dump, json)


@app.command("locomo")
def locomo_command(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-style JSON file.")],
    mode: ModeOption = Mode.HYBRID,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    depth: DepthOption = 10,
    dense_weight: WeightOption = None,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """Long conversations: find the turns that answer a question. `all` is categories 1 to 4."""
    asking = Asking(mode.value, depth, dense_weight)
    with _said():
        dataset = locomo.read(file)
    _evaluate(dataset, asking, embedder, limit, data, dump, json)


@app.command("beir")
def beir_command(
    folder: Annotated[Path, typer.Argument(help="A folder with corpus.jsonl, queries.jsonl and qrels.")],
    split: Annotated[str, typer.Option("--split", help="Which judgements: qrels/SPLIT.tsv.")] = "test",
    mode: ModeOption = Mode.HYBRID,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    depth: DepthOption = 10,
    dense_weight: WeightOption = None,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """Documents: a folder in the form of the BEIR benchmark."""
    asking = Asking(mode.value, depth, dense_weight)
    with _said():
        dataset = beir.read(folder, split)
    _evaluate(dataset, asking, embedder, limit, data, dump, json)


def _evaluate(
    dataset: Dataset,
    asking: Asking,
    embedder: str | None,
    limit: int | None,
    data: str,
    dump: Path | None,
    json: bool,
) -> None:
    if limit is not None:
        dataset = replace(dataset, questions=dataset.questions[:limit])
    with _said():
        if not dataset.questions:
            raise InvalidInput(dataset.name, "holds no question with a known answer")
        with _progress() as progress:
            held, runs = asyncio.run(_run(dataset, asking, embedder, data, progress))
        if dump is not None:
            _write_dump(dump, runs)
    if json:
        typer.echo(msgspec.json.encode(report.as_json(dataset, held, runs)).decode())
    else:
        _show(dataset, held, runs)


async def _run(
    dataset: Dataset, asking: Asking, embedder: str | None, data: str, progress: Progress
) -> tuple[Written, list[Run]]:
    modes = ["words", "dense", "hybrid"] if asking.mode == "all" else [asking.mode]
    async with written(dataset, embedder=embedder, data=data, progress=progress) as (memories, held):
        runs = [
            await ask(memories, held, dataset.questions, replace(asking, mode=mode), progress)
            for mode in modes
        ]
    return held, runs


@contextmanager
def _said() -> Iterator[None]:
    """What Recollect refuses is one line on standard error, and exit code 2."""
    try:
        yield
    except RecollectError as exc:
        typer.echo(f"recollect eval: {exc}", err=True)
        raise typer.Exit(2) from exc


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar per step on standard error; nothing where that is no terminal."""
    from rich.console import Console
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    console = Console(stderr=True)
    with Bars(console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        yield advance


def _write_dump(path: Path, runs: Sequence[Run]) -> None:
    try:
        with path.open("wb") as file:
            for run in runs:
                file.writelines(msgspec.json.encode(line) + b"\n" for line in report.dump(run))
    except OSError as exc:
        raise InvalidInput("--dump", f"{path} cannot be written: {exc.strerror}") from exc


def _show(dataset: Dataset, held: Written, runs: Sequence[Run]) -> None:
    from rich.console import Console
    from rich.table import Table

    groups = {run.asking.mode: report.by_category(dataset, run) for run in runs}
    columns = report.columns(groups[runs[-1].asking.mode]["all"])
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
    console = Console(width=None if Console().is_terminal else 200)
    console.print(table)
    for line in report.remarks(dataset, held, runs):
        console.print(line, highlight=False)
