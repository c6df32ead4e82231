"""Commands made of operations. Their arguments are the parameters of the path, then what the method requires."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any

import msgspec
import typer

from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.output import plain, set_fields_text
from memoranda.store.operations import PARAMETER, Operation

Texts = Mapping[str, Callable[[Any], str]]
"""What commands print without `--json`, by the name of the operation; others print the fields that are set."""


def add_commands(app: typer.Typer, feature: str, operations: Sequence[Operation], texts: Texts) -> None:
    """Add the operations of a feature that have a command to a group of commands."""
    for operation in operations:
        if operation.command:
            app.command(operation.command)(_command(feature, operation, texts.get(operation.name, _text)))


def _command(feature: str, operation: Operation, text: Callable[[Any], str]) -> Callable[..., None]:
    def run(invocation: Invocation, **given: Any) -> None:
        method = getattr(attrgetter(feature)(invocation.product), operation.name)
        result = method(**given)
        shown = result if operation.shows is None else operation.shows.of(result, given)
        invocation.show(shown, text(shown))

    first = inspect.Parameter("invocation", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    arguments = [_argument(own, name) for own, name in _required(operation)]
    run.__signature__ = inspect.Signature([first, *arguments])  # type: ignore[attr-defined]
    run.__doc__ = f"{operation.summary}."
    return common_options()(run)


def _required(operation: Operation) -> list[tuple[str, str]]:
    """Return the arguments of the method that a command asks for, each with the name that it has in the command."""
    in_path = PARAMETER.findall(operation.path)
    beside = [] if operation.input is None else msgspec.structs.fields(operation.input)
    names = [field.name for field in beside if field.required]
    return [*zip(operation.parameters, in_path, strict=True), *zip(names, names, strict=True)]


def _argument(own: str, name: str) -> inspect.Parameter:
    what = name.removesuffix("_id")
    about = "Its id." if what == "id" else f"The {what}."
    shown = Annotated[str, typer.Argument(metavar=what.upper(), help=about)]
    return inspect.Parameter(own, inspect.Parameter.KEYWORD_ONLY, annotation=shown)


def _text(value: Any) -> str:
    if getattr(value, "deleted", False) is True:
        return f"{plain(value.id)}  deleted"
    return set_fields_text(value, leave_out=("object",))
