"""`memoranda connect`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from memoranda.cli.connect.clients import CLIENTS
from memoranda.cli.connect.editing import Editing
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.output import say
from memoranda.errors import InvalidInput
from memoranda.mcp.endpoint import EndpointQuery
from memoranda.validation import convert

NEXT = {
    "claude-code": "Start a new session of Claude Code; /mcp and /hooks show what it found.",
    "claude-desktop": "Restart Claude Desktop.",
    "codex": "Start Codex again, and confirm the hooks once with /hooks.",
    "cursor": "Restart Cursor.",
    "vscode": "Start the server with MCP: List Servers.",
    "opencode": "Start opencode again.",
    "gemini": "Start Gemini CLI again; /mcp and /hooks show what it found.",
}


@common_options(json=False)
def connect(
    invocation: Invocation,
    client: Annotated[str, typer.Argument(metavar="CLIENT", help=f"{', '.join(CLIENTS)}.")],
    user: Annotated[
        str | None, typer.Option(metavar="ID", help="Whose memory it is [default: everything there].")
    ] = None,
    tools: Annotated[
        str | None, typer.Option(metavar="SET", help="core, full, read or chatgpt [default: mcp.tools].")
    ] = None,
    project: Annotated[
        Path | None, typer.Option(metavar="DIR", help="For this project alone, in its own files.")
    ] = None,
    hooks: Annotated[
        bool, typer.Option("--hooks/--no-hooks", help="With the hooks that the client has.")
    ] = True,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the changes and make none.")] = False,
    undo: Annotated[bool, typer.Option("--undo", help="Take out what this command wrote.")] = False,
) -> None:
    """Write the configuration of an MCP client: this server, and hooks that remember every session."""
    if client not in CLIENTS:
        raise InvalidInput("CLIENT", f"{client!r} is not known; use one of {', '.join(CLIENTS)}")
    if project is not None and not project.is_dir():
        raise InvalidInput("--project", f"{project} is no folder")
    editing = Editing(CLIENTS[client], project, os.environ)
    if undo:
        changes = editing.undo()
    else:
        words = _words(invocation)
        own = [] if user is None else ["--user", user]
        given: dict[str, Any] = {"user": user, "tools": tools}
        convert({name: value for name, value in given.items() if value is not None}, EndpointQuery)
        served = [*own, *([] if tools is None else ["--tools", tools])]
        start = program()

        def hook(event: str) -> str:
            return shlex.join([*start, "hook", event, *words, *own])

        changes = editing.connect([*start, "mcp", *words, *served], hook if hooks else None)
    for change in changes:
        if dry_run:
            for line in change.diff():
                typer.echo(line)
        elif change.needed:
            change.write(undo=undo)
            say(f"{'removed' if change.after is None else 'wrote'} {change.path}")
        else:
            say(f"nothing to change in {change.path}")
    if not undo:
        say(f"its memory is in {_absolute(Path(invocation.config.data))}; --data names another folder")
    if not dry_run and not undo:
        say(NEXT[client])


def _words(invocation: Invocation) -> list[str]:
    """The options of the folder as a command takes them anywhere: with absolute paths.

    Raises:
        InvalidInput: the configuration is wrong, or the folder is in memory.
    """
    folder = invocation.config.data
    if folder == ":memory:":
        raise InvalidInput("--data", "a client needs a folder; :memory: keeps nothing")
    words = ["--data", _absolute(Path(folder))]
    if invocation.config_file is not None:
        words += ["--config", _absolute(invocation.config_file)]
    for setting in invocation.settings or []:
        words += ["--set", setting]
    return words


def _absolute(path: Path) -> str:
    return os.path.abspath(path.expanduser())


def program() -> list[str]:
    """Return the words that start the program that is running, from any folder."""
    start = sys.argv[0]
    if Path(start).name == "__main__.py":
        return [sys.executable, "-m", "memoranda"]
    return [os.path.abspath(shutil.which(start) or start)]
