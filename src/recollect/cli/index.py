"""`recollect index`."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from recollect import indexing
from recollect.cli.opening import configured, memories
from recollect.cli.options import ConfigFile, Data, Json, Scope, ScopeId, Settings, ids_of, scope_of
from recollect.cli.progress import bar
from recollect.cli.show import emit, say, short_path
from recollect.errors import InvalidInput
from recollect.indexing import Indexed, Indexing
from recollect.reading import MAX_BYTES, Skipped, walk


def index(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files and folders.")],
    scope: Scope = "global",
    scope_id: ScopeId = None,
    tag: Annotated[list[str] | None, typer.Option(help="A tag for new chunks; repeat for more.")] = None,
    prune: Annotated[bool, typer.Option("--prune", help="Delete the chunks of files that are gone.")] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Leave out names or paths like this; repeat for more."),
    ] = None,
    hidden: Annotated[bool, typer.Option("--hidden", help="Read hidden files and folders as well.")] = False,
    chunk_size: Annotated[int, typer.Option(help="Most tokens in a chunk.")] = 512,
    chunk_overlap: Annotated[int, typer.Option(help="Tokens that a chunk shares with the one before.")] = 50,
    max_bytes: Annotated[int, typer.Option(help="Leave out files larger than this.")] = MAX_BYTES,
    data: Data = None,
    config: ConfigFile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Remember text files as documents. Indexing the same files again changes nothing."""
    place = scope_of(scope, scope_id, everything=False) or "global"
    how = Indexing(
        scope=place,
        ids=ids_of(place),
        tags=tag or [],
        size=chunk_size,
        overlap=chunk_overlap,
        max_bytes=max_bytes,
        prune=prune,
    )
    force = configured(data, config, settings)
    roots = [path.expanduser().resolve() for path in paths]
    files, skipped = found(roots, exclude or [], hidden, prune)
    began = time.monotonic()
    with memories(force) as verbs, bar("indexing", quiet=as_json) as report:

        def on_file(done: Indexed) -> None:
            pace = done.added / max(1e-9, time.monotonic() - began)
            seen = done.files + sum(one.reason != "empty" for one in done.skipped)
            report(seen, len(files), f"{done.added} chunks, {pace:.1f}/s")

        unreadable = [one.path for one in skipped if one.unreadable]
        done = indexing.index(verbs, files, roots, how, unreadable, on_file)
    done.skipped[:0] = skipped
    seconds = time.monotonic() - began
    if as_json:
        emit(summary(done, prune, seconds))
    else:
        tell(done, prune, seconds)


def found(
    roots: list[Path], exclude: list[str], hidden: bool, missing: bool
) -> tuple[list[Path], list[Skipped]]:
    """The files to read, each once, in order, and what is left out.

    Raises:
        InvalidInput: a path is not there, and `missing` ones are not expected.
    """
    files: dict[Path, None] = {}
    skipped: dict[Path, Skipped] = {}
    for root in roots:
        if not root.exists() and not missing:
            raise InvalidInput("PATH", f"{root} is not there; with --prune its chunks are deleted")
        for one in walk(root, exclude=exclude, hidden=hidden):
            if isinstance(one, Skipped):
                skipped[one.path] = one
            else:
                files[one] = None
    return list(files), list(skipped.values())


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
    reasons = Counter(one.reason for one in done.skipped)
    for reason, count in reasons.most_common():
        names = [short_path(str(one.path)) for one in done.skipped if one.reason == reason]
        typer.echo(f"  left out, {reason}: {count} ({', '.join(names[:3])}{', ...' if count > 3 else ''})")
    for text in done.guessed:
        say(f"{short_path(str(text.path))} is not UTF-8; read as {text.encoding}")
    if done.gone:
        fate = "their chunks were deleted" if pruned else "their chunks are kept; --prune deletes them"
        say(f"{len(done.gone)} files are gone or left out now; {fate}")
    if done.waiting:
        say(f"{done.waiting} chunks have no vector yet; recollect reindex makes them")
