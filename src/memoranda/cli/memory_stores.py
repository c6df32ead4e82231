"""`memoranda memory-stores`: memory stores of agents, and the texts at paths in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import Limit, json_object, text_of
from memoranda.cli.output import beginning, plain, say, set_fields_text
from memoranda.cli.usage_errors import not_found_fix
from memoranda.errors import InvalidInput, NotFound
from memoranda.memory_stores.memories import Item
from memoranda.memory_stores.values import (
    MemoryPrefix,
    MemoryStore,
    NewStore,
    NewStoreMemory,
    Page,
    PathTaken,
    StoreChange,
    StoreMemory,
    StoreMemoryChange,
    checked_path,
)

if TYPE_CHECKING:
    from memoranda.app.blocking.features import BlockingMemoryStores, BlockingStoreMemories

T = TypeVar("T")
ALL = 100
"""Rows of one page of a list that is read whole."""
SHOWN = 20
"""Stores in an error."""
Store = Annotated[str, typer.Argument(metavar="ID|NAME", help="The memory store.")]
AnyPath = Annotated[str, typer.Argument(metavar="PATH|ID", help="The path of a memory, or its id.")]
Description = Annotated[
    str | None, typer.Option("--description", metavar="TEXT", help="What is in the store.")
]
Token = Annotated[str | None, typer.Option("--page", metavar="TOKEN", help="The page that a list names.")]

app = group()


@app.callback()
@common_options()
def memory_stores(invocation: Invocation, context: typer.Context) -> None:
    """List, create, show, change, archive and delete memory stores of agents, and their memories."""
    if context.invoked_subcommand is None:
        _list(invocation, 20, None, False)


@app.command("list")
@common_options()
def list_(
    invocation: Invocation,
    limit: Limit = 20,
    page: Token = None,
    archived: Annotated[bool, typer.Option("--archived", help="Archived ones, too.")] = False,
) -> None:
    """List the memory stores, newest first."""
    _list(invocation, limit, page, archived)


def _list(invocation: Invocation, limit: int, page: str | None, archived: bool) -> None:
    stores = invocation.product.memory_stores.list(limit=limit, page=page, include_archived=archived)
    _show_page(invocation, stores, _store_line, "no memory stores; memoranda memory-stores create makes one")


@app.command("show")
@common_options()
def show(invocation: Invocation, store: Store) -> None:
    """Show a memory store, with its metadata."""
    memory_store = _find(invocation, store)
    invocation.show(memory_store, set_fields_text(memory_store, leave_out=("type",)))


@app.command("create")
@common_options(creates_folder=True)
def create(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="Its name.")],
    description: Description = None,
    metadata: Annotated[
        str | None, typer.Option("--metadata", metavar="JSON", help="Texts by key, as a JSON object.")
    ] = None,
) -> None:
    """Create a memory store."""
    new = NewStore(
        name=name, description=description or "", metadata=json_object(metadata, "--metadata") or {}
    )
    store = invocation.product.memory_stores.create(new)
    invocation.show(store, _store_line(store))


@app.command("update")
@common_options()
def update(
    invocation: Invocation,
    store: Store,
    name: Annotated[str | None, typer.Option("--name", help="Another name.")] = None,
    description: Description = None,
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata", metavar="JSON", help="Keys to change, as a JSON object; null removes one."
        ),
    ] = None,
) -> None:
    """Change fields of a memory store; the rest stays."""
    change = StoreChange(name=name, description=description, metadata=json_object(metadata, "--metadata"))
    if change == StoreChange():
        says = "name what to change, such as --name NAME; memoranda memory-stores update --help"
        raise InvalidInput("", says)
    changed = invocation.product.memory_stores.update(_find(invocation, store).id, change)
    invocation.show(changed, set_fields_text(changed, leave_out=("type",)))


@app.command("archive")
@common_options()
def archive(invocation: Invocation, store: Store) -> None:
    """Make a memory store read-only, for good."""
    archived = invocation.product.memory_stores.archive(_find(invocation, store).id)
    invocation.show(archived, _store_line(archived))


@app.command("delete")
@common_options()
def delete(invocation: Invocation, store: Store) -> None:
    """Delete a memory store, with its memories and their versions."""
    memory_store = _find(invocation, store)
    invocation.product.memory_stores.delete(memory_store.id)
    invocation.show(
        {"id": memory_store.id, "deleted": True}, f"{plain(memory_store.name)} {memory_store.id} is deleted"
    )


@app.command("memories")
@common_options()
def memories(
    invocation: Invocation,
    store: Store,
    path_prefix: Annotated[
        str, typer.Option("--path-prefix", metavar="PATH", help="Only below this directory, such as /notes/.")
    ] = "/",
    depth: Annotated[
        int, typer.Option("--depth", help="1: a directory in place of what is in it; 0: every memory.")
    ] = 0,
    limit: Limit = 20,
    page: Token = None,
) -> None:
    """List the memories of a memory store by path, without their texts."""
    items = _memories(invocation, store).list(path_prefix=path_prefix, depth=depth, limit=limit, page=page)
    _show_page(invocation, items, _item_line, "no memories; memoranda memory-stores write-memory writes one")


@app.command("show-memory")
@common_options()
def show_memory(invocation: Invocation, store: Store, path: AnyPath) -> None:
    """Show a memory of a memory store: its fields, then its text."""
    in_store = _memories(invocation, store)
    memory = in_store.get(_find_memory(in_store, path).id)
    fields = set_fields_text(memory, leave_out=("type", "content"))
    invocation.show(memory, f"{fields}\n\n{plain(memory.content or '')}")


@app.command("write-memory")
@common_options()
def write_memory(
    invocation: Invocation,
    store: Store,
    path: Annotated[str, typer.Argument(metavar="PATH", help="Its path, such as /notes/todo.md.")],
    content: Annotated[str, typer.Argument(metavar="TEXT", help="Its text; - reads it from standard input.")],
) -> None:
    """Write a text at a path of a memory store, in place of the one there."""
    text = text_of(content, "content")
    in_store = _memories(invocation, store)
    try:
        memory = in_store.create(NewStoreMemory(path=path, content=text))
    except PathTaken as taken:
        if taken.path != path:
            raise
        memory = in_store.update(taken.memory_id, StoreMemoryChange(content=text))
    invocation.show(memory, _item_line(memory))


@app.command("delete-memory")
@common_options()
def delete_memory(invocation: Invocation, store: Store, path: AnyPath) -> None:
    """Delete a memory of a memory store; its versions stay."""
    in_store = _memories(invocation, store)
    memory = _find_memory(in_store, path)
    in_store.delete(memory.id)
    invocation.show({"id": memory.id, "deleted": True}, f"{plain(memory.path)} {memory.id} is deleted")


# --- stores and memories by name -------------------------------------------------------------------


def _find(invocation: Invocation, name: str) -> MemoryStore:
    """Return the memory store with this id, else the only one of this name.

    Raises:
        NotFound: there is none; the message lists the newest stores.
        InvalidInput: several stores have the name.
    """
    stores: BlockingMemoryStores = invocation.product.memory_stores
    missing: NotFound | None = None
    if name.startswith("memstore_"):
        try:
            with not_found_fix("memoranda memory-stores lists them"):
                return stores.get(name)
        except NotFound as exc:
            missing = exc
    named = [store for store in _all(stores.list, include_archived=True) if store.name == name]
    if len(named) > 1:
        ids = ", ".join(store.id for store in named)
        raise InvalidInput("store", f"{len(named)} memory stores are named {name!r}; use an id: {ids}")
    if not named and missing is not None:
        raise missing
    if not named:
        newest = stores.list(limit=SHOWN)
        known = ", ".join(dict.fromkeys(store.name for store in newest.data)) or "none"
        more = " and more" if newest.next_page else ""
        raise NotFound(f"no memory store is named {name!r}; there are: {plain(known)}{more}")
    return named[0]


def _memories(invocation: Invocation, store: str) -> BlockingStoreMemories:
    return invocation.product.memory_stores.memories(_find(invocation, store).id)


def _find_memory(in_store: BlockingStoreMemories, name: str) -> StoreMemory:
    """Return the memory at this path or with this id, without its text.

    Raises:
        NotFound: there is none.
    """
    with not_found_fix("memoranda memory-stores memories ID|NAME lists them"):
        if not name.startswith("/"):
            return in_store.get(name, view="basic")
        memory = _memory_at(in_store, name)
        if memory is None:
            raise NotFound(f"no memory is at {name!r}")
        return memory


def _memory_at(in_store: BlockingStoreMemories, path: str) -> StoreMemory | None:
    """Return the memory at a path, without its text; None if there is none.

    Raises:
        InvalidInput: it is no path.
    """
    directory = checked_path(path)[: path.rindex("/") + 1]
    for item in _all(in_store.list, path_prefix=directory, depth=1):
        if item.path >= path:
            return item if isinstance(item, StoreMemory) and item.path == path else None
    return None


def _all(list_page: Callable[..., Page[T]], **fields: Any) -> Iterator[T]:
    """Yield the rows of every page of a list."""
    token = None
    while True:
        page = list_page(limit=ALL, page=token, **fields)
        yield from page.data
        if page.next_page is None:
            return
        token = page.next_page


# --- text ------------------------------------------------------------------------------------------


def _show_page(invocation: Invocation, page: Page[T], line: Callable[[T], str], empty: str) -> None:
    invocation.show(page, "\n".join(map(line, page.data)))
    if not page.data and not invocation.as_json:
        say(empty)
    if page.next_page is not None and not invocation.as_json:
        say(f"there are more: add --page {page.next_page}")


def _store_line(store: MemoryStore) -> str:
    parts = [store.id, store.name, "archived" if store.archived_at else "", beginning(store.description)]
    return plain("  ".join(part for part in parts if part))


def _item_line(item: Item) -> str:
    if isinstance(item, MemoryPrefix):
        return plain(item.path)
    return plain(f"{item.id}  {item.path}  {item.content_size_bytes:,} bytes")
