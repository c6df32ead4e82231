"""`memoranda eval own`: questions about memories that are stored, as configured and otherwise."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from memoranda.app.evals.evaluation import (
    DEFAULTS,
    Compared,
    Evaluation,
    EvaluationQuestion,
    SearchConfiguration,
)
from memoranda.app.evals.report import cell, columns
from memoranda.cli.evals.options import (
    DepthOption,
    EnrichOption,
    RecencyOption,
    RerankOption,
    TimesOption,
    WeightOption,
)
from memoranda.cli.invocation import Invocation, common_options
from memoranda.errors import InvalidInput
from memoranda.types import SearchMode
from memoranda.validation import convert

FORM = '{"query": "...", "relevant": ["id of a memory"]}'


@common_options()
def own(
    invocation: Invocation,
    file: Annotated[Path, typer.Argument(help=f"A JSON object a line: {FORM}.")],
    mode: Annotated[
        SearchMode | None,
        typer.Option("--mode", help="How to search: hybrid, dense or keyword."),
    ] = None,
    depth: DepthOption = 10,
    dense_weight: WeightOption = None,
    rerank: RerankOption = None,
    recency: RecencyOption = None,
    times: TimesOption = None,
    enrich: EnrichOption = None,
) -> None:
    """Questions about your own memories: the configured search, and beside it one with the options that are given."""
    chosen = {
        "mode": mode,
        "dense_weight": dense_weight,
        "rerank": rerank,
        "recency": recency,
        "times": times,
        "enrich": enrich,
    }
    given = {name: value for name, value in chosen.items() if value is not None}
    ways = [DEFAULTS]
    if given:
        ways.append(convert({"name": "options", **given}, SearchConfiguration))
    numbered = dict(_read(file))
    try:
        evaluation = invocation.product.evaluate(list(numbered.values()), ways, limit=depth)
    except InvalidInput as exc:
        if (place := re.match(r"questions\[(\d+)\]", exc.field)) is None:
            raise
        line = f"{file.name}, line {list(numbered)[int(place[1])]}{exc.field[place.end() :]}"
        raise InvalidInput(line, str(exc).removeprefix(f"{exc.field}: ")) from exc
    invocation.show(evaluation, "\n".join(_lines(evaluation)))


def _read(file: Path) -> Iterator[tuple[int, EvaluationQuestion]]:
    """Yield the questions with the numbers of their lines."""
    try:
        lines = file.read_bytes().splitlines()
    except OSError as exc:
        raise InvalidInput(str(file), f"cannot be read: {(exc.strerror or str(exc)).lower()}") from exc
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            raw = msgspec.json.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError) as exc:
            raise InvalidInput(f"{file.name}, line {number}", f"is not JSON; write {FORM}") from exc
        yield number, convert(raw, EvaluationQuestion, f"{file.name}, line {number}")


def _lines(evaluation: Evaluation) -> Iterator[str]:
    """Yield a row of means for each configuration, then the questions that the two answer differently."""
    names = columns(evaluation.configurations[0].scores["all"])
    yield "".join([f"{'':14}", *(f"{name:>11}" for name in names)])
    for scored in evaluation.configurations:
        yield "".join([f"{scored.name:14}", *(f"{cell(scored.scores['all'][name]):>11}" for name in names)])
    for scored in evaluation.configurations:
        if scored.degraded:
            yield f"{scored.name}: {scored.degraded} answers were degraded"
    changed = [question for question in evaluation.questions if len({a.rank for a in question.answers}) > 1]
    if changed:
        yield ""
        yield from (f"{_ranks(question):>14}  {question.query}" for question in changed)


def _ranks(question: Compared) -> str:
    return " -> ".join("missed" if answer.rank is None else str(answer.rank) for answer in question.answers)
