"""Commands with commands of their own, such as `memoranda stores`."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from memoranda.cli.invocation import OPTIONS
from memoranda.cli.usage_errors import as_option, unknown_command
from memoranda.errors import InvalidInput


class Group(TyperGroup):
    """Commands below one name. Called without a command it lists; options of a command go after its name."""

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        if self.get_command(ctx, args[0]) is None:
            known = {name: f"{ctx.command_path} {name}" for name in self.commands}
            ctx.fail(unknown_command(args[0], known, ctx.command_path))
        if any(ctx.params.get(name) for name in OPTIONS):
            raise typer.BadParameter(f"options go after {args[0]!r}, not before it")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except InvalidInput as exc:
            command = self.commands.get(ctx.invoked_subcommand or "", self)
            raise InvalidInput("", as_option(str(exc), exc.field, command)) from exc


def group() -> typer.Typer:
    """Return a group that is called with or without a command."""
    return typer.Typer(cls=Group, add_completion=False, rich_markup_mode=None, invoke_without_command=True)
