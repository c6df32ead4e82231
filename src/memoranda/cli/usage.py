"""`memoranda usage`: what was spent, and what may be."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from memoranda.app.costs import UsageReport
from memoranda.cli.options import ConfigFile, Data, Json, Settings, moment
from memoranda.cli.output import emit, plain, rows
from memoranda.cli.product import configured, house
from memoranda.errors import InvalidInput
from memoranda.store.usage import COUNTS

SHORT = ("times", "calls", "in", "out", "texts", "embedded")


def usage(
    since: Annotated[
        str | None, typer.Option(metavar="DAY", help="The first day, UTC [default: 29 days ago].")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="DAY", help="The last day [default: today].")] = None,
    tenant: Annotated[str | None, typer.Option(help="Whose, when not one's own.")] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER", help="Set what may be spent in a day; null is the default again."
        ),
    ] = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Tell what was spent, by day and purpose: model calls, tokens, embedded texts."""
    first, last = moment(since, "--since"), moment(until, "--until")
    with house(configured(data, config, settings)) as held:
        if changes := _changes(limit):
            held.set_spending(changes, tenant)
        told = held.usage(
            since=None if first is None else first.date(),
            until=None if last is None else last.date(),
            tenant=tenant,
        )
    if as_json:
        emit(told)
    else:
        typer.echo(_table(told))


def _changes(given: list[str] | None) -> dict[str, int | None]:
    changes: dict[str, int | None] = {}
    for word in given or []:
        name, _, value = word.partition("=")
        try:
            changes[name] = msgspec.json.decode(value, type=int | None)
        except msgspec.DecodeError as exc:
            raise InvalidInput("--limit", f"{word!r} is not NAME=NUMBER or NAME=null") from exc
    return changes


def _table(told: UsageReport) -> str:
    lines = [f"{'day':<10}  {'purpose':<12}" + "".join(f"{name:>12}" for name in SHORT)]
    for one in told.data:
        counts = "".join(f"{getattr(one, name):>12,}" for name in COUNTS)
        lines.append(f"{one.day:%Y-%m-%d}  {plain(one.purpose):<12}{counts}")
    lines.append("a day's limits")
    return "\n".join([*lines, *rows(msgspec.structs.asdict(told.limits), 2)])
