"""`memoranda stores`: create, list, show, change, fill and delete vector stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from memoranda.cli.find_store import all_stores, find_store
from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, all_rows, common_options
from memoranda.cli.output import fields_text, plain, say, short_path
from memoranda.errors import InvalidInput
from memoranda.knowledge.checks import days_of
from memoranda.knowledge.values import FileState, Sharing, StoreChange, StoreFile, VectorStore

if TYPE_CHECKING:
    from memoranda.app.blocking.features import BlockingKnowledge

Store = Annotated[str, typer.Argument(metavar="ID|NAME", help="The vector store.")]
File = Annotated[str, typer.Argument(metavar="FILE", help="The id of a file in it.")]

app = group()


@app.callback()
@common_options()
def stores(invocation: Invocation, context: typer.Context) -> None:
    """List the vector stores; make, show, change, fill and delete them."""
    if context.invoked_subcommand is None:
        _list(invocation)


@app.command("list")
@common_options()
def list_(invocation: Invocation) -> None:
    """List the vector stores."""
    _list(invocation)


def _list(invocation: Invocation) -> None:
    vector_stores = all_stores(invocation.knowledge)
    invocation.show(vector_stores, "\n".join(map(store_line, vector_stores)))
    if not vector_stores and not invocation.as_json:
        say("no vector stores; memoranda index makes one")


@app.command("create")
@common_options(creates_folder=True)
def create(
    invocation: Invocation,
    name: Annotated[str, typer.Argument(help="Its name.")],
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What is in it.")] = None,
) -> None:
    """Make an empty vector store."""
    store = invocation.knowledge.stores.create(name=name, description=description)
    invocation.show(store, store_line(store))


@app.command("show")
@common_options()
def show(invocation: Invocation, store: Store) -> None:
    """Show a vector store, with all its fields."""
    vector_store = find_store(invocation.knowledge, store)
    invocation.show(vector_store, fields_text(vector_store))


@app.command("update")
@common_options()
def update(
    invocation: Invocation,
    store: Store,
    name: Annotated[str | None, typer.Option("--name", help="Another name.")] = None,
    description: Annotated[str | None, typer.Option(metavar="TEXT", help="What is in it.")] = None,
    expires_after_days: Annotated[
        int | None, typer.Option(metavar="DAYS", help="It expires when it was not used for so many days.")
    ] = None,
    never_expires: Annotated[bool, typer.Option("--never-expires", help="It does not expire.")] = False,
    sharing: Annotated[
        Sharing | None,
        typer.Option(help="Who else reads it: private (only its writers), tenant or everyone."),
    ] = None,
    writer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="USER",
            help="A user who adds and removes files, in place of those it has; repeat for more.",
        ),
    ] = None,
    no_writers: Annotated[bool, typer.Option("--no-writers", help="Only the owner adds files.")] = False,
) -> None:
    """Change fields of a vector store; the rest stays."""
    if never_expires and expires_after_days is not None:
        raise InvalidInput("--never-expires", "does not go with --expires-after-days; leave one out")
    if no_writers and writer:
        raise InvalidInput("--no-writers", "does not go with --writer; leave one out")
    options = {
        "name": name,
        "description": description,
        "expires_after_days": days_of(expires_after_days, "--expires-after-days"),
        "sharing": sharing,
        "writers": writer or None,
    }
    fields: dict[str, Any] = {field: value for field, value in options.items() if value is not None}
    if never_expires:
        fields["expires_after_days"] = None
    if no_writers:
        fields["writers"] = []
    if not fields:
        raise InvalidInput("", "name what to change, such as --name NAME; memoranda stores update --help")
    vector_store = find_store(invocation.knowledge, store)
    changed = invocation.knowledge.stores.update(vector_store.id, StoreChange(**fields))
    invocation.show(changed, fields_text(changed))


@app.command("text")
@common_options()
def text(invocation: Invocation, store: Store, file: File) -> None:
    """Print the text that was read out of a file in a vector store."""
    vector_store = find_store(invocation.knowledge, store)
    content = invocation.knowledge.stores.text(vector_store.id, file)
    invocation.show({"store_id": vector_store.id, "file_id": file, "text": content}, plain(content))


@app.command("attach")
@common_options()
def attach(
    invocation: Invocation,
    store: Store,
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="The ids of uploaded files.")],
) -> None:
    """Index uploaded files into a vector store, and wait until it is done."""
    vector_store = find_store(invocation.knowledge, store)
    attached = invocation.knowledge.stores.attach(vector_store.id, files)
    indexed = [invocation.knowledge.stores.wait_file(vector_store.id, file.id) for file in attached]
    invocation.show({"data": indexed}, "\n".join(map(file_line, indexed)))
    if any(file.status == "failed" for file in indexed):
        raise typer.Exit(1)


@app.command("detach")
@common_options()
def detach(invocation: Invocation, store: Store, file: File) -> None:
    """Take a file out of a vector store; the file itself stays."""
    vector_store = find_store(invocation.knowledge, store)
    invocation.knowledge.stores.detach(vector_store.id, file)
    invocation.show(
        {"store_id": vector_store.id, "file_id": file, "detached": True},
        f"{plain(file)} is out of {plain(vector_store.name)}",
    )


@app.command("files")
@common_options()
def files(
    invocation: Invocation,
    store: Store,
    state: Annotated[
        str | None,
        typer.Option(metavar="STATE", help="Only in_progress, completed, failed or cancelled ones."),
    ] = None,
) -> None:
    """List the files in a vector store, with what failed and why."""
    if state is not None and state not in get_args(FileState):
        raise InvalidInput("--state", f"use one of {', '.join(get_args(FileState))}")
    vector_store = find_store(invocation.knowledge, store)
    store_files = list(files_of(invocation.knowledge, vector_store.id, cast("FileState | None", state)))
    invocation.show(store_files, "\n".join(map(file_line, store_files)))


@app.command("delete")
@common_options()
def delete(
    invocation: Invocation,
    store: Store,
    keep_files: Annotated[
        bool, typer.Option("--keep-files", help="Leave the uploaded files themselves.")
    ] = False,
) -> None:
    """Delete a vector store and the files that `memoranda index` put into it."""
    vector_store = find_store(invocation.knowledge, store)
    store_files = [] if keep_files else list(files_of(invocation.knowledge, vector_store.id))
    indexed_files = [file for file in store_files if {"path", "sha256"} <= file.attributes.keys()]
    invocation.knowledge.stores.delete(vector_store.id)
    for file in indexed_files:
        invocation.knowledge.files.delete(file.id)
    count = len(indexed_files)
    invocation.show(
        {"id": vector_store.id, "deleted": True, "files_deleted": count},
        f"{plain(vector_store.name)} {vector_store.id} is deleted, and {count} files with it",
    )


def files_of(
    knowledge: BlockingKnowledge, store_id: str, state: FileState | None = None
) -> Iterator[StoreFile]:
    """Return the files of a vector store, oldest first."""
    return all_rows(knowledge.stores.files, store_id, order="asc", state=state)


def store_line(store: VectorStore) -> str:
    """Return a line about a vector store: its id, name, files by state, bytes."""
    counts = store.file_counts
    states = [f"{counts.completed} files"]
    states += [
        f"{count} {name}"
        for name in ("in_progress", "failed", "cancelled")
        if (count := getattr(counts, name))
    ]
    expired = ", expired" if store.status == "expired" else ""
    return (
        f"{store.id}  {plain(store.name) or '-'}  {', '.join(states)}, {store.usage_bytes:,} bytes{expired}"
    )


def file_line(file: StoreFile) -> str:
    """Return a line about a file in a vector store: its id, state, chunks, path, and why it failed."""
    path = file.attributes.get("path")
    name = short_path(path) if isinstance(path, str) else file.filename
    error = "" if file.last_error is None else f"  {file.last_error.code}: {file.last_error.message}"
    return plain(f"{file.id}  {file.status}  {file.chunk_count} chunks  {name}{error}")
