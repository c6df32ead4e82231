"""`memoranda get`, `list`, `facets`, `update`, `delete`, `duplicates`, `memories`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memoranda.arguments import ChangeFields, SelectionFields
from memoranda.cli.derived import add_commands
from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options, selection_options
from memoranda.cli.options import (
    After,
    AnyScope,
    Kinds,
    Limit,
    Order,
    ScopeId,
    User,
    moment,
    pairs,
    selection_of,
)
from memoranda.cli.output import beginning, emit, memory_line, memory_text, say
from memoranda.cli.progress import bar
from memoranda.errors import InvalidInput, NotFound
from memoranda.memories.operations import OPERATIONS
from memoranda.memories.overviews import FacetValue, NearDuplicate
from memoranda.types import Kind, Memory

if TYPE_CHECKING:
    from memoranda.app.blocking.features import BlockingMemories

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of memories.")]


@common_options()
def get(invocation: Invocation, ids: Ids) -> None:
    """Show memories by id, with all their fields."""
    found, missing = get_memories(invocation.memories, ids)
    invocation.show({"data": found}, "\n\n".join(map(memory_text, found)))
    report_missing(missing)


def get_memories(memories: BlockingMemories, ids: Iterable[str]) -> tuple[list[Memory], list[str]]:
    """Return the memories with these ids, each once, and the ids that do not exist."""
    found, missing = list[Memory](), list[str]()
    for id_ in dict.fromkeys(ids):
        try:
            found.append(memories.get(id_))
        except NotFound:
            missing.append(id_)
    return found, missing


def report_missing(ids: list[str]) -> None:
    """Print the ids that do not exist.

    Raises:
        Exit: 1, if there are any.
    """
    for id_ in ids:
        say(f"memoranda: no memory {id_!r}")
    if ids:
        raise typer.Exit(1)


@common_options()
@selection_options()
def list_(
    invocation: Invocation,
    *,
    selection: SelectionFields,
    limit: Limit = 20,
    after: After = None,
    order: Order = "desc",
) -> None:
    """List memories, newest first."""
    page = invocation.memories.list(limit=limit, after=after, order=order, **selection)
    invocation.show_page(page, memory_line, "no memories")


@common_options()
@selection_options()
def facets(
    invocation: Invocation,
    *,
    selection: SelectionFields,
    limit: Limit = 20,
    time_zone: Annotated[
        str, typer.Option(metavar="ZONE", help="Where months begin, such as Europe/Berlin.")
    ] = "UTC",
) -> None:
    """Count memories by kind, scope, source, tag and month."""
    counted = invocation.memories.facets(limit=limit, time_zone=time_zone, **selection)
    lines = [f"{counted.total:>9,}  memories"]
    for name in ("kinds", "scopes", "sources", "tags", "months"):
        values: list[FacetValue] = getattr(counted, name)
        lines += (
            ["", f"{name}:", *(f"{facet.count:>9,}  {facet.value}" for facet in values)] if values else []
        )
    invocation.show(counted, "\n".join(lines))


@common_options()
def update(
    invocation: Invocation,
    id_: Annotated[str, typer.Argument(metavar="ID", help="The memory.")],
    content: Annotated[str | None, typer.Option("--content", metavar="TEXT", help="Another text.")] = None,
    kind: Annotated[Kind | None, typer.Option(help="Another kind.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="A tag, in place of those it has; repeat for more.")
    ] = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Metadata, in place of what it has; repeat for more."),
    ] = None,
    role: Annotated[str | None, typer.Option(help="Who said it: user, assistant, ...")] = None,
    source: Annotated[str | None, typer.Option(help="Where it comes from.")] = None,
    importance: Annotated[int | None, typer.Option(help="How much it matters, 0 and up.")] = None,
    occurred_at: Annotated[
        str | None, typer.Option(metavar="MOMENT", help="When it was said, in ISO 8601.")
    ] = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--unarchive", help="Leave it out of searches, or not.")
    ] = None,
) -> None:
    """Change fields of a memory; the rest stays."""
    given: dict[str, Any] = {
        "content": content,
        "kind": kind,
        "tags": tag or None,
        "metadata": pairs(meta, "--meta") or None,
        "role": role,
        "source": source,
        "importance": importance,
        "occurred_at": moment(occurred_at, "--occurred-at"),
        "archived": archive,
    }
    fields: ChangeFields = {name: value for name, value in given.items() if value is not None}  # type: ignore[assignment]
    if not fields:
        raise InvalidInput("", "name what to change, such as --content TEXT; memoranda update --help")
    memory = invocation.memories.update(id_, **fields)
    invocation.show(memory, memory_text(memory))


@common_options()
def delete(invocation: Invocation, ids: Ids) -> None:
    """Delete memories by id. To erase every trace of a person or a text, use forget."""
    memories = invocation.memories  # opened outside of `try`: a missing folder is not a missing memory
    deleted, missing = list[str](), list[str]()
    for id_ in dict.fromkeys(ids):
        try:
            memories.delete(id_)
            deleted.append(id_)
        except NotFound:
            missing.append(id_)
    invocation.show({"deleted": deleted}, "\n".join(f"{id_}  deleted" for id_ in deleted))
    report_missing(missing)


@common_options()
def duplicates(
    invocation: Invocation,
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    user: User = None,
    kind: Kinds = None,
    limit: Limit = 100,
) -> None:
    """List pairs of memories of one scope that say nearly the same, most alike first. Memories are compared from the
    newest on, until there are enough pairs."""
    fields = selection_of(scope=scope, scope_id=scope_id, user=user, kind=kind)
    found: list[NearDuplicate] = []
    compared, page = 0, None
    with bar("comparing", quiet=invocation.as_json) as report:
        while page is None or (page.has_more and len(found) < limit):
            page = invocation.memories.near_duplicates(
                limit=limit, after=None if page is None else page.last_id, **fields
            )
            found += page.data
            compared += page.compared
            report(compared, None, "")
    more = page.has_more or len(found) > limit
    found = sorted(found, key=lambda pair: pair.likeness, reverse=True)[:limit]
    if invocation.as_json:
        emit({"data": found, "compared": compared, "has_more": more})
        return
    ids = [id_ for pair in found for id_ in (pair.first, pair.second)]
    texts = {memory.id: memory.content for memory in get_memories(invocation.memories, ids)[0]}
    for pair in found:
        alike = f"cosine {pair.cosine:.3f}" if pair.cosine is not None else f"jaccard {pair.jaccard:.3f}"
        typer.echo(alike)
        for id_ in (pair.first, pair.second):
            typer.echo(f"  {id_}  {beginning(texts.get(id_, ''))}")
    if not found:
        say("no near-duplicates")
    elif more:
        say(f"the {compared:,} newest memories were compared; a greater --limit shows more pairs")


memories = group()


@memories.callback()
@common_options()
def _memories(invocation: Invocation, context: typer.Context) -> None:
    """List memories; show and delete one."""
    if context.invoked_subcommand is None:
        invocation.show_page(invocation.memories.list(), memory_line, "no memories")


add_commands(memories, "memories", OPERATIONS, {"get": memory_text})
