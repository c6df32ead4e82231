"""Folders of Markdown notes: a vault of Obsidian, or a project of basic-memory; also as a zip file.

The formats are those of `markdown.py`. A vault has a folder `.obsidian`; the notes of basic-memory have a `permalink`,
observations and relations.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from memoranda.importers import markdown
from memoranda.importers.dates import moment, unread
from memoranda.importers.fields import items, named, text
from memoranda.importers.markdown import Note
from memoranda.importers.sources import Source, each_file, left_out
from memoranda.importers.values import Entry, Item, Skipped
from memoranda.text.hashing import digest

OBSIDIAN = "obsidian"
BASIC_MEMORY = "basic-memory"
MAX_NOTE = 16 << 20
LOOKED_AT = 20
"""Notes by which basic-memory is recognised."""
HIDDEN = (".obsidian/", ".trash/", ".git/")


def is_basic_memory(source: Source) -> bool:
    """Return True if the notes are those of basic-memory."""
    return any(
        "permalink" in markdown.parsed(_content(source, file)).properties
        for file in _files(source)[:LOOKED_AT]
    )


def is_vault(source: Source) -> bool:
    """Return True if the source is a folder with notes: a vault, or any other."""
    return bool(_files(source))


def read_vault(source: Source) -> Iterator[Item]:
    """Each note as a memory, with its tags and links."""
    files = _files(source)
    yield from each_file(files, lambda file: _note(source, file))
    yield from left_out(source, [*files, *(each for each in source.names if _is_hidden(each))])


def read_basic_memory(source: Source) -> Iterator[Item]:
    """Each note as a memory, and its observations and relations as facts."""
    files = _files(source)
    yield from each_file(files, lambda file: _note(source, file, graph=True))
    yield from left_out(source, [*files, *(each for each in source.names if _is_hidden(each))])


def _files(source: Source) -> list[str]:
    return [
        each for each in source.names if each.lower().endswith((".md", ".markdown")) and not _is_hidden(each)
    ]


def _is_hidden(file: str) -> bool:
    return any(f"/{part}" in f"/{file}" for part in HIDDEN)


def _content(source: Source, file: str) -> str:
    with source.open(file) as stream:
        return stream.read(MAX_NOTE).decode("utf-8-sig", "replace")


def _note(source: Source, file: str, *, graph: bool = False) -> Iterator[Item]:
    content = _content(source, file)
    note = markdown.parsed(text(content))
    title = text(note.properties.get("title")) or text(PurePosixPath(file).stem)
    if note.problem is not None:
        yield Skipped(kind="properties", reason=note.problem, place=file, failed=True)
    if not note.body:
        yield Skipped(kind="note", reason="has no text", place=file)
        return
    dates = markdown.dates(note)
    yield from unread(file, *dates)
    created = moment(*dates) or source.modified(file)
    aliases = [text(each) for each in items(note.properties.get("aliases")) if isinstance(each, str)]
    about: dict[str, Any] = named(
        {
            "title": title,
            "path": text(file),
            "type": text(note.properties.get("type")),
            "permalink": text(note.properties.get("permalink")),
            "aliases": aliases[: markdown.MOST],
            "links": markdown.links(note.body),
        }
    )
    body = note.body if title in note.body[:1_000] else f"{title}\n\n{note.body}"
    own = markdown.tags(note)
    entry = Entry(
        id=file,
        source=source.name,
        place=file,
        content=body,
        occurred_at=created,
        tags=own,
        metadata=about,
    )
    yield entry
    if graph:
        yield from _graph(note, title, file, entry)


def _graph(note: Note, title: str, file: str, like: Entry) -> Iterator[Entry]:
    statements = [("observation", category, said) for category, said in markdown.observations(note.body)]
    statements += [("relation", kind, target) for kind, target in markdown.relations(note.body)]
    for kind, label, value in statements:
        said = f"{title}: {value}" if kind == "observation" else f"{title} {label.replace('_', ' ')} {value}"
        yield Entry(
            id=digest(kind, text(file), label, value),
            source=like.source,
            place=file,
            content=said,
            kind="fact",
            occurred_at=like.occurred_at,
            tags=like.tags,
            metadata={"title": title, "path": text(file), kind: label},
        )
