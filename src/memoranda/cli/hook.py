"""`memoranda hook`, as `--help` shows it."""

from __future__ import annotations

from typing import Annotated

import typer

from memoranda.cli.hooks.main import run_hook
from memoranda.cli.hooks.options import EVENTS
from memoranda.cli.options import ConfigFile, Data, Settings


def hook(
    event: Annotated[str, typer.Argument(metavar="EVENT", help=f"{', '.join(EVENTS)}.")],
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose memory it is [default: everything there].")
    ] = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
) -> None:
    """Answer a hook of a client: JSON at standard input, context at standard output."""
    words = [event]
    for name, value in (("--user", user), ("--data", data), ("--config", config)):
        words += [] if value is None else [name, str(value)]
    for setting in settings or []:
        words += ["--set", setting]
    run_hook(words)
