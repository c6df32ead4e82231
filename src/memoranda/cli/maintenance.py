"""`memoranda stats`, `memoranda compact`, `memoranda reindex`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from memoranda.app import blocking
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import Places, ScopeId, User, scope_of
from memoranda.cli.output import rows, say
from memoranda.cli.product import require_folder
from memoranda.cli.progress import bar
from memoranda.errors import MemorandaError
from memoranda.types import Job

POLL_SECONDS = 0.1


@common_options()
def stats(invocation: Invocation, scope: Places = None, scope_id: ScopeId = None, user: User = None) -> None:
    """Count what is remembered: by kind, and whether every index has it. With --scope or --user, one scope by kind."""
    counts = invocation.memories.stats(scope=scope_of(scope, scope_id, user, any_id=True))
    invocation.show(counts, "\n".join(rows(counts)))


@common_options()
def compact(invocation: Invocation) -> None:
    """Give back what deleted memories still hold, on disk and in memory."""
    job = wait_for_job(invocation, invocation.memories.compact(), "compacting")
    result = job.result or {}
    invocation.show(job, f"{result['bytes_before']:,} bytes before, {result['bytes_after']:,} after")


@common_options()
def reindex(
    invocation: Invocation,
    everything: Annotated[
        bool, typer.Option("--all", help="Make every vector anew, not only the missing ones.")
    ] = False,
    rebuild: Annotated[
        bool, typer.Option("--rebuild", help="Make both indexes again from the stored rows and vectors.")
    ] = False,
    to: Annotated[
        str | None, typer.Option(help="Move the vectors to the index of this URL, embedding nothing.")
    ] = None,
    rows_per_second: Annotated[float | None, typer.Option(help="Go no faster than this.")] = None,
) -> None:
    """Make the vectors that are missing. Stopped, it goes on where it was when it is called again."""
    if to is not None:
        if everything or rebuild or rows_per_second:
            raise typer.BadParameter("goes alone: it embeds nothing", param_hint="--to")
        _move_index(invocation, to)
    elif rebuild:
        if everything or rows_per_second:
            raise typer.BadParameter("goes alone: it embeds nothing", param_hint="--rebuild")
        _rebuild_indexes(invocation)
    else:
        job = invocation.memories.reembed(everything=everything, rows_per_second=rows_per_second)
        job = wait_for_job(invocation, job, "embedding")
        result = job.result or {}
        invocation.show(job, f"{result.get('embedded', 0)} memories embedded with {result['model']}")


def _rebuild_indexes(invocation: Invocation) -> None:
    require_folder(invocation.config)
    with blocking.open(config=invocation.config) as product:
        counts = product.inner.core.store.derived.rebuild()
    invocation.show(
        counts,
        f"rebuilt from rows: {counts['index']} in the vector index, {counts['words']} in the words",
    )


def _move_index(invocation: Invocation, url: str) -> None:
    job = wait_for_job(invocation, invocation.memories.move_index(url), "moving")
    result = job.result or {}
    invocation.show(
        job,
        f"{result['vectors']} vectors moved to {result['index']};"
        " set `index.url` to it: the next start goes by that",
    )


def wait_for_job(invocation: Invocation, job: Job, what: str) -> Job:
    """Return the job when it has completed; show its progress meanwhile. Ctrl-C cancels it, and keeps what it has done.

    Raises:
        MemorandaError: it failed or was cancelled.
    """
    memories = invocation.memories
    try:
        with bar(what, quiet=invocation.as_json) as report:
            while job.state in ("queued", "running"):
                report(job.done, job.total, job.error or "")
                time.sleep(POLL_SECONDS)
                job = memories.job(job.id)
    except KeyboardInterrupt:
        memories.cancel(job.id)
        say(f"{what} stopped at {job.done}; what was done stays")
        raise
    if job.state != "completed":
        raise MemorandaError(f"{what} {job.state}: {job.error or 'no reason was given'}")
    return job
