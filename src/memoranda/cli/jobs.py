"""`memoranda jobs`: background jobs and their state."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.maintenance import wait_for_job
from memoranda.cli.options import Limit
from memoranda.cli.output import plain, say
from memoranda.types import Job

Id = Annotated[str, typer.Argument(metavar="JOB", help="The job.")]

app = group()


@app.callback()
@common_options()
def jobs(invocation: Invocation, context: typer.Context) -> None:
    """List background jobs; show, retry and cancel them."""
    if context.invoked_subcommand is None:
        _list(invocation, 20)


@app.command("list")
@common_options()
def list_(invocation: Invocation, limit: Limit = 20) -> None:
    """List the latest jobs, newest first."""
    _list(invocation, limit)


def _list(invocation: Invocation, limit: int) -> None:
    found = invocation.memories.jobs(limit)
    invocation.show(found, "\n".join(map(_line, found)))
    if not found and not invocation.as_json:
        say("no jobs; ended ones are kept for a week")


@app.command("show")
@common_options()
def show(invocation: Invocation, id_: Id) -> None:
    """Show the state of a job."""
    _show(invocation, invocation.memories.job(id_))


@app.command("retry")
@common_options()
def retry(invocation: Invocation, id_: Id) -> None:
    """Run a failed job again, from where it stopped."""
    job = invocation.memories.retry(id_)
    _show(invocation, wait_for_job(invocation, job, job.kind))


@app.command("cancel")
@common_options()
def cancel(invocation: Invocation, id_: Id) -> None:
    """Cancel a job: at once if it waits, between two steps if it runs."""
    _show(invocation, invocation.memories.cancel(id_))


def _show(invocation: Invocation, job: Job) -> None:
    invocation.show(job, _line(job))


def _line(job: Job) -> str:
    done = f"{job.done}" if job.total is None else f"{job.done}/{job.total}"
    error = f"  {plain(job.error)}" if job.error else ""
    return f"{job.id}  {job.updated_at:%Y-%m-%d %H:%M}  {job.state:9}  {done:>7}  {job.kind}{error}"
