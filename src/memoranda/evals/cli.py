"""`memoranda eval`: the bundled set, LoCoMo-style files and BEIR folders, as tables or as one JSON object."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from memoranda.errors import InvalidInput
from memoranda.evals import ablate as ablation
from memoranda.evals import (
    abstention,
    answers,
    assistant,
    beir,
    contexts,
    fit,
    freshness,
    locomo,
    longmemeval,
    report,
    synthetic,
)
from memoranda.evals.dataset import Dataset
from memoranda.evals.run import Asking, Progress, Run, Written, ask, written
from memoranda.evals.terminal import (
    show,
    show_abstention,
    show_answers,
    show_contexts,
    show_freshness,
    shown_progress,
)
from memoranda.store.retrieval.rerank_weights import RERANKS, Weights

app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)


class Mode(StrEnum):
    """How to search; `all` runs the three one after the other."""

    HYBRID = "hybrid"
    DENSE = "dense"
    WORDS = "words"
    ALL = "all"


class Style(StrEnum):
    """Whose conversation it is, see `memoranda.store.retrieval.rerank_weights`."""

    PEOPLE = "people"
    ASSISTANT = "assistant"
    PLAIN = "plain"


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
RerankOption = Annotated[
    str | None, typer.Option("--rerank", metavar="NAME", help=f"The second stage: {', '.join(RERANKS)}.")
]
RecencyOption = Annotated[
    str | None,
    typer.Option("--recency", metavar="NAME", help="What age makes of memories: off, decay, boost."),
]
TimesOption = Annotated[
    bool | None, typer.Option("--times/--no-times", help="Whether times that a question names count.")
]
EnrichOption = Annotated[
    bool | None, typer.Option("--enrich/--no-enrich", help="Whether questions are embedded under a header.")
]
AblateOption = Annotated[
    bool, typer.Option("--ablate", help="Every switch on and off, a row each, instead of modes.")
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
    rerank: RerankOption = None,
    recency: RecencyOption = None,
    times: TimesOption = None,
    enrich: EnrichOption = None,
    ablate: AblateOption = False,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """Measure how well recall works on questions whose answers are known. Without a command: the bundled set."""
    if context.invoked_subcommand is None:
        synthetic_command(
            mode,
            embedder,
            limit,
            depth,
            dense_weight,
            rerank,
            recency,
            times,
            enrich,
            ablate,
            data,
            dump,
            json,
        )
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
    rerank: RerankOption = None,
    recency: RecencyOption = None,
    times: TimesOption = None,
    enrich: EnrichOption = None,
    ablate: AblateOption = False,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """The bundled set: memories with near misses written beside them (look at k=1 and at noise)."""
    asking = Asking(mode.value, depth, dense_weight, rerank, recency, times, enrich)
    _evaluate(synthetic.read(), _ways(asking, ablate), embedder, limit, data, dump, json)


@app.command("assistant")
def assistant_command(
    mode: ModeOption = Mode.HYBRID,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    depth: DepthOption = 10,
    dense_weight: WeightOption = None,
    rerank: RerankOption = None,
    recency: RecencyOption = None,
    times: TimesOption = None,
    enrich: EnrichOption = None,
    ablate: AblateOption = False,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """The bundled set: memories with near misses written beside them (look at k=1 and at noise)."""
    asking = Asking(mode.value, depth, dense_weight, rerank, recency, times, enrich)
    _evaluate(assistant.read(), _ways(asking, ablate), embedder, limit, data, dump, json)


@app.command("locomo")
def locomo_command(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-style JSON file.")],
    mode: ModeOption = Mode.HYBRID,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    depth: DepthOption = 10,
    dense_weight: WeightOption = None,
    rerank: RerankOption = None,
    recency: RecencyOption = None,
    times: TimesOption = None,
    enrich: EnrichOption = None,
    ablate: AblateOption = False,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """Long conversations: find the turns that answer a question. `all` is categories 1 to 4."""
    asking = Asking(mode.value, depth, dense_weight, rerank, recency, times, enrich)
    _evaluate(locomo.read(file), _ways(asking, ablate), embedder, limit, data, dump, json)


@app.command("beir")
def beir_command(
    folder: Annotated[Path, typer.Argument(help="A folder with corpus.jsonl, queries.jsonl and qrels.")],
    split: Annotated[str, typer.Option("--split", help="Which judgements: qrels/SPLIT.tsv.")] = "test",
    mode: ModeOption = Mode.HYBRID,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    depth: DepthOption = 10,
    dense_weight: WeightOption = None,
    rerank: RerankOption = None,
    recency: RecencyOption = None,
    times: TimesOption = None,
    enrich: EnrichOption = None,
    ablate: AblateOption = False,
    data: DataOption = ":memory:",
    dump: DumpOption = None,
    json: JsonOption = False,
) -> None:
    """Documents: a folder in the form of the BEIR benchmark."""
    asking = Asking(mode.value, depth, dense_weight, rerank, recency, times, enrich)
    _evaluate(beir.read(folder, split), _ways(asking, ablate), embedder, limit, data, dump, json)


@app.command("freshness")
def freshness_command(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-style JSON file.")],
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    json: JsonOption = False,
) -> None:
    """Recall right after a write, while its embeddings are pending, against recall once they are stored."""
    dataset = _limited(locomo.read(file), limit)
    with shown_progress() as progress:
        found = asyncio.run(freshness.measure(dataset, embedder=embedder, progress=progress))
    if json:
        typer.echo(msgspec.json.encode(found).decode())
    else:
        show_freshness(found)


@app.command("abstention")
def abstention_command(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="LoCoMo-style or LongMemEval files, BEIR folders; without, the bundled sets."),
    ] = None,
    with_bundled: Annotated[bool, typer.Option("--bundled", help="The bundled sets, too.")] = False,
    fit_weights: Annotated[
        bool, typer.Option("--fit", help="Print weights that are fitted on all of it.")
    ] = False,
    embedder: EmbedderOption = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Ask at most so many questions of each, evenly spread."),
    ] = None,
    data: DataOption = ":memory:",
    json: JsonOption = False,
) -> None:
    """Whether `evidence` tells questions that are answered from those that are not."""
    datasets = [_any(path) for path in paths or ()]
    if with_bundled or not datasets:
        datasets.append(abstention.bundled())
    reports, every = [], list[abstention.Case]()
    for dataset in datasets:
        asked = abstention.spread(_limited(dataset, None), limit)
        place = data if data == ":memory:" else str(Path(data) / dataset.name)
        with shown_progress() as progress:
            model, found = asyncio.run(
                abstention.cases(asked, embedder=embedder, data=place, progress=progress)
            )
        reports.append(abstention.report(dataset.name, model, found))
        every += found
    weights = _fitted_evidence(every) if fit_weights else None
    if json:
        typer.echo(msgspec.json.encode({"datasets": reports, "weights": weights}).decode())
        return
    show_abstention(reports)
    if weights is not None:
        typer.echo(msgspec.json.encode(weights).decode())


def _fitted_evidence(every: Sequence[abstention.Case]) -> dict[str, float]:
    try:
        intercept, weights = abstention.fitted(every)
    except ValueError as exc:
        raise InvalidInput("--fit", str(exc)) from exc
    return {"intercept": intercept} | weights._asdict()


def _any(path: Path) -> Dataset:
    if path.is_dir():
        return beir.read(path)
    return longmemeval.read(path) if longmemeval.is_longmemeval(path) else locomo.read(path)


@app.command("answers")
def answers_command(
    path: Annotated[Path, typer.Argument(help="A LoCoMo-style or LongMemEval file.")],
    judge: Annotated[
        bool, typer.Option("--judge", help="Have the configured language model judge the replies, too.")
    ] = False,
    embedder: EmbedderOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="Ask at most so many questions, evenly spread.")
    ] = None,
    data: DataOption = ":memory:",
    json: JsonOption = False,
) -> None:
    """Whether responses answer: with the configured language model, or with quotes where there is none."""
    dataset = abstention.spread(_limited(_any(path), None), limit)
    with shown_progress() as progress:
        found = asyncio.run(
            answers.measure(dataset, embedder=embedder, data=data, judge=judge, progress=progress)
        )
    if json:
        typer.echo(msgspec.json.encode(found).decode())
    else:
        show_answers(found)


@app.command("contexts")
def contexts_command(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-style JSON file.")],
    as_of: Annotated[bool, typer.Option("--as-of", help="Ask about the end of the conversations.")] = False,
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    data: DataOption = ":memory:",
    json: JsonOption = False,
) -> None:
    """Whether contexts of 500, 1 000 and 2 000 tokens have what answers, beside a search in as many tokens."""
    dataset = _limited(locomo.read(file), limit)
    with shown_progress() as progress:
        found = asyncio.run(
            contexts.measure(dataset, embedder=embedder, data=data, as_of=as_of, progress=progress)
        )
    if json:
        typer.echo(msgspec.json.encode(found).decode())
    else:
        show_contexts(found)


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
    """Fit the weights of the second stage on labelled questions. The table tells how they do on conversations they were
    not fitted on, one left out after the other; what `--out` gets is fitted on all."""
    dataset = _limited(locomo.read(file), limit)
    with shown_progress() as progress:
        held, runs, weights = asyncio.run(_fit(dataset, style.value, depth, embedder, data, progress))
    if out is not None:
        _write(out, "--out", [fit.as_file(weights)])
    if dump is not None:
        _write(dump, "--dump", [line for run in runs for line in report.dump(run)])
    if json:
        told = report.as_json(dataset, held, runs) | {"weights": fit.as_file(weights)}
        typer.echo(msgspec.json.encode(told).decode())
    else:
        show(dataset, held, runs)
        typer.echo(msgspec.json.encode(fit.as_file(weights)).decode())


async def _fit(
    dataset: Dataset, style: str, depth: int, embedder: str | None, data: str, progress: Progress
) -> tuple[Written, list[Run], Weights]:
    async with written(dataset, embedder=embedder, data=data, progress=progress) as (product, held):
        asked = await fit.examples(product, held, dataset, style, progress)
    try:
        answers = fit.left_out(style, asked, dataset.overall, depth)
        weights = fit.fitted(style, asked, dataset.overall)
    except ValueError as exc:
        raise InvalidInput(dataset.name, str(exc)) from exc
    fused = [fit.ranked(one, Weights(style, {}), depth) for one in asked]
    runs = [
        Run(Asking(limit=depth, name="fused alone"), fused, None),
        Run(Asking(limit=depth, name="left out"), answers, None),
    ]
    return held, runs, weights


def _ways(asking: Asking, ablate: bool) -> list[Asking]:
    """Every way of asking that the options want."""
    if asking.rerank is not None and asking.rerank not in RERANKS:
        raise InvalidInput("--rerank", f"must be one of {', '.join(RERANKS)}")
    if asking.recency not in (None, "off", "decay", "boost"):
        raise InvalidInput("--recency", "must be one of off, decay, boost")
    if ablate:
        return list(ablation.switched(asking))
    modes = ["words", "dense", "hybrid"] if asking.mode == "all" else [asking.mode]
    return [replace(asking, mode=mode) for mode in modes]


def _limited(dataset: Dataset, limit: int | None) -> Dataset:
    if limit is not None:
        dataset = replace(dataset, questions=dataset.questions[:limit])
    if not dataset.questions:
        raise InvalidInput(dataset.name, "holds no question with a known answer")
    return dataset


def _evaluate(
    dataset: Dataset,
    ways: Sequence[Asking],
    embedder: str | None,
    limit: int | None,
    data: str,
    dump: Path | None,
    json: bool,
) -> None:
    dataset = _limited(dataset, limit)
    with shown_progress() as progress:
        held, runs = asyncio.run(_run(dataset, ways, embedder, data, progress))
    if dump is not None:
        _write(dump, "--dump", [line for run in runs for line in report.dump(run)])
    if json:
        typer.echo(msgspec.json.encode(report.as_json(dataset, held, runs)).decode())
    else:
        show(dataset, held, runs)


async def _run(
    dataset: Dataset, ways: Sequence[Asking], embedder: str | None, data: str, progress: Progress
) -> tuple[Written, list[Run]]:
    async with written(dataset, embedder=embedder, data=data, progress=progress) as (product, held):
        runs = [await ask(product.memories, held, dataset.questions, way, progress) for way in ways]
    return held, runs


def _write(path: Path, option: str, lines: Sequence[object]) -> None:
    """One JSON object a line."""
    try:
        with path.open("wb") as file:
            file.writelines(msgspec.json.encode(line) + b"\n" for line in lines)
    except OSError as exc:
        raise InvalidInput(option, f"{path} cannot be written: {exc.strerror}") from exc
