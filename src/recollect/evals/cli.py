"""`recollect eval`: the bundled set, LoCoMo-style files and BEIR folders, as tables or as one JSON object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from recollect.errors import InvalidInput
from recollect.evals import beir, locomo, report, synthetic
from recollect.evals.dataset import Dataset
from recollect.evals.run import Asking, Progress, Run, Written, ask, written
from recollect.evals.terminal import show, shown_progress

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


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
    str, typer.Option("--data", metavar="DIR", help="Keep the store here; a second run embeds nothing.")
]
DumpOption = Annotated[
    Path | None, typer.Option("--dump", metavar="FILE", help="Write one JSON line per question and mode.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")]


@app.callback(invoke_without_command=True)
def bundled(
    context: typer.Context,
    mode: ModeOption = Mode.HYBRID,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    depth: DepthOption = 10,
    dense_weight: WeightOption = None,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """Measure how well recall works on questions whose answers are known. Without a command: the bundled set."""
    if context.invoked_subcommand is None:
        synthetic_command(mode, embedder, limit, depth, dense_weight, data, dump, json)
        return
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            flag = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(
                f"goes behind the command: {context.invoked_subcommand} {flag}", param_hint=flag
            )


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
    _evaluate(locomo.read(file), asking, embedder, limit, data, dump, json)


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
    _evaluate(beir.read(folder, split), asking, embedder, limit, data, dump, json)


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
    if not dataset.questions:
        raise InvalidInput(dataset.name, "holds no question with a known answer")
    with shown_progress() as progress:
        held, runs = asyncio.run(_run(dataset, asking, embedder, data, progress))
    if dump is not None:
        _write_dump(dump, runs)
    if json:
        typer.echo(msgspec.json.encode(report.as_json(dataset, held, runs)).decode())
    else:
        show(dataset, held, runs)


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


def _write_dump(path: Path, runs: Sequence[Run]) -> None:
    try:
        with path.open("wb") as file:
            for run in runs:
                file.writelines(msgspec.json.encode(line) + b"\n" for line in report.dump(run))
    except OSError as exc:
        raise InvalidInput("--dump", f"{path} cannot be written: {exc.strerror}") from exc
