"""`memoranda backfill`: vectors, summaries, memories of logged questions, made of what is there already."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from memoranda.cli.groups import group
from memoranda.cli.maintenance import followed
from memoranda.cli.options import ConfigFile, Data, Json, Settings
from memoranda.cli.output import emit, rows
from memoranda.cli.product import configured, house, memories_of

Pace = Annotated[float | None, typer.Option("--rows-per-second", help="Go no faster than this.")]
app = group()


@app.callback()
def backfill(
    context: typer.Context,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Make what is missing of what is there already: embeddings, summaries, query-logs.

    Alone, count what is missing.
    """
    if context.invoked_subcommand is not None:
        return
    with house(configured(data, config, settings)) as held:
        told = held.missing()
    if as_json:
        emit(told)
    else:
        counts = {name.replace("_", " "): n for name, n in msgspec.structs.asdict(told).items()}
        typer.echo("\n".join(rows(counts)))


@app.command("embeddings")
def embeddings(
    everything: Annotated[
        bool, typer.Option("--all", help="Make every vector anew, not only the missing ones.")
    ] = False,
    rows_per_second: Pace = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Make the vectors that are missing with the configured model."""
    _run("embeddings", everything, rows_per_second, data, config, settings, as_json)


@app.command("summaries")
def summaries(
    rows_per_second: Pace = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Summarize closed sessions that have no summary of the configured version."""
    _run("summaries", False, rows_per_second, data, config, settings, as_json)


@app.command("query-logs")
def query_logs(
    rows_per_second: Pace = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Make memories of logged answers that became none."""
    _run("query_logs", False, rows_per_second, data, config, settings, as_json)


def _run(
    what: str,
    everything: bool,
    pace: float | None,
    data: Data,
    config: ConfigFile,
    settings: Settings,
    as_json: bool,
) -> None:
    with house(configured(data, config, settings)) as held:
        verbs = memories_of(held)
        job = held.backfill(what, everything=everything, rows_per_second=pace)
        done = followed(verbs, job, f"backfill of {what.replace('_', ' ')}", quiet=as_json)
    if as_json:
        emit(done)
    else:
        typer.echo(
            ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in (done.result or {}).items())
        )
