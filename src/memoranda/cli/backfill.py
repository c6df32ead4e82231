"""`memoranda backfill`: make missing embeddings, summaries and memories of logged questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.maintenance import wait_for_job
from memoranda.cli.output import rows

Pace = Annotated[float | None, typer.Option("--rows-per-second", help="Go no faster than this.")]
app = group()

if TYPE_CHECKING:  # importing the application takes two seconds, and a folder that is served is not opened
    from memoranda.app.backfills import Kind


@app.callback()
@common_options()
def backfill(invocation: Invocation, context: typer.Context) -> None:
    """Make what is missing of what is there already: embeddings, summaries, query-logs.

    Alone, count what is missing.
    """
    if context.invoked_subcommand is None:
        missing = invocation.product.missing()
        counts = {name.replace("_", " "): count for name, count in msgspec.structs.asdict(missing).items()}
        invocation.show(missing, "\n".join(rows(counts)))


@app.command("embeddings")
@common_options()
def embeddings(
    invocation: Invocation,
    everything: Annotated[
        bool, typer.Option("--all", help="Make every vector anew, not only the missing ones.")
    ] = False,
    rows_per_second: Pace = None,
) -> None:
    """Make the vectors that are missing with the configured model."""
    _run(invocation, "embeddings", rows_per_second, everything=everything)


@app.command("summaries")
@common_options()
def summaries(invocation: Invocation, rows_per_second: Pace = None) -> None:
    """Summarize closed sessions that have no summary of the configured version."""
    _run(invocation, "summaries", rows_per_second)


@app.command("query-logs")
@common_options()
def query_logs(invocation: Invocation, rows_per_second: Pace = None) -> None:
    """Make memories of logged answers that became none."""
    _run(invocation, "query_logs", rows_per_second)


def _run(invocation: Invocation, what: Kind, pace: float | None, *, everything: bool = False) -> None:
    job = invocation.product.backfill(what, everything=everything, rows_per_second=pace)
    job = wait_for_job(invocation, job, f"backfill of {what.replace('_', ' ')}")
    counts = [f"{name.replace('_', ' ')}: {value}" for name, value in (job.result or {}).items()]
    invocation.show(job, ", ".join(counts))
