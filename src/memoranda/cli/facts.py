"""`memoranda facts`: list facts, show their versions and which were valid when, extract, confirm, undo, archive."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from memoranda.arguments import SelectionFields
from memoranda.cli.derived import add_commands
from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options, selection_options
from memoranda.cli.options import After, AnyScope, AsOf, Limit, Order, ScopeId, User, selection_of
from memoranda.cli.output import beginning, memory_line, plain, rows, say
from memoranda.config.sections import Config
from memoranda.facts.history import FactVersion, Undone
from memoranda.facts.maintenance import Swept
from memoranda.facts.operations import OPERATIONS
from memoranda.providers.chat import QUOTING
from memoranda.types import Memory

BY_RULES = "they are extracted by rules, which find few"
OFF = (
    "they are extracted only where a switch or a request asks for it: facts.extraction is off by default; set it to"
    " lazy, with a language model (model.url), or set facts.capture_rules for the few that rules find without one"
)
Id = Annotated[str, typer.Argument(metavar="ID", help="The fact.")]

app = group()


@app.callback()
@common_options()
def facts(invocation: Invocation, context: typer.Context) -> None:
    """List facts, show where they come from, and undo changes of them."""
    if context.invoked_subcommand is None:
        _list(invocation, {}, 20, None, "desc")


@app.command("list")
@common_options()
@selection_options(without=("kind", "role", "filter_", "source"))
def list_(
    invocation: Invocation,
    *,
    selection: SelectionFields,
    limit: Limit = 20,
    after: After = None,
    order: Order = "desc",
) -> None:
    """List the facts that hold, newest first."""
    _list(invocation, selection, limit, after, order)


def _list(
    invocation: Invocation, selection: SelectionFields, limit: int, after: str | None, order: Order
) -> None:
    facts_alone: SelectionFields = {**selection, "kinds": ["fact"]}
    page = invocation.memories.list(limit=limit, after=after, order=order, **facts_alone)
    invocation.show_page(page, memory_line, f"no facts; {extracted_by(invocation.config)[1]}")


def extracted_by(config: Config) -> tuple[bool, str]:
    """Return whether the settings of facts are as they should be, and a sentence: whether facts are extracted from
    conversations, by what, and the setting that changes it."""
    settings = config.facts
    quotes_only = (config.model.url or QUOTING).partition(":")[0] == QUOTING
    if settings.extraction != "off" and quotes_only:
        return False, f"{BY_RULES}, as no language model is configured: set model.url and model.name"
    if settings.extraction != "off":
        return True, f"they are extracted by the language model (facts.extraction: {settings.extraction})"
    if settings.capture_rules:
        return True, f"{BY_RULES} (facts.capture_rules); with facts.extraction a language model extracts them"
    return True, OFF


@app.command("extract")
@common_options()
def extract(
    invocation: Invocation, session: Annotated[str, typer.Argument(metavar="SESSION", help="The session.")]
) -> None:
    """Take facts out of what was said in a session since the last time."""
    extracted = invocation.product.facts.extract(session)
    if invocation.product.sessions.get(session).extraction == "off":
        say(
            f"nothing in {plain(session)} may be read for facts: facts.extraction was off when it was said;"
            " memoranda sessions add --extract asks for it"
        )
    invocation.show(
        extracted,
        f"{extracted.kept} new facts, {extracted.joined} known already, {extracted.superseded} superseded",
    )


@app.command("consolidate")
@common_options()
def consolidate(
    invocation: Invocation, scope: AnyScope = None, scope_id: ScopeId = None, user: User = None
) -> None:
    """Make equivalent facts of one scope one fact each."""
    result = invocation.product.facts.consolidate(**selection_of(scope=scope, scope_id=scope_id, user=user))
    lines = [f"{fact.id}  from {', '.join(fact.consolidates)}" for fact in result.merged]
    left = "" if result.reason is None else f": {result.reason}"
    lines.append(f"{len(result.merged)} groups consolidated, {result.left} left{left}")
    invocation.show(result, "\n".join(lines))


@app.command("timeline")
@common_options()
def timeline(
    invocation: Invocation,
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    user: User = None,
    as_of: AsOf = None,
    text: Annotated[str, typer.Option("--text", metavar="WORDS", help="Words that a version contains.")] = "",
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List facts with the versions that they superseded, and what held at a moment."""
    fields = selection_of(scope=scope, scope_id=scope_id, user=user, as_of=as_of)
    found = invocation.product.facts.timeline(
        scopes=fields.get("scopes"), at=fields.get("as_of"), text=text, limit=limit, after=after
    )
    lines = [f"{found.holding} of {found.total} facts hold"]
    for chain in found.data:
        lines.append("")
        for fact in chain.facts:
            until = "now" if fact.ends is None else f"{fact.ends:%Y-%m-%d}"
            mark = "*" if fact.holds else " "
            lines.append(f"{mark} {fact.begins:%Y-%m-%d} to {until:10}  {beginning(fact.memory.content)}")
    invocation.show(found, "\n".join(lines))
    if found.has_more and not invocation.as_json:
        say(f"there are more: add --after {found.last_id}")


@app.command("history")
@common_options()
def history(invocation: Invocation, id_: Id) -> None:
    """Show the versions of a fact: when each holds, and what became of it."""
    versions = invocation.product.facts.history(id_)
    lines = [line for version in versions.data for line in _version_lines(version)]
    invocation.show(versions, "\n".join(lines))
    if not versions.data and not invocation.as_json:
        say(f"{id_} is no fact; only facts have versions")


def _version_lines(version: FactVersion) -> Iterator[str]:
    until = "now" if version.ends is None else f"{version.ends:%Y-%m-%d}"
    state = "" if version.live else "  (not looked up)"
    yield f"{version.memory.id}  {version.begins:%Y-%m-%d} to {until}{state}  {beginning(version.memory.content)}"
    for change in version.changes:
        why = f": {change.why}" if change.why else ""
        why += f', "{change.quote}"' if change.quote else ""
        others = f" by {', '.join(change.ids)}" if change.ids else ""
        yield plain(f"    {change.at:%Y-%m-%d %H:%M} {change.what}{others}{why}")


def _undone(result: Undone) -> str:
    if result.undone is None:
        return "there is nothing to take back"
    return f"{result.undone} is taken back; these hold again: {', '.join(result.restored) or 'none'}"


def _swept(archived: Swept) -> str:
    return "\n".join(rows({"unused": archived.unused, "over the limit": archived.over}))


def _confirmed(fact: Memory) -> str:
    return f"confirmed  {memory_line(fact)}"


add_commands(app, "facts", OPERATIONS, {"confirm": _confirmed, "undo": _undone, "sweep": _swept})
