"""`memoranda stats`, `memoranda compact`, `memoranda reindex`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from memoranda.app import blocking
from memoranda.cli.options import ConfigFile, Data, Json, Places, ScopeId, Settings, scope_of
from memoranda.cli.output import emit, rows, say
from memoranda.cli.product import Verbs, configured, memories
from memoranda.cli.progress import bar
from memoranda.config.sections import Config
from memoranda.errors import MemorandaError
from memoranda.types import Job

POLL_SECONDS = 0.1


def stats(
    scope: Places = None,
    scope_id: ScopeId = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Count what is remembered: by kind, and whether every index has it. With --scope, one scope by kind."""
    one = scope_of(scope, scope_id, any_id=True)
    with memories(configured(data, config, settings)) as verbs:
        told = verbs.stats(scope=one)
    if as_json:
        emit(told)
    else:
        typer.echo("\n".join(rows(told)))


def compact(
    data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Give back what deleted memories still hold, on disk and in memory."""
    with memories(configured(data, config, settings)) as verbs:
        done = followed(verbs, verbs.compact(), "compacting", quiet=as_json)
    result = done.result or {}
    if as_json:
        emit(done)
    else:
        typer.echo(f"{result['bytes_before']:,} bytes before, {result['bytes_after']:,} after")


def reindex(
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
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Make the vectors that are missing. Stopped, it goes on where it was when it is called again."""
    force = configured(data, config, settings)
    if to is not None:
        if everything or rebuild or rows_per_second:
            raise typer.BadParameter("goes alone: it embeds nothing", param_hint="--to")
        _move(force, to, as_json)
        return
    if rebuild:
        if everything or rows_per_second:
            raise typer.BadParameter("goes alone: it embeds nothing", param_hint="--rebuild")
        with blocking.open(config=force) as opened:
            made = opened.inner.core.store.derived.rebuild()
        if as_json:
            emit(made)
        else:
            typer.echo(
                f"rebuilt from rows: {made['index']} in the vector index, {made['words']} in the words"
            )
        return
    with memories(force) as verbs:
        job = verbs.reembed(everything=everything, rows_per_second=rows_per_second)
        done = followed(verbs, job, "embedding", quiet=as_json)
    if as_json:
        emit(done)
    else:
        typer.echo(
            f"{(done.result or {}).get('embedded', 0)} memories embedded with {(done.result or {})['model']}"
        )


def _move(force: Config, to: str, as_json: bool) -> None:
    with memories(force) as verbs:
        done = followed(verbs, verbs.move_index(to), "moving", quiet=as_json)
    if as_json:
        emit(done)
        return
    told = done.result or {}
    typer.echo(
        f"{told['vectors']} vectors moved to {told['index']}; set `index.url` to it: the next start goes by that"
    )


def followed(verbs: Verbs, job: Job, what: str, *, quiet: bool) -> Job:
    """The job once it has completed, with a bar meanwhile. Ctrl-C cancels it; what was done stays.

    Raises:
        MemorandaError: it failed or was cancelled.
    """
    try:
        with bar(what, quiet=quiet) as report:
            while job.state in ("queued", "running"):
                report(job.done, job.total, job.error or "")
                time.sleep(POLL_SECONDS)
                job = verbs.job(job.id)
    except KeyboardInterrupt:
        verbs.cancel(job.id)
        say(f"{what} stopped at {job.done}; what was done stays")
        raise
    if job.state != "completed":
        raise MemorandaError(f"{what} {job.state}: {job.error or 'no reason was given'}")
    return job
