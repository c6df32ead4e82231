"""`memoranda search --store`: passages of documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import typer

from memoranda.cli.find_store import find_store
from memoranda.cli.invocation import Invocation
from memoranda.cli.output import (
    emit,
    explanation_lines,
    plain,
    say,
    say_degraded,
    say_evidence,
    short_path,
    snippet_lines,
)
from memoranda.knowledge.values import Passage, PassageQuery
from memoranda.text.highlights import highlights
from memoranda.text.prompts import on_pages


def search_stores(invocation: Invocation, names: Sequence[str], query: PassageQuery) -> None:
    """Print the best passages of the vector stores with these ids and names."""
    stores = {store.id: store for store in (find_store(invocation.knowledge, name) for name in names)}
    result = invocation.knowledge.stores.search(list(stores), query)
    if invocation.as_json:
        emit(result)
        return
    colour = sys.stdout.isatty()
    for number, passage in enumerate(result.data, 1):
        typer.echo("\n".join(passage_lines(number, passage, query.queries[0], colour=colour)))
    if not result.data:
        say("nothing found")
    else:
        say_evidence(result.evidence, result.evidence_probability)
    for store in stores.values():
        if store.file_counts.in_progress:
            name = plain(store.name or store.id)
            say(f"{store.file_counts.in_progress} files of {name} are still being indexed")
    say_degraded(result.degraded)


def passage_lines(number: int, passage: Passage, query: str, *, colour: bool) -> Iterator[str]:
    """Yield the lines of a passage: score, place in the file, matching snippets, and the explanation if it has one."""
    yield f"{number:>2}. score {passage.score:.3f}  {plain(origin(passage))}"
    yield from snippet_lines(passage.text, highlights(passage.text, query), query, colour=colour)
    yield f"    {passage.file_id} {passage.chunk_id} [{passage.start}:{passage.end}]"
    yield from explanation_lines(passage.explanation)


def origin(passage: Passage) -> str:
    """Return the file, pages and headings of a passage."""
    path = passage.attributes.get("path")
    parts = [short_path(path) if isinstance(path, str) else passage.filename]
    if pages := on_pages(passage.page, passage.last_page):
        parts.append(pages)
    if passage.heading:
        parts.append(passage.heading)
    return "  ".join(parts)
