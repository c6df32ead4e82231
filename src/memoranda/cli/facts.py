"""`memoranda facts`: which facts there are, where they come from, and how they change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from memoranda.cli.groups import group
from memoranda.cli.memories import show_page
from memoranda.cli.options import (
    After,
    AnyScope,
    Archived,
    AsOf,
    ConfigFile,
    Data,
    Json,
    Limit,
    Order,
    ScopeId,
    Settings,
    Since,
    Tags,
    Until,
    selection_of,
)
from memoranda.cli.output import beginning, emit, plain, rows, say
from memoranda.cli.product import configured, house
from memoranda.facts.history import FactVersion

Id = Annotated[str, typer.Argument(metavar="ID", help="The fact.")]

app = group()


@app.callback()
def facts(
    context: typer.Context,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List facts, show where they come from, and undo changes of them."""
    if context.invoked_subcommand is None:
        show_page(
            configured(data, config, settings),
            {"kinds": ["fact"]},
            20,
            None,
            "desc",
            as_json=as_json,
            what="facts",
        )


@app.command("list")
def list_(
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    tag: Tags = None,
    since: Since = None,
    until: Until = None,
    as_of: AsOf = None,
    archived: Archived = False,
    limit: Limit = 20,
    after: After = None,
    order: Order = "desc",
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List the facts that hold, newest first."""
    fields = selection_of(
        scope=scope, scope_id=scope_id, kinds=["fact"], tags=tag, since=since, until=until, as_of=as_of,
        archived=archived,
    )  # fmt: skip
    show_page(configured(data, config, settings), fields, limit, after, order, as_json=as_json, what="facts")


@app.command("extract")
def extract(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The session.")],
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Take facts out of what was said in a session since the last time."""
    with house(configured(data, config, settings)) as held:
        done = held.facts.extract(session)
        never = held.sessions.get(session).extraction == "off"
    if never:
        say(
            f"nothing in {plain(session)} may be read for facts: facts.extraction was off when it was said;"
            " memoranda sessions add --extract asks for it"
        )
    if as_json:
        emit(done)
    else:
        typer.echo(f"{done.kept} new facts, {done.joined} known already, {done.superseded} superseded")


@app.command("consolidate")
def consolidate(
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Make equivalent facts of one scope one fact each."""
    with house(configured(data, config, settings)) as held:
        done = held.facts.consolidate(**selection_of(scope=scope, scope_id=scope_id))
    if as_json:
        emit(done)
        return
    for one in done.merged:
        typer.echo(f"{one.id}  from {', '.join(one.consolidates)}")
    typer.echo(f"{len(done.merged)} groups consolidated, {done.left} left")


@app.command("history")
def history(
    id_: Id, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Show the versions of a fact: when each holds, and what became of it."""
    with house(configured(data, config, settings)) as held:
        found = held.facts.history(id_)
    if as_json:
        emit(found)
        return
    if not found.data:
        say(f"{id_} is no fact; only facts have versions")
    for version in found.data:
        typer.echo("\n".join(_version_lines(version)))


def _version_lines(version: FactVersion) -> Iterator[str]:
    until = "now" if version.ends is None else f"{version.ends:%Y-%m-%d}"
    state = "" if version.live else "  (not looked up)"
    yield f"{version.memory.id}  {version.begins:%Y-%m-%d} to {until}{state}  {beginning(version.memory.content)}"
    for change in version.changes:
        why = f": {change.why}" if change.why else ""
        others = f" by {', '.join(change.ids)}" if change.ids else ""
        yield plain(f"    {change.at:%Y-%m-%d %H:%M} {change.what}{others}{why}")


@app.command("undo")
def undo(
    id_: Id, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Take back the last change among the versions of a fact."""
    with house(configured(data, config, settings)) as held:
        done = held.facts.undo(id_)
    if as_json:
        emit(done)
    elif done.undone is None:
        typer.echo("there is nothing to take back")
    else:
        typer.echo(f"{done.undone} is taken back; these hold again: {', '.join(done.restored) or 'none'}")


@app.command("sweep")
def sweep(
    data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Archive facts that were not used for too long, and the least valuable of too many."""
    with house(configured(data, config, settings)) as held:
        done = held.facts.sweep()
    if as_json:
        emit(done)
    else:
        typer.echo("\n".join(rows({"unused": done.unused, "over the limit": done.over})))
