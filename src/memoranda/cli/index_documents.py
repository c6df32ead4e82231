"""`memoranda index` into a vector store: its progress and its result."""

from __future__ import annotations

import logging
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from memoranda.app.blocking.features import BlockingKnowledge
from memoranda.app.folder_sync.document_sync import DocumentSync, Filed, How, summary
from memoranda.app.folder_sync.scan import Skipped
from memoranda.cli.find_store import find_store_or_none
from memoranda.cli.invocation import Invocation
from memoranda.cli.output import emit, plain, say, short_path
from memoranda.cli.paths import documents, left_out
from memoranda.cli.progress import bar
from memoranda.config.sections import Config
from memoranda.errors import InvalidInput
from memoranda.knowledge.attaching import INDEX_JOB
from memoranda.knowledge.checks import chunking_checked
from memoranda.knowledge.values import VectorStore
from memoranda.text.splitting import Chunking

STORE = "documents"
"""The vector store that `index` fills if none is named."""
SHOWN = 20


def index_documents(
    invocation: Invocation,
    name: str,
    how: How,
    files: Sequence[Path],
    roots: Sequence[Path],
    skipped: Sequence[Skipped],
    max_bytes: int | None,
) -> None:
    """Index files into a vector store, and print the result.

    Raises:
        Exit: 1, if a file failed or the indexing stopped before its end.
    """
    began = time.monotonic()
    config, knowledge = invocation.config, invocation.knowledge
    with bar("indexing", quiet=invocation.as_json) as report:
        if isinstance(knowledge, BlockingKnowledge) and not (
            config.jobs.workers and config.knowledge.files_at_once
        ):
            say(
                "this process indexes nothing itself (jobs.workers, knowledge.files_at_once): a worker must run"
            )
        existing = find_store_or_none(knowledge, name)
        store = existing or knowledge.stores.create(name=name, chunking=how.chunking)

        def show_progress(done: Filed) -> None:
            pace = done.chunks / max(1e-9, time.monotonic() - began)
            words = (
                f"{done.chunks} chunks, {pace:.1f}/s, {done.working} in progress, {len(done.failed)} failed"
            )
            report(done.settled, len(files), words)

        sync = DocumentSync(knowledge, store.id, how)
        try:
            paths = list(documents(files, roots, max_bytes, sync.done.skipped))
            unreadable = [skip.path for skip in skipped if skip.unreadable]
            with _without_failures_in_log():
                done = sync.run(paths, roots, unreadable, show_progress)
        except KeyboardInterrupt:
            say(f"stopped with {sync.done.working} files in progress; the same command goes on")
            raise
    done.skipped[:0] = skipped
    seconds = time.monotonic() - began
    if invocation.as_json:
        names = {"store_id": store.id, "store": store.name}
        emit({**names, **summary(done), "gone_removed": how.prune, "seconds": round(seconds, 3)})
    else:
        print_summary(done, store, seconds, pruned=how.prune)
        if existing is None:
            say(f'ask it: memoranda ask "your question" --store {shlex.quote(plain(name))}')
    if done.failed or done.stopped:
        raise typer.Exit(1)


def chunking_of(size: int | None, overlap: int | None, config: Config) -> Chunking | None:
    """Return the chunking that the options set; None if they set none.

    Raises:
        InvalidInput: a value is out of range; the message names the option.
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
def _without_failures_in_log() -> Iterator[None]:
    """Keep failed files out of the log: the summary lists them with the reason."""
    log = logging.getLogger("memoranda.jobs")

    def other_records(record: logging.LogRecord) -> bool:
        return not (isinstance(record.args, tuple) and INDEX_JOB in record.args)

    log.addFilter(other_records)
    try:
        yield
    finally:
        log.removeFilter(other_records)


def print_summary(done: Filed, store: VectorStore, seconds: float, *, pruned: bool) -> None:
    """Print the result of an indexing as text."""
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
    for failure in sorted(done.failed, key=lambda failure: failure.path):
        say(plain(f"  {short_path(failure.path)}: {failure.code}: {failure.message}"))
    if done.stopped:
        say(f"stopped before the rest: {done.stopped}")
        say("memoranda quotas shows the quotas; memoranda quotas --quota NAME=NUMBER raises one")
