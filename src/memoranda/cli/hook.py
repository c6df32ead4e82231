"""`memoranda hook`, as `--help` shows it."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.cli.hooks.main import run_hook
from memoranda.cli.hooks.options import EVENTS
from memoranda.cli.invocation import Invocation, common_options


@common_options(json=False)
def hook(
    invocation: Invocation,
    event: Annotated[str, typer.Argument(metavar="EVENT", help=f"{', '.join(EVENTS)}.")],
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose memory it is [default: everything there].")
    ] = None,
) -> None:
    """Answer a hook of a client: JSON at standard input, context at standard output."""
    words = [event]
    for name, value in (
        ("--user", user),
        ("--data", invocation.data),
        ("--config", invocation.config_file),
    ):
        words += [] if value is None else [name, str(value)]
    for setting in invocation.settings or []:
        words += ["--set", setting]
    run_hook(words)
