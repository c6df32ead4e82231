"""How the help of a command names the value of an option: by what it is, where the option does not say."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

NAMES: dict[Any, str] = {int: "N", float: "NUMBER", str: "TEXT", Path: "PATH"}
FORMER = {"words"}
"""Values that are accepted for one release more, which no help offers."""


def name_values(command: Any) -> None:
    """Name the values of the options and arguments of a command, and of the commands below it."""
    for parameter in command.params:
        described = getattr(parameter, "type_descriptor", None)
        if described is None or parameter.metavar is not None or getattr(parameter, "is_flag", False):
            continue
        if not parameter.opts[0].startswith("-"):
            parameter.metavar = parameter.name.rstrip("_").upper()
        else:
            parameter.metavar = _named(described.annotation, parameter.name)
    for below in getattr(command, "commands", {}).values():
        name_values(below)


def _named(annotation: Any, name: str) -> str:
    """Return the name of a value: its choices, or what its type is called."""
    kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
    if get_origin(annotation) is Literal:
        return "|".join(str(value) for value in kinds if value not in FORMER)
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(str(member.value) for member in annotation if member.value not in FORMER)
    if get_origin(annotation) is list:
        return name.upper() if kinds[0] is str else _named(kinds[0], name)
    if kinds:
        return _named(kinds[0], name)
    return NAMES.get(annotation, "VALUE")
