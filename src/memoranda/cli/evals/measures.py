"""Commands of `memoranda eval` that measure more than a search: freshness, contexts, answers, facts and more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer

from memoranda.app.evals import (
    abstention,
    answers,
    chunking,
    contexts,
    current,
    facts,
    freshness,
    languages,
    locomo,
)
from memoranda.app.evals.observed import Derived
from memoranda.cli.evals.options import (
    DataOption,
    EmbedderOption,
    JsonOption,
    LimitOption,
    SpreadOption,
    any_dataset,
    limited,
)
from memoranda.cli.evals.terminal import (
    show_abstention,
    show_answers,
    show_chunking,
    show_contexts,
    show_current,
    show_facts,
    show_freshness,
    show_languages,
    shown_progress,
)
from memoranda.config import load
from memoranda.errors import InvalidInput
from memoranda.types import MAX_LIMIT

T = TypeVar("T")


def freshness_command(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-style JSON file.")],
    embedder: EmbedderOption = None,
    limit: LimitOption = None,
    json: JsonOption = False,
) -> None:
    """Recall right after a write, while its embeddings are pending, against recall once they are stored."""
    dataset = limited(locomo.read(file), limit)
    with shown_progress() as progress:
        result = asyncio.run(freshness.measure(dataset, embedder=embedder, progress=progress))
    _print(result, show_freshness, json)


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
    limit: SpreadOption = None,
    data: DataOption = ":memory:",
    json: JsonOption = False,
) -> None:
    """Measure how well `evidence` separates questions that are answered from those that are not."""
    datasets = [any_dataset(path) for path in paths or ()]
    if with_bundled or not datasets:
        datasets.append(abstention.bundled())
    reports, every = [], list[list[abstention.Case]]()
    for dataset in datasets:
        asked = abstention.spread(limited(dataset, None), limit)
        place = data if data == ":memory:" else str(Path(data) / dataset.name)
        with shown_progress() as progress:
            model, answered = asyncio.run(
                abstention.cases(asked, embedder=embedder, data=place, progress=progress)
            )
        reports.append(abstention.report(dataset.name, model, answered))
        every.append(answered)
    weights = _fitted_evidence(every) if fit_weights else None
    if json:
        typer.echo(msgspec.json.encode({"datasets": reports, "weights": weights}).decode())
        return
    show_abstention(reports)
    if weights is not None:
        typer.echo(msgspec.json.encode(weights).decode())


def _fitted_evidence(every: Sequence[Sequence[abstention.Case]]) -> dict[str, float]:
    try:
        return abstention.fitted(every)._asdict()
    except ValueError as exc:
        raise InvalidInput("--fit", str(exc)) from exc


def answers_command(
    path: Annotated[Path, typer.Argument(help="A LoCoMo-style or LongMemEval file.")],
    judge: Annotated[
        bool, typer.Option("--judge", help="Have the configured language model judge the replies, too.")
    ] = False,
    embedder: EmbedderOption = None,
    limit: SpreadOption = None,
    data: DataOption = ":memory:",
    json: JsonOption = False,
) -> None:
    """Measure whether responses answer: with the configured language model, or with quotes where there is none."""
    dataset = abstention.spread(limited(any_dataset(path), None), limit)
    with shown_progress() as progress:
        result = asyncio.run(
            answers.measure(dataset, embedder=embedder, data=data, judge=judge, progress=progress)
        )
    _print(result, show_answers, json)


def contexts_command(
    file: Annotated[Path, typer.Argument(help="A LoCoMo-style JSON file.")],
    derived: Annotated[
        list[Derived] | None,
        typer.Option("--with", help="Ask again with what is derived from the messages; may be repeated."),
    ] = None,
    as_of: Annotated[bool, typer.Option("--as-of", help="Ask about the end of the conversations.")] = False,
    embedder: EmbedderOption = None,
    limit: SpreadOption = None,
    data: DataOption = ":memory:",
    json: JsonOption = False,
) -> None:
    """Measure whether contexts of 500, 1 000 and 2 000 tokens contain the answer, beside a search in as many tokens;
    with --with, measure again once facts or summaries are made."""
    if derived and data != ":memory:":
        raise InvalidInput(
            "--data",
            "cannot be used with --with, which makes facts and summaries in memory; leave one of them out",
        )
    dataset = abstention.spread(limited(locomo.read(file), None), limit)
    with shown_progress() as progress:
        result = asyncio.run(
            contexts.measure(
                dataset,
                embedder=embedder,
                data=data,
                as_of=as_of,
                derived=[*dict.fromkeys(derived or ())],
                progress=progress,
            )
        )
    _print(result, show_contexts, json)


def facts_command(
    file: Annotated[
        Path | None, typer.Argument(help="A YAML file like the bundled one; without, the bundled set.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Measure whether the right facts are extracted: with the configured language model, or by rules where there is
    none."""
    path = facts.BUNDLED if file is None else file
    cases = facts.read(path)
    with shown_progress() as progress:
        result = asyncio.run(facts.measure(path, cases, progress))
    _print(result, show_facts, json)


def current_command(
    file: Annotated[
        Path | None, typer.Argument(help="A YAML file like the bundled one; without, the bundled set.")
    ] = None,
    budget: Annotated[int, typer.Option("--budget", min=1, help="Tokens of each context.")] = 2_000,
    embedder: EmbedderOption = None,
    json: JsonOption = False,
) -> None:
    """Measure whether contexts have what holds where things have changed, and in which place."""
    path = current.BUNDLED if file is None else file
    cases = current.read(path)
    with shown_progress() as progress:
        result = asyncio.run(
            current.measure(path, cases, embedder=embedder, budget=budget, progress=progress)
        )
    _print(result, show_current, json)


def languages_command(
    file: Annotated[
        Path | None, typer.Argument(help="A YAML file like the bundled one; without, the bundled set.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--language", metavar="CODE", help="Only this language; may be repeated."),
    ] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="Only languages that no weights are fitted on.")
    ] = False,
    embedder: EmbedderOption = None,
    json: JsonOption = False,
) -> None:
    """Measure in each language whether a search finds what was said, and how often evidence is strong for what was
    not."""
    path = languages.BUNDLED if file is None else file
    chosen = languages.read(path, only=only or (), held_out=held_out)
    with shown_progress() as progress:
        result = asyncio.run(languages.measure(path, chosen, embedder=embedder, progress=progress))
    _print(result, show_languages, json)


def chunking_command(
    folder: Annotated[
        Path, typer.Argument(help="A folder with questions.csv and the documents that answer them.")
    ],
    chunks: Annotated[
        list[str] | None,
        typer.Option(
            "--chunks", metavar="SIZE/OVERLAP", help="Tokens of a chunk and of its overlap; may be repeated."
        ),
    ] = None,
    strategy: Annotated[str | None, typer.Option("--strategy", help="fixed, recursive or semantic.")] = None,
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether each chunk is searched under title and headings."),
    ] = None,
    depth: Annotated[
        int, typer.Option("--depth", min=1, max=MAX_LIMIT, help="Chunks to search for, per question.")
    ] = 20,
    characters: Annotated[
        int, typer.Option("--characters", min=2, help="Look at the first so many characters of the results.")
    ] = 4_000,
    embedder: EmbedderOption = None,
    json: JsonOption = False,
) -> None:
    """Measure how much of the text that answers is in the first characters of a search in documents, for each way to
    split them; without --chunks the configured one."""
    corpus = chunking.read(folder)
    chosen = chunking.ways(chunks or (), load(), strategy=strategy, header=header)
    with shown_progress() as progress:
        result = asyncio.run(
            chunking.measure(
                corpus, chosen, depth=depth, characters=characters, embedder=embedder, progress=progress
            )
        )
    _print(result, show_chunking, json)


def _print(result: T, show: Callable[[T], None], json: bool) -> None:
    if json:
        typer.echo(msgspec.json.encode(result).decode())
    else:
        show(result)
