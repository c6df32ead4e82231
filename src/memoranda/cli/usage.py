"""`memoranda usage`: usage by day and purpose, and the limits of a day."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from memoranda.app.costs import UsageReport
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import limits_of, moment, named_by
from memoranda.cli.output import plain, rows
from memoranda.store.usage import COUNTS

SHORT = ("times", "calls", "in", "out", "texts", "embedded")


@common_options(creates_folder_with="limit")
def usage(
    invocation: Invocation,
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
) -> None:
    """Tell what was spent, by day and purpose: model calls, tokens, embedded texts."""
    first, last = moment(since, "--since"), moment(until, "--until", begins=True)
    if changes := limits_of(limit, "--limit"):
        with named_by("--limit", changes):
            invocation.product.set_spending(changes, tenant)
    report = invocation.product.usage(
        since=None if first is None else first.date(),
        until=None if last is None else last.date(),
        tenant=tenant,
    )
    invocation.show(report, _table(report))


def _table(report: UsageReport) -> str:
    lines = [f"{'day':<10}  {'purpose':<12}" + "".join(f"{name:>12}" for name in SHORT)]
    if report.cost is not None:
        lines[0] += f"{report.currency:>12}"
    for usage in report.data:
        counts = "".join(f"{getattr(usage, name):>12,}" for name in COUNTS)
        cost = "" if usage.cost is None else f"{usage.cost:>12.4f}"
        lines.append(f"{usage.day:%Y-%m-%d}  {plain(usage.purpose):<12}{counts}{cost}")
    if report.cost is not None:
        lines.append(f"{'in all':<24}{report.cost:>{12 * len(COUNTS) + 12}.4f}")
    lines.append("a day's limits")
    return "\n".join([*lines, *rows(msgspec.structs.asdict(report.limits), 2)])
