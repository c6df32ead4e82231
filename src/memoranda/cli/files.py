"""`memoranda files`: uploaded files, whichever store they are in."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import Annotated, BinaryIO

import msgspec
import typer

from memoranda.cli.groups import group
from memoranda.cli.options import After, ConfigFile, Data, Json, Limit, Order, Settings
from memoranda.cli.output import UNSET, emit, plain, rows, say
from memoranda.cli.product import configured, knowledge
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput, NotFound
from memoranda.knowledge.values import Purpose, StoredFile

Id = Annotated[str, typer.Argument(metavar="ID", help="The file.")]

app = group()


@app.callback()
def files(
    context: typer.Context,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List the uploaded files; upload, show, download and delete them."""
    if context.invoked_subcommand is None:
        _list(configured(data, config, settings), 100, None, "desc", as_json=as_json)


@app.command("list")
def list_(
    limit: Limit = 100,
    after: After = None,
    order: Order = "desc",
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """List the uploaded files, newest first."""
    _list(configured(data, config, settings), limit, after, order, as_json=as_json)


def _list(config: Config, limit: int, after: str | None, order: str, *, as_json: bool) -> None:
    with knowledge(config) as shelves:
        page = shelves.files.list(limit=limit, after=after, order=order)
    if as_json:
        emit(page)
        return
    for one in page.data:
        typer.echo(_line(one))
    if not page.data:
        say("no files; memoranda index uploads some")
    if page.has_more:
        say(f"there are more: add --after {page.last_id}")


@app.command("show")
def show(
    id_: Id, data: Data = None, config: ConfigFile = None, settings: Settings = None, as_json: Json = False
) -> None:
    """Show a file: its name, size, type and checksum."""
    with knowledge(configured(data, config, settings)) as shelves:
        one = shelves.files.get(id_)
    if as_json:
        emit(one)
    else:
        fields = msgspec.to_builtins(one, builtin_types=(datetime,))
        typer.echo(
            plain("\n".join(rows({name: value for name, value in fields.items() if value not in UNSET})))
        )


@app.command("upload")
def upload(
    path: Annotated[Path, typer.Argument(help="The file.")],
    purpose: Annotated[Purpose, typer.Option(help="What it is for, as over HTTP.")] = "assistants",
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Upload a file without indexing it."""
    if not path.is_file():
        raise InvalidInput("PATH", f"{path} is not a file")
    with knowledge(configured(data, config, settings)) as shelves:
        done = shelves.files.upload(path, purpose=purpose)
    emit(done) if as_json else typer.echo(_line(done))


@app.command("download")
def download(
    id_: Id,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write [default: standard output]."),
    ] = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Write the bytes of a file. With --json, a receipt when there is an output."""
    with knowledge(configured(data, config, settings)) as shelves, ExitStack() as opened:
        file, pieces = shelves.files.content(id_)
        target: BinaryIO = sys.stdout.buffer if output is None else opened.enter_context(output.open("wb"))
        for piece in pieces:
            target.write(piece)
        target.flush()
    if output is not None:
        receipt = {"id": file.id, "filename": file.filename, "bytes": file.bytes, "output": str(output)}
        emit(receipt) if as_json else typer.echo(f"{file.bytes:,} bytes written to {output}")


@app.command("delete")
def delete(
    ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The files.")],
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Delete files; they leave every vector store, too."""
    deleted, missing = list[str](), list[str]()
    with knowledge(configured(data, config, settings)) as shelves:
        for id_ in dict.fromkeys(ids):
            try:
                shelves.files.delete(id_)
                deleted.append(id_)
            except NotFound as exc:
                missing.append(str(exc))
    if as_json:
        emit({"deleted": deleted})
    for id_ in () if as_json else deleted:
        typer.echo(f"{id_}  deleted")
    for reason in missing:
        say(f"memoranda: {reason}")
    if missing:
        raise typer.Exit(1)


def _line(one: StoredFile) -> str:
    return plain(f"{one.id}  {one.created_at:%Y-%m-%d}  {one.bytes:,} bytes  {one.filename}")
