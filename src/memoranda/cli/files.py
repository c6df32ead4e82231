"""`memoranda files`: upload, list, show, download and delete files."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from memoranda.cli.groups import group
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import After, Limit, Order
from memoranda.cli.output import plain, say, set_fields_text
from memoranda.errors import InvalidInput, NotFound
from memoranda.knowledge.values import Purpose, StoredFile

Id = Annotated[str, typer.Argument(metavar="ID", help="The file.")]

app = group()


@app.callback()
@common_options()
def files(invocation: Invocation, context: typer.Context) -> None:
    """List the uploaded files; upload, show, download and delete them."""
    if context.invoked_subcommand is None:
        _list(invocation, 100, None, "desc")


@app.command("list")
@common_options()
def list_(invocation: Invocation, limit: Limit = 100, after: After = None, order: Order = "desc") -> None:
    """List the uploaded files, newest first."""
    _list(invocation, limit, after, order)


def _list(invocation: Invocation, limit: int, after: str | None, order: str) -> None:
    page = invocation.knowledge.files.list(limit=limit, after=after, order=order)
    invocation.show_page(page, _file_line, "no files; memoranda index uploads some")


@app.command("show")
@common_options()
def show(invocation: Invocation, id_: Id) -> None:
    """Show a file: its name, size, type and checksum."""
    file = invocation.knowledge.files.get(id_)
    invocation.show(file, set_fields_text(file))


@app.command("upload")
@common_options(creates_folder=True)
def upload(
    invocation: Invocation,
    path: Annotated[Path, typer.Argument(help="The file.")],
    purpose: Annotated[Purpose, typer.Option(help="What it is for, as over HTTP.")] = "assistants",
) -> None:
    """Upload a file without indexing it."""
    if not path.is_file():
        raise InvalidInput("PATH", f"{path} is not a file")
    file = invocation.knowledge.files.upload(path, purpose=purpose)
    invocation.show(file, _file_line(file))


@app.command("download")
@common_options()
def download(
    invocation: Invocation,
    id_: Id,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The file to write [default: standard output]."),
    ] = None,
) -> None:
    """Write the bytes of a file. With --json, a receipt when there is an output."""
    file, pieces = invocation.knowledge.files.content(id_)
    with nullcontext(sys.stdout.buffer) if output is None else output.open("wb") as target:
        for piece in pieces:
            target.write(piece)
        target.flush()
    if output is not None:
        receipt = {"id": file.id, "filename": file.filename, "bytes": file.bytes, "output": str(output)}
        invocation.show(receipt, f"{file.bytes:,} bytes written to {output}")


@app.command("delete")
@common_options()
def delete(
    invocation: Invocation, ids: Annotated[list[str], typer.Argument(metavar="ID...", help="The files.")]
) -> None:
    """Delete files; they leave every vector store, too."""
    files = invocation.knowledge.files  # opened outside of `try`: a missing folder is not a missing file
    deleted, missing = dict[str, int](), list[str]()
    for id_ in dict.fromkeys(ids):
        try:
            deleted[id_] = files.delete(id_)
        except NotFound as exc:
            missing.append(str(exc))
    invocation.show({"deleted": [*deleted]}, "\n".join(f"{id_}  deleted" for id_ in deleted))
    for id_, derived in deleted.items():
        if derived:
            say(
                f"{derived} memories were written after {id_} was read: memoranda list --source {id_} --archived"
            )
    for reason in missing:
        say(f"memoranda: {reason}")
    if missing:
        raise typer.Exit(1)


def _file_line(file: StoredFile) -> str:
    return plain(f"{file.id}  {file.created_at:%Y-%m-%d}  {file.bytes:,} bytes  {file.filename}")
