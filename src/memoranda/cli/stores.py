"""`memoranda stores`: which vector stores there are, what is in them, and deleting one."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, cast, get_args

import msgspec
import typer

from memoranda.cli.groups import group
from memoranda.cli.index_documents import existing
from memoranda.cli.index_documents import stores as all_stores
from memoranda.cli.options import ConfigFile, Data, Json, Settings
from memoranda.cli.output import emit, plain, rows, say, short_path
from memoranda.cli.product import Shelves, configured, knowledge
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput
from memoranda.knowledge.values import FileState, StoreFile, VectorStore

PAGE = 100
Store = Annotated[str, typer.Argument(metavar="ID|NAME", help="The vector store.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="The id of a file in it.")]

app = group()


@app.callback()
def stores(
    context: typer.Context,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List the vector stores; make, show, fill and delete them."""
    if context.invoked_subcommand is None:
        _list(configured(data, config, settings), as_json=as_json)


@app.command("list")
def list_(
    data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """List the vector stores."""
    _list(configured(data, config, settings), as_json=as_json)


def _list(config: Config, *, as_json: bool) -> None:
    with knowledge(config) as shelves:
        held = all_stores(shelves)
    if as_json:
        emit(held)
        return
    typer.echo("\n".join(map(store_line, held))) if held else say(
        "no vector stores; memoranda index makes one"
    )


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="Its name.")],
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What is in it.")] = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Make an empty vector store."""
    with knowledge(configured(data, config, settings)) as shelves:
        made = shelves.stores.create(name=name, description=description)
    emit(made) if as_json else typer.echo(store_line(made))


@app.command("show")
def show(
    store: Store,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Show a vector store, with all its fields."""
    with knowledge(configured(data, config, settings)) as shelves:
        held = existing(shelves, store)
    if as_json:
        emit(held)
    else:
        fields = msgspec.to_builtins(held, builtin_types=(datetime,))
        typer.echo(plain("\n".join(rows(fields))))


@app.command("text")
def text(
    store: Store,
    file: File,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Print the text that was read out of a file in a vector store."""
    with knowledge(configured(data, config, settings)) as shelves:
        held = existing(shelves, store)
        found = shelves.stores.text(held.id, file)
    emit({"store_id": held.id, "file_id": file, "text": found}) if as_json else typer.echo(plain(found))


@app.command("attach")
def attach(
    store: Store,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="The ids of uploaded files.")],
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Index uploaded files into a vector store, and wait until it is done."""
    with knowledge(configured(data, config, settings)) as shelves:
        held = existing(shelves, store)
        begun = shelves.stores.attach(held.id, files)
        done = [shelves.stores.wait_file(held.id, one.id) for one in begun]
    if as_json:
        emit({"data": done})
    else:
        typer.echo("\n".join(map(file_line, done)))
    if any(one.status == "failed" for one in done):
        raise typer.Exit(1)


@app.command("detach")
def detach(
    store: Store,
    file: File,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Take a file out of a vector store; the file itself stays."""
    with knowledge(configured(data, config, settings)) as shelves:
        held = existing(shelves, store)
        shelves.stores.detach(held.id, file)
    if as_json:
        emit({"store_id": held.id, "file_id": file, "detached": True})
    else:
        typer.echo(f"{plain(file)} is out of {plain(held.name)}")


@app.command("files")
def files(
    store: Store,
    state: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="Only in_progress, completed, failed or cancelled ones."),
    ] = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List the files in a vector store, with what failed and why."""
    if state is not None and state not in get_args(FileState):
        raise InvalidInput("--state", f"use one of {', '.join(get_args(FileState))}")
    with knowledge(configured(data, config, settings)) as shelves:
        held = list(files_of(shelves, existing(shelves, store).id, cast("FileState | None", state)))
    if as_json:
        emit(held)
        return
    for one in held:
        typer.echo(file_line(one))


@app.command("delete")
def delete(
    store: Store,
    keep_files: Annotated[
        bool, typer.Option("--keep-files", help="Leave the uploaded files themselves.")
    ] = False,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Delete a vector store and the files that `memoranda index` put into it."""
    with knowledge(configured(data, config, settings)) as shelves:
        held = existing(shelves, store)
        ours = [] if keep_files else list(indexed(files_of(shelves, held.id)))
        shelves.stores.delete(held.id)
        for one in ours:
            shelves.files.delete(one.id)
    if as_json:
        emit({"id": held.id, "deleted": True, "files_deleted": len(ours)})
    else:
        typer.echo(f"{plain(held.name)} {held.id} is deleted, and {len(ours)} files with it")


def indexed(files: Iterator[StoreFile]) -> Iterator[StoreFile]:
    """Those that `memoranda index` uploaded."""
    return (one for one in files if {"path", "sha256"} <= one.attributes.keys())


def files_of(shelves: Shelves, store_id: str, state: FileState | None = None) -> Iterator[StoreFile]:
    """The files of a store, oldest first."""
    after = None
    while True:
        page = shelves.stores.files(store_id, limit=PAGE, after=after, order="asc", state=state)
        yield from page.data
        if not page.has_more:
            return
        after = page.last_id


def store_line(one: VectorStore) -> str:
    """A store in a line: its id, name, files by state, bytes."""
    counts = one.file_counts
    states = [f"{counts.completed} files"]
    states += [
        f"{n} {name}" for name in ("in_progress", "failed", "cancelled") if (n := getattr(counts, name))
    ]
    expired = ", expired" if one.status == "expired" else ""
    return f"{one.id}  {plain(one.name) or '-'}  {', '.join(states)}, {one.usage_bytes:,} bytes{expired}"


def file_line(one: StoreFile) -> str:
    """A file in a line: its id, state, chunks, where it is from, and why it failed."""
    where = one.attributes.get("path")
    name = short_path(where) if isinstance(where, str) else one.filename
    why = "" if one.last_error is None else f"  {one.last_error.code}: {one.last_error.message}"
    return plain(f"{one.id}  {one.status}  {one.chunk_count} chunks  {name}{why}")
