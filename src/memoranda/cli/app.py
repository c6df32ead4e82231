"""The command line program: its commands, and how errors end them."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.metadata import version
from shutil import get_terminal_size
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from memoranda.cli.commands import ABOUT, COMMANDS, examples, overview
from memoranda.cli.metavars import name_values
from memoranda.cli.usage_errors import UsageError, as_option, no_arguments, sentence, unknown_command
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.extras import needed

GROUPS = (
    "memories", "facts", "sessions", "agents", "responses", "conversations", "memory-stores", "files", "stores",
    "backfill", "jobs",
)  # fmt: skip
"""The commands that have commands of their own."""
FAILED, WRONG = 1, 2


def _imported(module: str) -> ModuleType:
    """Return the module. A fifth of the time of the imports is garbage collection, which finds nothing in modules."""
    gc.disable()
    try:
        return import_module(module)
    finally:
        gc.freeze()
        gc.enable()


class Commands(TyperGroup):
    """The commands of `COMMANDS`, with Memoranda's errors as one sentence on standard error."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name not in COMMANDS:
            return None
        module, name = COMMANDS[cmd_name][0].split(":")
        command_or_group = getattr(_imported(module), name)
        if isinstance(command_or_group, typer.Typer):
            group = command_or_group
        else:
            group = typer.Typer(add_completion=False, rich_markup_mode=None)
            group.command(cmd_name)(command_or_group)
        command = get_command(group)
        command.name = cmd_name
        command.epilog = examples(cmd_name)
        name_values(command)
        return command

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(unknown_command(args[0], self._known(ctx)))
        return super().resolve_command(ctx, args)

    def _known(self, ctx: typer.Context) -> dict[str, str]:
        """Return what to write, by word: a command, or a group and the command below it that has this name."""
        below = {
            name: f"{group} {name}"
            for group in GROUPS
            for name in getattr(self.get_command(ctx, group), "commands", {})
        }
        return below | {name: name for name in COMMANDS}

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        return overview(get_terminal_size().columns)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        try:
            return super().parse_args(ctx, args)
        except UsageError as exc:
            if no_arguments(exc):
                raise
            _fail(sentence(exc, self), WRONG, exc)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except UsageError as exc:
            _fail(sentence(exc, self.get_command(ctx, ctx.invoked_subcommand or "")), WRONG, exc)
        except InvalidInput as exc:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            _fail(as_option(str(exc), exc.field, command), WRONG, exc)
        except MemorandaError as exc:
            _fail(str(exc), FAILED, exc)
        except ModuleNotFoundError as exc:
            if (says := needed(exc)) is None:
                raise
            _fail(f"{ctx.invoked_subcommand} {says}", FAILED, exc)
        except BrokenPipeError:
            raise
        except OSError as exc:
            _fail(f"{exc.filename or 'the system'}: {(exc.strerror or str(exc)).lower()}", FAILED, exc)


def _fail(message: str, code: int, cause: BaseException) -> NoReturn:
    typer.echo(f"memoranda: {message}", err=True)
    raise typer.Exit(code) from cause


app = typer.Typer(
    name="memoranda",
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"memoranda {version('memoranda')}")
        raise typer.Exit


@app.callback(help=ABOUT)
def memoranda(
    show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def version_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Print the version."""
    number = version("memoranda")
    typer.echo(f'{{"version":"{number}"}}' if as_json else f"memoranda {number}")


def main() -> None:
    """Run the program with the arguments of the process, and end the process with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # Memories hold any text; a terminal that cannot show a letter must not end the program.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="memoranda")
