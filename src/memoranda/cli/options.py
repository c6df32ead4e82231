"""The options that several commands have, and functions that read their values."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import msgspec
import typer

from memoranda.arguments import SelectionFields
from memoranda.clock import end_of, moment_of
from memoranda.errors import InvalidInput
from memoranda.types import KINDS, Kind

PLACES = ("session", "channel", "agent", "user")

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="The data folder [default: ./memoranda-data]."),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="The configuration [default: ./memoranda.yaml]."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A configuration key, before file and environment."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON on standard output and nothing else there.")]
Scope = Annotated[
    str | None,
    typer.Option(
        "--scope", metavar="SCOPE", help="session, channel, agent or user (with --scope-id), or global."
    ),
]
AnyScope = Annotated[
    str | None,
    typer.Option(
        "--scope", metavar="SCOPE", help="session, channel, agent or user (with --scope-id), global or all."
    ),
]


Places = Annotated[
    str | None,
    typer.Option(
        "--scope",
        metavar="SCOPE",
        help="session, channel, agent or user (any, or the one of --scope-id), global or all.",
    ),
]


def _known(given: list[str] | None) -> list[str] | None:
    for kind in given or []:
        if kind not in KINDS:
            raise typer.BadParameter(f"{kind!r} is no kind; use one of {', '.join(KINDS)}")
    return given


Kinds = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", callback=_known, help="Only this kind; repeat for more."),
]
Roles = Annotated[
    list[str] | None,
    typer.Option(
        "--role", metavar="ROLE", help="Only messages of this role: user, assistant, ...; repeat for more."
    ),
]
ScopeId = Annotated[str | None, typer.Option("--scope-id", metavar="ID", help="Which session, channel, ...")]
User = Annotated[
    str | None,
    typer.Option("--user", metavar="ID", help="Memories of this user alone, without everybody's."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only with this tag; repeated, with all.")]
Filters = Annotated[
    str | None,
    typer.Option("--filter", metavar="JSON", help="Conditions on metadata, as over HTTP."),
]
Source = Annotated[
    str | None, typer.Option("--source", help="Only from this source; a file's path for documents.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="MOMENT", help="Only from this moment on, in ISO 8601.")
]
Until = Annotated[str | None, typer.Option("--until", metavar="MOMENT", help="Only before this moment.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="MOMENT", help="As it was at this moment, in ISO 8601.")
]
Archived = Annotated[bool, typer.Option("--archived", help="Archived ones, too.")]
Limit = Annotated[int, typer.Option("--limit", help="How many at most.")]
After = Annotated[str | None, typer.Option("--after", metavar="ID", help="Only what comes after this one.")]
Order = Annotated[Literal["desc", "asc"], typer.Option("--order", help="Newest or oldest first.")]


def selection_of(
    *,
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    user: User = None,
    kind: Kinds = None,
    role: Roles = None,
    tag: Tags = None,
    filter_: Filters = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    archived: Archived = False,
) -> SelectionFields:
    """Return the fields of a selection that the options set."""
    place = scope_of(scope, scope_id, user)
    fields: SelectionFields = {
        "scopes": None if place is None else [place],
        "kinds": kinds_of(kind),
        "roles": role or None,
        "tags": tag or None,
        "filters": json_object(filter_, "--filter"),
        "source": source,
        "since": moment(since, "--since"),
        "until": moment(until, "--until"),
        "as_of": moment(as_of, "--as-of"),
        "include_archived": archived,
    }
    return cast(
        SelectionFields, {name: value for name, value in fields.items() if value not in (None, False)}
    )


def scope_of(
    scope: str | None,
    scope_id: str | None,
    user: str | None = None,
    *,
    everything: bool = True,
    any_id: bool = False,
) -> str | None:
    """Return `--scope` and `--scope-id`, or `--user`, as one scope, `session:ID` or `global`; None if none is given.

    `--scope session:ID` is the short form. Without `everything`, `all` is refused: it cannot be written to. With
    `any_id`, `session` alone means every session.
    """
    if user is not None:
        if scope is not None or scope_id is not None:
            raise typer.BadParameter(
                "is a scope itself; leave --scope and --scope-id out", param_hint="--user"
            )
        scope, scope_id = "user", user
    if scope is None:
        if scope_id is not None:
            raise typer.BadParameter(
                "needs --scope as well, such as --scope session", param_hint="--scope-id"
            )
        return None
    name, colon, id_ = scope.partition(":")
    whole = ("global", "all") if everything else ("global",)
    if scope in whole:
        if scope_id is not None:
            raise typer.BadParameter(
                f"does not go with --scope {scope}; leave it out", param_hint="--scope-id"
            )
        return scope
    if name not in PLACES:
        known = ", ".join((*PLACES, *whole))
        raise typer.BadParameter(f"{scope!r} is no scope here; use one of {known}", param_hint="--scope")
    if colon and scope_id is not None:
        raise typer.BadParameter("is given twice; --scope names an id already", param_hint="--scope-id")
    if any_id and scope == name and scope_id is None:
        return name
    if not (chosen_id := scope_id or id_):
        raise typer.BadParameter(f"{name} needs an id: add --scope-id ID", param_hint="--scope")
    return f"{name}:{chosen_id}"


def ids_of(scope: str) -> dict[str, str | None]:
    """Return the four ids of a memory in a scope: one of them is set, none for `global`."""
    name, _, id_ = scope.partition(":")
    return {f"{place}_id": id_ if place == name else None for place in PLACES}


def kinds_of(given: list[str] | None) -> list[Kind] | None:
    """Return the kinds of `--kind`, which are checked when the option is parsed; None for any."""
    return cast(list[Kind], given) if given else None


UPPER = frozenset({"--until", "--as-of"})


def moment(text: str | None, flag: str, *, begins: bool = False) -> datetime | None:
    """Return an ISO 8601 moment; without a zone it is UTC. A day is its midnight, and its end where the flag is an
    upper bound, unless `begins`."""
    if text is None:
        return None
    if flag in UPPER and not begins and (end := end_of(text, inside=flag != "--until")) is not None:
        return end
    try:
        return moment_of(text)
    except ValueError as exc:
        message = f"{text!r} is no ISO 8601 moment, such as 2026-05-01 or 2026-05-01T09:30:00+02:00"
        raise typer.BadParameter(message, param_hint=flag) from exc


def pairs(given: list[str] | None, flag: str) -> dict[str, Any]:
    """Return `key=value` arguments as a mapping. Values that are JSON (`3`, `true`, `["a"]`) are decoded."""
    values: dict[str, Any] = {}
    for word in given or []:
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise typer.BadParameter(f"{word!r} is not key=value", param_hint=flag)
        try:
            values[key] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            values[key] = text
    return values


def limits_of(given: list[str] | None, flag: str) -> dict[str, int | None]:
    """Return `name=number` arguments as a mapping; `null` is None."""
    limits: dict[str, int | None] = {}
    for word in given or []:
        name, _, value = word.partition("=")
        try:
            limits[name] = msgspec.json.decode(value, type=int | None)
        except msgspec.DecodeError as exc:
            raise InvalidInput(flag, f"{word!r} is not NAME=NUMBER or NAME=null") from exc
    return limits


@contextmanager
def named_by(flag: str, names: Collection[str]) -> Iterator[None]:
    """Name the option too in errors about one of the `names` that were given in it.

    Raises:
        InvalidInput: that of the block.
    """
    try:
        yield
    except InvalidInput as exc:
        if exc.field not in names:
            raise
        raise InvalidInput("", f"{flag} {exc}") from exc


def text_of(given: str, field: str) -> str:
    """Return a text of the command line; for `-`, the UTF-8 text of standard input without a byte order mark.

    Raises:
        InvalidInput: standard input is not UTF-8.
    """
    if given != "-":
        return given
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise InvalidInput(field, "standard input is not UTF-8 text") from exc


def some_text(given: str) -> str:
    """Return an argument that holds some text; a blank one is refused."""
    if not given.strip():
        raise typer.BadParameter("must hold some text")
    return given


def json_object(text: str | None, flag: str) -> dict[str, Any] | None:
    """Return a JSON object given as text."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.DecodeError as exc:
        raise InvalidInput(flag, f"is not a JSON object: {exc}") from exc
