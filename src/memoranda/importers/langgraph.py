"""Long-term memories of LangGraph: the table `store` of its SQLite and PostgreSQL stores.

Source: the migrations in langgraph/store/sqlite/base.py and langgraph/store/postgres/base.py of langchain-ai/langgraph.

A row has `prefix` (the namespace, joined by dots), `key`, `value` (an object), `created_at`, `updated_at`. A value
with a text is imported as that text, with the rest as metadata; any other as JSON. Checkpoints are not memories and
are not read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from memoranda.importers.databases import Remote, copied, databases
from memoranda.importers.fields import mapping
from memoranda.importers.mapping import DATES, Fields, entry, has_text
from memoranda.importers.postgres import columns, opened, rows
from memoranda.importers.sources import Source, each_file
from memoranda.importers.values import Item, Skipped
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json

NAME = "langgraph"
TABLE = "store"
WANTED = {"prefix", "key", "value", "created_at"}


def matches(source: Source) -> bool:
    """Return True if the source is a database with such a table."""
    return bool(_store_databases(source))


def read(source: Source) -> Iterator[Item]:
    """The entries of the store as notes."""
    paths = _store_databases(source)
    yield from each_file(paths, lambda name: _read_file(name, paths[name], source.fields))


def _store_databases(source: Source) -> dict[str, Path]:
    return {name: path for name, path in databases(source, frozenset({TABLE})) if _is_store(path)}


def _is_store(path: Path) -> bool:
    try:
        with copied(path) as c:
            return {row[1] for row in c.execute(f"PRAGMA table_info({TABLE})")} >= WANTED
    except sqlite3.Error:
        return False


def _read_file(name: str, path: Path, fields: Fields) -> Iterator[Item]:
    full = path.resolve()
    source = f"{full.parent.name}/{full.name}"
    try:
        with copied(path) as c:
            seen: set[str] = set()
            cursor = c.execute(f"SELECT prefix, key, value, created_at FROM {TABLE} ORDER BY prefix, key")
            for prefix, key, value, created in cursor:
                yield from _entry(_id(prefix, key, seen), source, prefix, key, value, created, fields)
    except sqlite3.Error as exc:
        yield Skipped(kind="file", reason="is damaged", place=f"{name}: {exc}", failed=True)


def read_url(remote: Remote) -> Iterator[Item]:
    """The entries of a store in PostgreSQL.

    Raises:
        InvalidInput: the database cannot be read, or has no such table.
    """
    with opened(remote) as connection:
        columns(connection, TABLE)
        seen: set[str] = set()
        for row in rows(
            connection, f"SELECT prefix, key, value, created_at FROM {TABLE} ORDER BY prefix, key"
        ):
            prefix, key = row["prefix"], row["key"]
            id_ = _id(prefix, key, seen)
            value, created = row["value"], row["created_at"]
            yield from _entry(id_, remote.database, prefix, key, value, created, remote.fields)


def _id(prefix: str, key: str, seen: set[str]) -> str:
    """The id of a row: namespace and key with a slash between them. Where an earlier row has that id, as `a/b` and `c`
    after `a` and `b/c`, it is a digest of both."""
    joined = f"{prefix}/{key}"
    if joined in seen:
        return digest(str(prefix), str(key))
    if joined.count("/") > 1:
        seen.add(joined)
    return joined


def _entry(
    id_: str, source: str, prefix: str, key: str, value: Any, created: Any, fields: Fields
) -> Iterator[Item]:
    place = f"namespace {prefix}, key {key}"
    try:
        document = value if isinstance(value, dict) else json.loads(value)
    except (TypeError, ValueError, RecursionError) as exc:
        yield Skipped(kind="note", reason="is damaged", place=f"{place}: {exc}", failed=True)
        return
    payload = mapping(document)
    about = {"namespace": str(prefix).split("."), "key": key}
    inserted = created.isoformat() if isinstance(created, datetime) else created
    if not has_text(payload, fields):
        dates = {each: payload.get(each) for each in DATES}
        payload, fields = {"text": compact_json(document), **dates}, {}
    yield from entry(id_, payload, place, fields, inserted, source=source, **about)
