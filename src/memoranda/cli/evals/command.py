"""`memoranda eval`: the bundled set, LoCoMo-style files and BEIR folders, as tables or as one JSON object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from msgspec.structs import replace

from memoranda.app.evals import ablate as ablation
from memoranda.app.evals import assistant, beir, fit, locomo, report, synthetic
from memoranda.app.evals.dataset import Dataset
from memoranda.app.evals.run import Asking, Progress, Run, Written, ask
from memoranda.app.evals.written import written
from memoranda.cli.evals import measures
from memoranda.cli.evals.options import (
    DataOption,
    DepthOption,
    DumpOption,
    EmbedderOption,
    JsonOption,
    LimitOption,
    Mode,
    SearchOptions,
    Style,
    limited,
    search_options,
)
from memoranda.cli.evals.own import own
from memoranda.cli.evals.terminal import show, shown_progress
from memoranda.errors import InvalidInput
from memoranda.store.retrieval.scoring import RERANKS, Weights

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("freshness")(measures.freshness_command)
app.command("abstention")(measures.abstention_command)
app.command("answers")(measures.answers_command)
app.command("contexts")(measures.contexts_command)
app.command("facts")(measures.facts_command)
app.command("current")(measures.current_command)
app.command("languages")(measures.languages_command)
app.command("chunking")(measures.chunking_command)
app.command("own")(own)


@app.callback(invoke_without_command=True)
@search_options
def bundled(options: SearchOptions, context: typer.Context) -> None:
    """Measure how well recall works on questions whose answers are known. Without a command: the bundled set."""
    if context.invoked_subcommand is None:
        _evaluate(synthetic.read(), options)
        return
    for name in context.params:
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            flag = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(
                f"goes behind the command: {context.invoked_subcommand} {flag}", param_hint=flag
            )


@app.command("synthetic")
@search_options
def synthetic_command(options: SearchOptions) -> None:
    """The bundled set: memories with near misses written beside them (look at k=1 and at noise)."""
    _evaluate(synthetic.read(), options)


@app.command("assistant")
@search_options
def assistant_command(options: SearchOptions) -> None:
    """The bundled set: memories with near misses written beside them (look at k=1 and at noise)."""
    _evaluate(assistant.read(), options)


@app.command("locomo")
@search_options
def locomo_command(
    options: SearchOptions,
    file: Annotated[Path, typer.Argument(help="A LoCoMo-style JSON file.")],
) -> None:
    """Long conversations: find the turns that answer a question. `all` is categories 1 to 4."""
    _evaluate(locomo.read(file), options)


@app.command("beir")
@search_options
def beir_command(
    options: SearchOptions,
    folder: Annotated[Path, typer.Argument(help="A folder with corpus.jsonl, queries.jsonl and qrels.")],
    split: Annotated[str, typer.Option("--split", help="Which judgements: qrels/SPLIT.tsv.")] = "test",
) -> None:
    """Documents: a folder in the form of the BEIR benchmark."""
    _evaluate(beir.read(folder, split), options)


@app.command("fit")
def fit_command(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-style JSON file of several conversations.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Write the weights, for `search.rerank_weights`."),
    ] = None,
    style: Annotated[
        Style, typer.Option("--style", help="Which style of conversation the weights are for.")
    ] = Style.PEOPLE,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    depth: DepthOption = 10,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """Fit the weights of scores on labelled questions. The table shows how they do on conversations they were
    not fitted on, one left out after the other; what `--out` gets is fitted on all."""
    dataset = limited(locomo.read(file), limit)
    with shown_progress() as progress:
        stored, runs, weights = asyncio.run(_fit(dataset, style.value, depth, embedder, data, progress))
    if out is not None:
        _write(out, "--out", [fit.as_file(weights)])
    if dump is not None:
        _write(dump, "--dump", [line for run in runs for line in report.dump(run)])
    if json:
        output = report.as_json(dataset, stored, runs) | {"weights": fit.as_file(weights)}
        typer.echo(msgspec.json.encode(output).decode())
    else:
        show(dataset, stored, runs)
        typer.echo(msgspec.json.encode(fit.as_file(weights)).decode())


async def _fit(
    dataset: Dataset, style: str, depth: int, embedder: str | None, data: str, progress: Progress
) -> tuple[Written, list[Run], Weights]:
    parts = fit.parts_of(dataset, style)
    memories = {key: memory for _, part in parts for key, memory in part.memories.items()}
    everything = replace(dataset, memories=memories)
    async with written(everything, embedder=embedder, data=data, progress=progress) as (product, stored):
        first, *others = [
            fit.Part(
                weight,
                await fit.examples(product, stored, part.questions, style, progress),
                part.overall,
            )
            for weight, part in parts
        ]
    try:
        answers = fit.left_out(style, first.examples, dataset.overall, depth, others)
        weights = fit.fitted(style, first.examples, dataset.overall, others)
    except ValueError as exc:
        raise InvalidInput(dataset.name, str(exc)) from exc
    base = Weights("similarity", 0.0, {"similarity": 1.0})
    similar = [fit.ranked(example, base, depth) for example in first.examples]
    runs = [
        Run(Asking(limit=depth, name="similarity alone"), similar, None),
        Run(Asking(limit=depth, name="left out"), answers, None),
    ]
    return stored, runs, weights


def _ways(options: SearchOptions) -> list[Asking]:
    """Return the configurations that the options select."""
    if options.rerank is not None and options.rerank not in RERANKS:
        raise InvalidInput("--rerank", f"must be one of {', '.join(RERANKS)}")
    if options.recency not in (None, "off", "decay", "boost"):
        raise InvalidInput("--recency", "must be one of off, decay, boost")
    asking = Asking(
        options.mode.value, options.depth, options.dense_weight, options.rerank, options.recency, options.times,
        options.enrich,
    )  # fmt: skip
    if options.ablate:
        return list(ablation.switched(asking))
    modes = ["keyword", "dense", "hybrid"] if options.mode is Mode.ALL else [options.mode.value]
    return [replace(asking, mode=mode) for mode in modes]


def _evaluate(dataset: Dataset, options: SearchOptions) -> None:
    ways = _ways(options)
    dataset = limited(dataset, options.limit)
    with shown_progress() as progress:
        stored, runs = asyncio.run(_run(dataset, ways, options.embedder, options.data, progress))
    if options.dump is not None:
        _write(options.dump, "--dump", [line for run in runs for line in report.dump(run)])
    if options.json:
        typer.echo(msgspec.json.encode(report.as_json(dataset, stored, runs)).decode())
    else:
        show(dataset, stored, runs)


async def _run(
    dataset: Dataset, ways: Sequence[Asking], embedder: str | None, data: str, progress: Progress
) -> tuple[Written, list[Run]]:
    async with written(dataset, embedder=embedder, data=data, progress=progress) as (product, stored):
        runs = [await ask(product.memories, stored, dataset.questions, way, progress) for way in ways]
    return stored, runs


def _write(path: Path, option: str, lines: Sequence[object]) -> None:
    """One JSON object a line."""
    try:
        with path.open("wb") as file:
            file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
    except OSError as exc:
        raise InvalidInput(option, f"{path} cannot be written: {exc.strerror}") from exc
