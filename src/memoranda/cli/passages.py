"""`memoranda search --store`: passages of documents."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import typer

from memoranda.cli.index_documents import existing
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
from memoranda.cli.product import knowledge
from memoranda.config.sections import Config
from memoranda.knowledge.values import Passage, PassageQuery
from memoranda.text.highlights import highlights


def search_stores(config: Config, names: Sequence[str], query: PassageQuery, *, as_json: bool) -> None:
    """Prints the best passages of the stores of these ids and names."""
    with knowledge(config) as shelves:
        stores = {one.id: one for one in (existing(shelves, name) for name in names)}
        found = shelves.stores.search(list(stores), query)
    if as_json:
        emit(found)
        return
    colour = sys.stdout.isatty()
    for number, passage in enumerate(found.data, 1):
        typer.echo("\n".join(passage_lines(number, passage, query.queries[0], colour=colour)))
    working = [one for one in stores.values() if one.file_counts.in_progress]
    if not found.data:
        say("nothing found")
    else:
        say_evidence(found.evidence, found.evidence_probability)
    for one in working:
        say(f"{one.file_counts.in_progress} files of {plain(one.name or one.id)} are still being indexed")
    say_degraded(found.degraded)


def passage_lines(number: int, passage: Passage, query: str, *, colour: bool) -> Iterator[str]:
    """A passage for people: its score, where it stands, the matching snippets, and its explanation when it has one."""
    yield f"{number:>2}. score {passage.score:.3f}  {plain(origin(passage))}"
    yield from snippet_lines(passage.text, highlights(passage.text, query), query, colour=colour)
    yield f"    {passage.file_id} {passage.chunk_id} [{passage.start}:{passage.end}]"
    yield from explanation_lines(passage.explanation)


def origin(passage: Passage) -> str:
    """The file, the page and the headings that a passage stands under."""
    path = passage.attributes.get("path")
    parts = [short_path(path) if isinstance(path, str) else passage.filename]
    if passage.page is not None:
        parts.append(f"page {passage.page}")
    if passage.heading:
        parts.append(passage.heading)
    return "  ".join(parts)
