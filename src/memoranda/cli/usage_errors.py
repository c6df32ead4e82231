"""What is wrong with a command line, as one sentence that names the word, what is allowed, and the fix."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

import typer

UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""The base of the errors of a command line, which typer does not export."""
NEEDED = {"integer": "a whole number; write {flag}5", "number": "a number; write {flag}0.5"}
"""What a value must be, by the word that says so in the error of the parser."""
_EXTRA = re.compile(r"unexpected extra arguments? \((.*)\)|unexpected extra argument\(s\) \((.*)\)")


def no_arguments(exc: Exception) -> bool:
    """Return True if a group was called alone, which shows its help."""
    return type(exc).__name__ == "NoArgsIsHelpError"


def sentence(exc: Any) -> str:
    """The error of a command line in one sentence."""
    path = exc.ctx.command_path if exc.ctx is not None else "memoranda"
    param, option = getattr(exc, "param", None), getattr(exc, "option_name", None)
    if isinstance(exc, typer.BadParameter):
        return _wrong_value(exc, param, path)
    said = str(exc.format_message()).rstrip(".")
    if (extra := _EXTRA.search(said)) is not None:
        words = extra[1] or extra[2]
        return f"{words!r} is not expected; put quotes around a text of several words, or see {path} --help"
    if option is None:
        return said
    if "No such option" in said:
        near = get_close_matches(option, exc.possibilities or (), n=1)
        fix = f"did you mean {near[0]}?" if near else f"{path} --help lists the options"
        return f"{option}: there is no such option; {fix}"
    if "requires an argument" in said:
        return f"{option}: needs a value, such as {option} VALUE"
    return f"{option}: takes no value; write {option} alone"


def _wrong_value(exc: Any, param: Any, path: str) -> str:
    """A value that is missing or cannot be taken."""
    hint = exc.param_hint if isinstance(exc.param_hint, str) else None
    option = param is not None and param.param_type_name == "option"
    name = hint or (
        None if param is None else param.opts[0] if option else param.metavar or param.name.upper()
    )
    if type(exc).__name__ == "MissingParameter":
        return f"{name}: is missing; add it after {path}; {path} --help says what it is"
    message = str(exc.message).removeprefix("Value error, ").rstrip(".")
    given = _given(exc)
    for word, needed in NEEDED.items():
        if f"valid {word}" in message:
            message = f"{given} is not {needed.format(flag=f'{name} ' if option else '')}".lstrip()
    if " is not one of " in message:
        value, _, allowed = message.partition(" is not one of ")
        message = f"{value} is not known; use one of {allowed.replace(chr(39), '')}"
    return message if name is None else f"{name}: {message}"


def _given(exc: Any) -> str:
    """The value that was given, in quotes, where the parser's error has it."""
    errors = getattr(exc.__cause__ or exc.__context__, "errors", None)
    found = errors() if callable(errors) else []
    return (
        repr(found[0]["input"]) if found else str(exc.message).partition(" is not")[0].removeprefix("Value ")
    )


def unknown_command(word: str, known: Mapping[str, str], path: str = "memoranda") -> str:
    """What to say of a command that does not exist: the nearest one of `known`, which maps words to what to write."""
    near = get_close_matches(word, known, n=1)
    fix = f"did you mean {known[near[0]]!r}?" if near else f"{path} --help lists the commands"
    return f"there is no command {word!r}; {fix}"


def as_option(message: str, field: str, command: Any) -> str:
    """The message about a field, with the option in its place where a command, or one below it, has that option."""
    flag = f"--{field.replace('_', '-')}"
    commands = [command, *getattr(command, "commands", {}).values()]
    known = {name for one in commands for param in one.params for name in param.opts}
    return flag + message.removeprefix(field) if field and flag in known else message
