"""What is wrong with a command line, as one sentence that names the word, what is allowed, and the fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from enum import Enum
from typing import Any, Literal, get_args, get_origin

import typer

from memoranda.cli.options import PLACES
from memoranda.errors import NotFound

UsageError: type[Any] = typer.BadParameter.__mro__[1]
"""The base of the errors of a command line, which typer does not export."""
NEEDED = {"int": "a whole number; write {flag}5", "float": "a number; write {flag}0.5"}
"""What a value must be, by the beginning of the name that the parser gives its error."""
OF_COMMANDS = ("--data", "--config", "--set", "--json")
"""The options that all commands share, see `Invocation`."""


def no_arguments(exc: Exception) -> bool:
    """Return True if a group was called alone, which shows its help."""
    return type(exc).__name__ == "NoArgsIsHelpError"


def sentence(exc: Any, command: Any = None) -> str:
    """The error of a command line in one sentence; `command` is the one that was called, where the error has none.

    The kind of an error follows from its attributes: what it says is for people, and may change.
    """
    path = exc.ctx.command_path if exc.ctx is not None else "memoranda"
    option = getattr(exc, "option_name", None)
    if isinstance(exc, typer.BadParameter):
        return _wrong_value(exc, exc.param, path)
    if option is None:
        said, listed, words = str(exc.message).rstrip(".").partition(" (")
        fix = f"put quotes around a text of several words, or see {path} --help"
        return f"{words.removesuffix(')')!r} is not expected; {fix}" if listed else said
    if hasattr(exc, "possibilities"):
        if exc.ctx.parent is None and option in OF_COMMANDS:
            return f"{option}: goes after the command; write memoranda COMMAND {option}"
        if option.removeprefix("--") in PLACES and any(
            "--scope" in param.opts for param in params_of(exc.ctx.command)
        ):
            return f"{option}: there is no such option; write --scope {option.removeprefix('--')}:ID"
        near = get_close_matches(option, exc.possibilities or (), n=1)
        fix = f"did you mean {near[0]}?" if near else f"{path} --help lists the options"
        return f"{option}: there is no such option; {fix}"
    if any(getattr(param, "is_flag", False) for param in params_of(command) if option in param.opts):
        return f"{option}: takes no value; write {option} alone"
    return f"{option}: needs a value, such as {option} VALUE"


def _wrong_value(exc: Any, param: Any, path: str) -> str:
    """A value that is missing or cannot be taken."""
    hint = exc.param_hint if isinstance(exc.param_hint, str) else None
    option = param is not None and param.param_type_name == "option"
    name = hint or (
        None if param is None else param.opts[0] if option else param.metavar or param.name.upper()
    )
    if hasattr(exc, "param_type"):
        return f"{name}: is missing; add it after {path}; {path} --help says what it is"
    flag = f"{name} " if option else ""
    message = _of_parser(exc, param, flag) or str(exc.message).rstrip(".")
    return message if name is None else f"{name}: {message}"


def _of_parser(exc: Any, param: Any, flag: str) -> str | None:
    """What is wrong with a value that its type refuses; None for errors of our own checks, which are sentences."""
    errors = getattr(exc.__cause__ or exc.__context__, "errors", None)
    if param is None or not callable(errors):
        return None
    found = errors()[0]
    given, kind = repr(found["input"]), str(found["type"]).partition("_")[0]
    if kind in NEEDED:
        return f"{given} is not {NEEDED[kind].format(flag=flag)}"
    if allowed := _choices(param.type_descriptor.annotation):
        return f"{given} is not known; use one of {', '.join(allowed)}"
    return None


def _choices(annotation: Any) -> list[str]:
    """The words that a type allows, where they are few."""
    if get_origin(annotation) is Literal:
        return [str(word) for word in get_args(annotation)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [str(member.value) for member in annotation]
    return [word for inner in get_args(annotation) for word in _choices(inner)]


def params_of(command: Any) -> Iterator[Any]:
    """The options and arguments of a command and of those below it."""
    for one in (command, *getattr(command, "commands", {}).values()):
        yield from getattr(one, "params", ())


def unknown_command(word: str, known: Mapping[str, str], path: str = "memoranda") -> str:
    """What to say of a command that does not exist: the nearest one of `known`, which maps words to what to write."""
    near = get_close_matches(word, known, n=1)
    fix = f"did you mean {known[near[0]]!r}?" if near else f"{path} --help lists the commands"
    return f"there is no command {word!r}; {fix}"


def as_option(message: str, field: str, command: Any) -> str:
    """The message about a field, with the option or argument in its place where a command, or one below it, has it."""
    field = field.removesuffix("[...]")
    flag = f"--{field.replace('_', '-')}"
    known = {name: name for param in params_of(command) for name in param.opts if name.startswith("-")}
    arguments = (param for param in params_of(command) if param.param_type_name == "argument")
    known |= {param.name: param.metavar or param.name.upper() for param in arguments}
    name = known.get(flag) or known.get(field)
    return name + message.removeprefix(field) if field and name else message


@contextmanager
def not_found_fix(fix: str) -> Iterator[None]:
    """Add the fix to the error of an id that does not exist.

    Raises:
        NotFound: what is done inside raised it.
    """
    try:
        yield
    except NotFound as exc:
        raise NotFound(f"{str(exc).rstrip('.')}; {fix}") from exc
