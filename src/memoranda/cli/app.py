"""The command line program: its commands, and how errors end them."""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from memoranda.cli.usage_errors import UsageError, as_option, no_arguments, sentence, unknown_command
from memoranda.errors import InvalidInput, MemorandaError
from memoranda.extras import needed

COMMANDS = {
    "add": ("memoranda.cli.add:add", "Remember one text."),
    "search": (
        "memoranda.cli.search:search",
        "Find the best memories for a text, by meaning and by words.",
    ),
    "ask": (
        "memoranda.cli.ask:ask",
        "Answer a question from memories and documents, and name the sources.",
    ),
    "context": (
        "memoranda.cli.context:context",
        "Print the prompt that answers a question: documents, memories, earlier sessions, within a budget.",
    ),
    "index": ("memoranda.cli.index:index", "Index files of every format into a vector store."),
    "stores": (
        "memoranda.cli.stores:app",
        "List the vector stores; make, show, change, fill and delete them.",
    ),
    "files": (
        "memoranda.cli.files:app",
        "List the uploaded files; upload, show, download and delete them.",
    ),
    "get": ("memoranda.cli.memories:get", "Show memories by id, with all their fields."),
    "list": ("memoranda.cli.memories:list_", "List memories, newest first."),
    "update": ("memoranda.cli.memories:update", "Change fields of a memory; the rest stays."),
    "delete": ("memoranda.cli.memories:delete", "Delete memories by id."),
    "memories": ("memoranda.cli.memories:memories", "List memories; show and delete one."),
    "forget": (
        "memoranda.cli.forget:forget",
        "Erase for good what ids, a scope, a text or other conditions name.",
    ),
    "facets": (
        "memoranda.cli.memories:facets",
        "Count memories by kind, scope, source, tag and month.",
    ),
    "duplicates": (
        "memoranda.cli.memories:duplicates",
        "List pairs of memories of one scope that say nearly the same, most alike first.",
    ),
    "facts": (
        "memoranda.cli.facts:app",
        "List facts, show where they come from, and undo changes of them.",
    ),
    "sessions": (
        "memoranda.cli.sessions:app",
        "List sessions; show, summarize, close and delete them.",
    ),
    "agents": (
        "memoranda.cli.agents:app",
        "List the agent profiles; show, create, change and delete them.",
    ),
    "responses": (
        "memoranda.cli.responses:app",
        "List the stored responses; show, cancel and delete them.",
    ),
    "conversations": (
        "memoranda.cli.conversations:app",
        "Show stored conversations and their items, and delete them.",
    ),
    "memory-stores": (
        "memoranda.cli.memory_stores:app",
        "List, create, show, change, archive and delete memory stores of agents, and their memories.",
    ),
    "stats": (
        "memoranda.cli.maintenance:stats",
        "Count what is remembered: by kind, and whether every index has it.",
    ),
    "export": (
        "memoranda.cli.export_import:export",
        "Write everything into a zip file, or memories as JSONL or as a bundle of Portable Memory.",
    ),
    "import": ("memoranda.cli.export_import:import_", "Import an export of Memoranda or of another system."),
    "reindex": ("memoranda.cli.maintenance:reindex", "Make the vectors that are missing."),
    "backfill": (
        "memoranda.cli.backfill:app",
        "Make what is missing of what is there already: embeddings, summaries, query-logs.",
    ),
    "jobs": (
        "memoranda.cli.jobs:app",
        "List background jobs; show, retry and cancel them.",
    ),
    "compact": (
        "memoranda.cli.maintenance:compact",
        "Give back what deleted memories still hold, on disk and in memory.",
    ),
    "usage": (
        "memoranda.cli.usage:usage",
        "Tell what was spent, by day and purpose: model calls, tokens, embedded texts.",
    ),
    "quotas": (
        "memoranda.cli.quotas:quotas",
        "Show the usage and quotas of a tenant, and set quotas.",
    ),
    "switches": (
        "memoranda.cli.switches:switches",
        "Show or set whether facts are extracted and summaries made, for a tenant or a channel.",
    ),
    "doctor": (
        "memoranda.cli.doctor:doctor",
        "Say what is in force, what is missing, and what to do about it.",
    ),
    "serve": ("memoranda.cli.serve:serve", "Serve the folder over HTTP until stopped."),
    "console": (
        "memoranda.cli.console:console",
        "Open the web console of the folder's server, or of one that runs until it is stopped.",
    ),
    "mcp": (
        "memoranda.cli.mcp:mcp",
        "Serve memory and documents to an MCP client at standard input and output.",
    ),
    "connect": (
        "memoranda.cli.connect.command:connect",
        "Write the configuration of an MCP client: this server, and hooks that remember every session.",
    ),
    "hook": (
        "memoranda.cli.hook:hook",
        "Answer a hook of a client: JSON at standard input, context at standard output.",
    ),
    "worker": (
        "memoranda.cli.serve:worker",
        "Do background work for the servers of a PostgreSQL database until stopped.",
    ),
    "demo": (
        "memoranda.cli.demo:demo",
        "Remember a sample conversation and Memoranda's own documents, then answer questions about them.",
    ),
    "eval": (
        "memoranda.cli.evals.command:app",
        "Measure how well recall works on questions whose answers are known.",
    ),
    "version": ("memoranda.cli.app:version_command", "Print the version."),
}
"""The function of each command, and its line in the list of commands. A module is imported when its command is called,
so that neither the list nor another command waits for its imports."""
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

    def format_commands(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

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


@app.callback()
def memoranda(
    show: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Memory and knowledge for AI agents, in one folder and no network."""


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
