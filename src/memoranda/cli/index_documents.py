"""`memoranda index` into a vector store: from flags to the store, its progress, and what came of it."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from memoranda.app.blocking.knowledge import BlockingKnowledge
from memoranda.app.folder_sync.document_sync import Filed, Filing, How, summary
from memoranda.app.folder_sync.scan import Skipped
from memoranda.cli.output import emit, plain, say, short_path
from memoranda.cli.paths import documents, left_out
from memoranda.cli.product import Shelves, knowledge
from memoranda.cli.progress import bar
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput, NotFound
from memoranda.knowledge.attaching import INDEX_JOB
from memoranda.knowledge.checks import chunking_checked
from memoranda.knowledge.values import VectorStore
from memoranda.text.splitting import Chunking

STORE = "documents"
"""The store that `index` fills when none is named."""
PAGE = 100
SHOWN = 20


def into_store(
    config: Config,
    name: str,
    how: How,
    files: Sequence[Path],
    roots: Sequence[Path],
    skipped: Sequence[Skipped],
    max_bytes: int | None,
    *,
    as_json: bool,
) -> None:
    """Files in a store, and what came of it.

    Raises:
        Exit: 1, when a file failed or not all were looked at.
    """
    began = time.monotonic()
    with knowledge(config) as shelves, bar("indexing", quiet=as_json) as report:
        if isinstance(shelves, BlockingKnowledge) and not (
            config.jobs.workers and config.knowledge.files_at_once
        ):
            say(
                "this process indexes nothing itself (jobs.workers, knowledge.files_at_once): a worker must run"
            )
        there = store_of(shelves, name)
        store = there or shelves.stores.create(name=name, chunking=how.chunking)

        def told(done: Filed) -> None:
            pace = done.chunks / max(1e-9, time.monotonic() - began)
            words = (
                f"{done.chunks} chunks, {pace:.1f}/s, {done.working} in progress, {len(done.failed)} failed"
            )
            report(done.settled, len(files), words)

        filing = Filing(shelves, store.id, how, told)
        try:
            wanted = list(documents(files, roots, max_bytes, filing.done.skipped))
            with _told_once():
                done = filing.run(wanted, roots, [one.path for one in skipped if one.unreadable])
        except KeyboardInterrupt:
            say(f"stopped with {filing.done.working} files in progress; the same command goes on")
            raise
    done.skipped[:0] = skipped
    seconds = time.monotonic() - began
    if as_json:
        names = {"store_id": store.id, "store": store.name}
        emit({**names, **summary(done), "gone_removed": how.prune, "seconds": round(seconds, 3)})
    else:
        tell(done, store, seconds, pruned=how.prune)
        if there is None:
            say(f'ask it: memoranda ask "your question" --store {shlex.quote(plain(name))}')
    if done.failed or done.stopped:
        raise typer.Exit(1)


def store_of(shelves: Shelves, name: str) -> VectorStore | None:
    """The store of this id or name; None when no store has the name.

    Raises:
        NotFound: it is an id, and there is no such store.
        InvalidInput: several stores have the name.
    """
    if name.startswith("vs_"):
        return shelves.stores.get(name)
    named = [one for one in stores(shelves) if one.name == name and one.status != "expired"]
    if len(named) > 1:
        ids = ", ".join(one.id for one in named)
        raise InvalidInput("--store", f"{len(named)} vector stores are named {name!r}; use an id: {ids}")
    return named[0] if named else None


def existing(shelves: Shelves, name: str) -> VectorStore:
    """The store of this id or name.

    Raises:
        NotFound: there is none; says which there are.
    """
    store = store_of(shelves, name)
    if store is None:
        known = ", ".join(dict.fromkeys(one.name or one.id for one in stores(shelves))) or "none"
        raise NotFound(f"no vector store is named {name!r}; there are: {plain(known)}")
    return store


def stores(shelves: Shelves) -> list[VectorStore]:
    """All stores, newest first."""
    found: list[VectorStore] = []
    after = None
    while True:
        page = shelves.stores.list(limit=PAGE, after=after)
        found += page.data
        if not page.has_more:
            return found
        after = page.last_id


def chunking_of(size: int | None, overlap: int | None, config: Config) -> Chunking | None:
    """How the flags split; None where they say nothing.

    Raises:
        InvalidInput: names the flag.
    """
    if size is None and overlap is None:
        return None
    base = config.knowledge
    size = base.chunk_size if size is None else size
    overlap = min(base.chunk_overlap, size // 2) if overlap is None else overlap
    try:
        return chunking_checked(
            Chunking(strategy=base.chunking, size=size, overlap=overlap, header=base.contextual_header)
        )
    except InvalidInput as exc:
        flag = "--" + exc.field.rpartition(".")[2].replace("_", "-")
        raise InvalidInput(flag, str(exc).removeprefix(f"{exc.field}: ")) from exc


@contextmanager
def _told_once() -> Iterator[None]:
    """Keeps from the log that a file failed: the list at the end says it, with the reason."""
    log = logging.getLogger("memoranda.jobs")

    def others(record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, tuple) and INDEX_JOB in record.args)

    log.addFilter(others)
    try:
        yield
    finally:
        log.removeFilter(others)


def tell(done: Filed, store: VectorStore, seconds: float, *, pruned: bool) -> None:
    """What a filing came to, for people."""
    counts: dict[str, Any] = summary(done)
    typer.echo(
        f"{counts['files']} files in {plain(store.name or store.id)}: {done.added} added, {done.replaced} replaced,"
        f" {done.unchanged} unchanged, {done.removed} removed, {len(done.failed)} failed;"
        f" {done.chunks} new chunks in {seconds:.1f} s"
    )
    for line in left_out(done.skipped):
        typer.echo(line)
    for path, note in done.notes[:SHOWN]:
        say(plain(f"{short_path(path)}: {note}"))
    if len(done.notes) > SHOWN:
        say(f"and {len(done.notes) - SHOWN} more remarks; --json has them all")
    if done.gone:
        fate = "they were taken out" if pruned else "they are still found; --prune takes them out"
        say(f"{len(done.gone)} files are gone or left out now; {fate}")
    if done.failed:
        say(f"{len(done.failed)} failed:")
    for one in sorted(done.failed, key=lambda one: one.path):
        say(plain(f"  {short_path(one.path)}: {one.code}: {one.message}"))
    if done.stopped:
        say(f"stopped before the rest: {done.stopped}")
        say("quotas are part of the configuration: --set quotas.NAME=NUMBER raises one")
