"""Every command and every option says what it is."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from memoranda.cli.app import app
from memoranda.cli.commands import CALLS, COMMANDS

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


@pytest.mark.parametrize("name", TREE)
def test_every_command_has_the_common_options(name: str) -> None:
    command = TREE[name]
    options = [flag for each in command.params if each.param_type_name == "option" for flag in each.opts]
    assert {"--json"} <= {*options} or name in ("serve", "mcp", "connect", "console", "hook", "worker")
    assert {"--data", "--config", "--set"} <= {*options} or name == "version"


@pytest.mark.parametrize("name", TREE)
def test_every_command_and_option_says_what_it_is(name: str) -> None:
    command = TREE[name]
    assert command.help
    assert all(each.help for each in command.params)


@pytest.mark.parametrize("call", [call for calls in CALLS.values() for call in calls])
def test_an_example_is_a_call_of_its_command(call: str) -> None:
    name, *words = shlex.split(call.partition(" <")[0])
    command = GROUP.get_command(CONTEXT, name)  # type: ignore[attr-defined]
    if words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    command.make_context(name, words)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_the_command_says(name: str) -> None:
    command = GROUP.get_command(CONTEXT, name)  # type: ignore[attr-defined]
    assert " ".join(command.help.split()).startswith(COMMANDS[name][1])
