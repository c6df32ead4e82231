"""docs/cli.md knows every command and every option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from memoranda.cli.app import app
from memoranda.cli.commands import COMMANDS

TEXT = (Path(__file__).parents[2] / "docs" / "cli.md").read_text("utf-8")
GROUP = typer.main.get_command(app)
CONTEXT = typer.Context(GROUP)
OWN = [name for name in COMMANDS if name != "eval"]


def tree() -> Iterator[tuple[str, Any]]:
    """Every command with the words that call it: `stats`, `stores files`, ..."""
    for name in OWN:
        command = GROUP.get_command(CONTEXT, name)  # type: ignore[attr-defined]
        yield name, command
        for below, one in getattr(command, "commands", {}).items():
            yield f"{name} {below}", one


TREE = dict(tree())


def section(name: str) -> str:
    """What the page says under the heading that names the command, and about every command."""
    parts = re.split(r"^## (.+)$", TEXT, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    own = [body for heading, body in found.items() if name in heading.split(", ")]
    return "".join([parts[0], found["Options of every command"], *own])


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_is_listed(name: str) -> None:
    assert f"| `memoranda {name}" in TEXT


@pytest.mark.parametrize("name", [name for name in TREE if " " in name])
def test_commands_below_another_are_listed(name: str) -> None:
    assert f"`{name}" in section(name.split()[0])


@pytest.mark.parametrize("name", TREE)
def test_every_option_is_documented(name: str) -> None:
    command = TREE[name]
    options = [flag for each in command.params if each.param_type_name == "option" for flag in each.opts]
    for flag in options:
        assert re.search(rf"`{flag}\b", section(name.split()[0])), f"{flag} of {name}"
    assert {"--json"} <= {*options} or name in ("serve", "mcp", "connect", "console", "hook", "worker")
    assert {"--data", "--config", "--set"} <= {*options} or name == "version"


def test_options_of_the_program_itself_are_documented() -> None:
    for each in GROUP.params:
        for flag in each.opts:
            assert flag in TEXT


@pytest.mark.parametrize("name", TREE)
def test_every_command_and_option_says_what_it_is(name: str) -> None:
    command = TREE[name]
    assert command.help
    assert all(each.help for each in command.params)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    command = GROUP.get_command(CONTEXT, name)  # type: ignore[attr-defined]
    assert " ".join(command.help.split()).startswith(COMMANDS[name][1])
