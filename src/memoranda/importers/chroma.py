"""Collections of Chroma, from the folder of a persistent client.

Source: chroma's migrations of its system and metadata databases (chromadb/migrations in chroma-core/chroma), versions
0.4 to 1.x.

`chroma.sqlite3` has `collections`; `segments` of the scope METADATA; in `embeddings` the records of a segment with
their ids and dates; in `embedding_metadata` a row for each key, with the text under `chroma:document`. Vectors are in
files of the index beside it and are not read: texts are embedded again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memoranda.importers.databases import copied, databases
from memoranda.importers.fields import text
from memoranda.importers.mapping import Fields, entry
from memoranda.importers.sources import Source, each_file
from memoranda.importers.values import Item, Skipped

NAME = "chroma"
TABLES = frozenset({"collections", "segments", "embeddings", "embedding_metadata"})
PREFIX = "chroma:"
DOCUMENT = f"{PREFIX}document"
PAGE = 500
_RECORDS = """
SELECT e.id, c.name, e.embedding_id, e.created_at FROM embeddings e
JOIN segments s ON s.id = e.segment_id JOIN collections c ON c.id = s.collection
WHERE s.scope = 'METADATA' AND e.id > ? ORDER BY e.id LIMIT ?
"""
_METADATA = """
SELECT id, key, string_value, int_value, float_value, bool_value FROM embedding_metadata WHERE id BETWEEN ? AND ?
"""


def matches(source: Source) -> bool:
    """Return True if the source is such a folder or database."""
    return any(True for _ in databases(source, TABLES))


def read(source: Source) -> Iterator[Item]:
    """The records of all collections as notes."""
    paths = dict(databases(source, TABLES))
    yield from each_file(paths, lambda name: _read_file(source, name, paths[name]))


def _read_file(source: Source, name: str, path: Path) -> Iterator[Item]:
    try:
        with copied(path) as c:
            yield from _records(source, c, name, path.resolve().parent.name)
    except sqlite3.Error as exc:
        yield Skipped(kind="file", reason="is damaged", place=f"{name}: {exc}", failed=True)


def _records(source: Source, c: sqlite3.Connection, name: str, folder: str) -> Iterator[Item]:
    after = -1
    while rows := c.execute(_RECORDS, [after, PAGE]).fetchall():
        metadata: dict[int, dict[str, Any]] = {}
        for id_, key, string, whole, number, truth in c.execute(_METADATA, [rows[0][0], rows[-1][0]]):
            values = (string, whole, number, None if truth is None else bool(truth))
            metadata.setdefault(id_, {})[key] = next((each for each in values if each is not None), None)
        for id_, collection, given, created in rows:
            place = f"{name}, collection {collection}, record {given}"
            payload, fields = _record(metadata.get(id_, {}), source.fields)
            yield from entry(
                f"{collection}/{given}", payload, place, fields, created, source=folder, collection=collection
            )
        after = rows[-1][0]


def _record(stored: dict[str, Any], fields: Fields) -> tuple[dict[str, Any], Fields]:
    """The fields of a record, without the prefix of Chroma's own where the caller has none of that name, and the names
    of fields: the text is the document if there is one."""
    names = {key: key.removeprefix(PREFIX) for key in stored}
    names |= {key: key for key, short in names.items() if short in stored}
    if text(stored.get(DOCUMENT)):
        fields = {"text": names[DOCUMENT], **fields}
    return {names[key]: value for key, value in stored.items()}, fields
