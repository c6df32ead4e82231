"""`memoranda index`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from memoranda.app.folder_sync import memory_sync
from memoranda.app.folder_sync.document_sync import How
from memoranda.app.folder_sync.memory_sync import Indexed, Indexing
from memoranda.app.folder_sync.scan import MAX_BYTES, Skipped
from memoranda.cli.index_documents import STORE, chunking_of, into_store
from memoranda.cli.options import ConfigFile, Data, Json, ScopeId, Settings, ids_of, pairs, scope_of
from memoranda.cli.output import emit, say, short_path
from memoranda.cli.paths import found, left_out
from memoranda.cli.product import configured, memories
from memoranda.cli.progress import bar
from memoranda.config.sections import Config

SIZE, OVERLAP = 512, 50


def index(
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
    chunk_size: Annotated[int | None, typer.Option(help="Most tokens in a chunk [default: 512].")] = None,
    chunk_overlap: Annotated[
        int | None, typer.Option(help="Tokens that a chunk shares with the one before [default: 50].")
    ] = None,
    max_bytes: Annotated[int | None, typer.Option(help="Leave out files larger than this.")] = None,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Index files of every format into a vector store. Doing it again changes nothing; stopped, it goes on."""
    place = scope_of(scope, scope_id, everything=False)
    for flag, given in (("--store", store), ("--meta", meta), ("--retry", retry)):
        if place is not None and given:
            raise typer.BadParameter("does not go with --scope, which makes memories", param_hint=flag)
    if place is None and tag:
        raise typer.BadParameter("goes with --scope; files in a store take --meta", param_hint="--tag")
    force = configured(data, config, settings)
    roots = [path.expanduser().resolve() for path in paths]
    if place is None:
        how = How(pairs(meta, "--meta"), chunking_of(chunk_size, chunk_overlap, force), prune, retry)
        files, skipped = found(roots, exclude or [], hidden, prune)
        into_store(force, store or STORE, how, files, roots, skipped, max_bytes, as_json=as_json)
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
    files, skipped = found(roots, exclude or [], hidden, prune)
    into_scope(force, texts, files, roots, skipped, as_json=as_json)


def into_scope(
    force: Config,
    how: Indexing,
    files: list[Path],
    roots: list[Path],
    skipped: list[Skipped],
    *,
    as_json: bool,
) -> None:
    """Texts as memories of a scope, and what came of it."""
    began = time.monotonic()
    with memories(force) as verbs, bar("indexing", quiet=as_json) as report:

        def on_file(done: Indexed) -> None:
            pace = done.added / max(1e-9, time.monotonic() - began)
            seen = done.files + sum(one.reason != "empty" for one in done.skipped)
            report(seen, len(files), f"{done.added} chunks, {pace:.1f}/s")

        unreadable = [one.path for one in skipped if one.unreadable]
        done = memory_sync.index(verbs, files, roots, how, unreadable, on_file)
    done.skipped[:0] = skipped
    seconds = time.monotonic() - began
    if as_json:
        emit(summary(done, how.prune, seconds))
    else:
        tell(done, how.prune, seconds)


def summary(done: Indexed, pruned: bool, seconds: float) -> dict[str, Any]:
    """What an indexing came to, as JSON has it."""
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
        "skipped": [{"path": str(one.path), "reason": one.reason} for one in done.skipped],
        "guessed_encoding": [{"path": str(one.path), "encoding": one.encoding} for one in done.guessed],
        "seconds": round(seconds, 3),
    }


def tell(done: Indexed, pruned: bool, seconds: float) -> None:
    """The same for people."""
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
