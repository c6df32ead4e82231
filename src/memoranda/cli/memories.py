"""`memoranda get`, `list`, `update`, `delete`, `duplicates`: memories by id and in lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from memoranda.cli.options import (
    After,
    AnyScope,
    Archived,
    AsOf,
    ConfigFile,
    Data,
    Filters,
    Json,
    Kinds,
    Limit,
    Order,
    ScopeId,
    Settings,
    Since,
    Source,
    Tags,
    Until,
    moment,
    pairs,
    selection_of,
)
from memoranda.cli.output import beginning, emit, memory_line, memory_lines, say
from memoranda.cli.product import Verbs, configured, memories
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput, NotFound
from memoranda.types import ChangeFields, Kind, Memory, SelectionFields

Ids = Annotated[list[str], typer.Argument(metavar="ID...", help="The ids of memories.")]


def get(
    ids: Ids, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Show memories by id, with all their fields."""
    with memories(configured(data, config, settings)) as verbs:
        found, missing = found_of(verbs, ids)
    if as_json:
        emit({"data": found})
    elif found:
        typer.echo("\n\n".join("\n".join(memory_lines(one)) for one in found))
    report_missing(missing)


def found_of(verbs: Verbs, ids: Iterable[str]) -> tuple[list[Memory], list[str]]:
    """The memories of these ids, each once, and the ids that name none."""
    found, missing = list[Memory](), list[str]()
    for id_ in dict.fromkeys(ids):
        try:
            found.append(verbs.get(id_))
        except NotFound:
            missing.append(id_)
    return found, missing


def report_missing(ids: list[str]) -> None:
    """Names ids of no memory.

    Raises:
        Exit: 1, when there are any.
    """
    for id_ in ids:
        say(f"memoranda: no memory {id_!r}")
    if ids:
        raise typer.Exit(1)


def list_(
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    kind: Kinds = None,
    tag: Tags = None,
    filter_: Filters = None,
    source: Source = None,
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
    """List memories, newest first."""
    fields = selection_of(
        scope=scope, scope_id=scope_id, kinds=kind, tags=tag, filters=filter_, source=source,
        since=since, until=until, as_of=as_of, archived=archived,
    )  # fmt: skip
    show_page(configured(data, config, settings), fields, limit, after, order, as_json=as_json)


def show_page(
    config: Config,
    fields: SelectionFields,
    limit: int,
    after: str | None,
    order: str,
    *,
    as_json: bool,
    what: str = "memories",
) -> None:
    """Prints a page of memories, and how to go on to the next."""
    with memories(config) as verbs:
        page = verbs.list(limit=limit, after=after, order=order, **fields)
    if as_json:
        emit(page)
        return
    if page.data:
        typer.echo("\n".join(map(memory_line, page.data)))
    else:
        say(f"no {what}")
    if page.has_more:
        say(f"there are more: add --after {page.last_id}")


def update(
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
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
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
    with memories(configured(data, config, settings)) as verbs:
        changed = verbs.update(id_, **fields)
    if as_json:
        emit(changed)
    else:
        typer.echo("\n".join(memory_lines(changed)))


def delete(
    ids: Ids, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Delete memories by id. To erase every trace of a person or a text, use forget."""
    deleted, missing = list[str](), list[str]()
    with memories(configured(data, config, settings)) as verbs:
        for id_ in dict.fromkeys(ids):
            try:
                verbs.delete(id_)
                deleted.append(id_)
            except NotFound:
                missing.append(id_)
    if as_json:
        emit({"deleted": deleted})
    elif deleted:
        typer.echo("\n".join(f"{id_}  deleted" for id_ in deleted))
    report_missing(missing)


def duplicates(
    scope: AnyScope = None,
    scope_id: ScopeId = None,
    kind: Kinds = None,
    limit: Limit = 100,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List pairs of memories of one scope that say nearly the same, most alike first."""
    fields = selection_of(scope=scope, scope_id=scope_id, kinds=kind)
    with memories(configured(data, config, settings)) as verbs:
        found = verbs.near_duplicates(limit=limit, **fields)
        texts = {} if as_json else {one.id: one.content for one in _both(verbs, found)}
    if as_json:
        emit({"data": found})
        return
    for pair in found:
        alike = f"cosine {pair.cosine:.3f}" if pair.cosine is not None else f"jaccard {pair.jaccard:.3f}"
        typer.echo(
            f"{alike}\n"
            + "\n".join(f"  {id_}  {beginning(texts.get(id_, ''))}" for id_ in (pair.first, pair.second))
        )
    if not found:
        say("no near-duplicates")


def _both(verbs: Verbs, found: Iterable[Any]) -> list[Memory]:
    return found_of(verbs, [id_ for pair in found for id_ in (pair.first, pair.second)])[0]
