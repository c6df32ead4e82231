"""`memoranda index`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from memoranda.app.folder_sync.document_sync import How
from memoranda.app.folder_sync.memory_sync import Indexed, Indexing, MemorySync
from memoranda.app.folder_sync.scan import MAX_BYTES, Skipped
from memoranda.cli.index_documents import STORE, chunking_of, index_documents
from memoranda.cli.invocation import Invocation, common_options
from memoranda.cli.options import ScopeId, ids_of, pairs, scope_of
from memoranda.cli.output import emit, say, short_path
from memoranda.cli.paths import find_files, left_out
from memoranda.cli.progress import bar

SIZE, OVERLAP = 512, 50


@common_options(creates_folder=True)
def index(
    invocation: Invocation,
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    store: Annotated[
        str | None,
        typer.Option(
            metavar="ID|NAME", help="The vector store; a name that none has makes one [default: documents]."
        ),
    ] = None,
    meta: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="An attribute of these files, to filter by; repeat for more."),
    ] = None,
    scope: Annotated[
        str | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="Make memories of plain texts instead: global, or session, channel, agent, user (--scope-id).",
        ),
    ] = None,
    scope_id: ScopeId = None,
    tag: Annotated[list[str] | None, typer.Option(help="With --scope, a tag for new chunks.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Take out files that are gone.")] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try files again that could not be read before.")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Leave out names or paths like this; repeat for more."),
    ] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="Read hidden files and folders as well.")] = False,
    chunk_size: Annotated[
        int | None, typer.Option(help="Most tokens in a chunk [default: 200; with --scope 512].")
    ] = None,
    chunk_overlap: Annotated[
        int | None, typer.Option(help="Tokens that a chunk shares with the one before [default: 50].")
    ] = None,
    max_bytes: Annotated[int | None, typer.Option(help="Leave out files larger than this.")] = None,
) -> None:
    """Index files of every format into a vector store. Doing it again changes nothing; stopped, it goes on."""
    place = scope_of(scope, scope_id, everything=False)
    for flag, given in (("--store", store), ("--meta", meta), ("--retry", retry)):
        if place is not None and given:
            raise typer.BadParameter("does not go with --scope, which makes memories", param_hint=flag)
    if place is None and tag:
        raise typer.BadParameter("goes with --scope; files in a store take --meta", param_hint="--tag")
    roots = [path.expanduser().resolve() for path in paths]
    files, skipped = find_files(roots, exclude or [], hidden, prune)
    if place is None:
        how = How(
            pairs(meta, "--meta"), chunking_of(chunk_size, chunk_overlap, invocation.config), prune, retry
        )
        index_documents(invocation, store or STORE, how, files, roots, skipped, max_bytes)
        return
    texts = Indexing(
        scope=place,
        ids=ids_of(place),
        tags=tag or [],
        size=SIZE if chunk_size is None else chunk_size,
        overlap=OVERLAP if chunk_overlap is None else chunk_overlap,
        max_bytes=MAX_BYTES if max_bytes is None else max_bytes,
        prune=prune,
    )
    index_texts(invocation, texts, files, roots, skipped)


def index_texts(
    invocation: Invocation, how: Indexing, files: list[Path], roots: list[Path], skipped: list[Skipped]
) -> None:
    """Index texts as memories of a scope, and print the result."""
    began = time.monotonic()
    sync = MemorySync(invocation.memories, how)
    with bar("indexing", quiet=invocation.as_json) as report:

        def on_file(done: Indexed) -> None:
            pace = done.added / max(1e-9, time.monotonic() - began)
            seen = done.files + sum(skip.reason != "empty" for skip in done.skipped)
            report(seen, len(files), f"{done.added} chunks, {pace:.1f}/s")

        unreadable = [skip.path for skip in skipped if skip.unreadable]
        done = sync.run(files, roots, unreadable, on_file)
    done.skipped[:0] = skipped
    seconds = time.monotonic() - began
    if invocation.as_json:
        emit(summary(done, how.prune, seconds))
    else:
        print_summary(done, how.prune, seconds)


def summary(done: Indexed, pruned: bool, seconds: float) -> dict[str, Any]:
    """Return the result of an indexing as JSON has it."""
    return {
        "files": done.files,
        "unchanged": done.unchanged,
        "chunks": done.chunks,
        "added": done.added,
        "updated": done.updated,
        "removed": done.removed,
        "waiting_for_vectors": done.waiting,
        "gone": done.gone,
        "gone_removed": pruned,
        "skipped": [{"path": str(skip.path), "reason": skip.reason} for skip in done.skipped],
        "guessed_encoding": [{"path": str(text.path), "encoding": text.encoding} for text in done.guessed],
        "seconds": round(seconds, 3),
    }


def print_summary(done: Indexed, pruned: bool, seconds: float) -> None:
    """Print the result of an indexing as text."""
    typer.echo(
        f"{done.files} files ({done.unchanged} unchanged), {done.chunks} chunks:"
        f" {done.added} added, {done.updated} moved, {done.removed} removed, in {seconds:.1f} s"
    )
    for line in left_out(done.skipped):
        typer.echo(line)
    for text in done.guessed:
        say(f"{short_path(str(text.path))} is not UTF-8; read as {text.encoding}")
    if done.gone:
        fate = "their chunks were deleted" if pruned else "their chunks are kept; --prune deletes them"
        say(f"{len(done.gone)} files are gone or left out now; {fate}")
    if done.waiting:
        say(f"{done.waiting} chunks have no vector yet; memoranda reindex makes them")
