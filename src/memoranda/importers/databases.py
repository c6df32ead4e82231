"""Databases of other systems: SQLite files, read from a copy, and servers, named by a URL."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from memoranda.errors import InvalidInput
from memoranda.importers.mapping import Fields
from memoranda.importers.sources import Source
from memoranda.storage.data_lock import refuse_live_database

POSTGRES_PORT = 5432


class Remote(NamedTuple):
    """A database behind a URL, and the names of its fields."""

    url: str
    fields: Fields

    @property
    def place(self) -> str:
        """The URL without user and password."""
        parts = urlsplit(self.url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()

    @property
    def host(self) -> str:
        """The host of the URL and its port, without user and password."""
        return urlsplit(self.url).netloc.rpartition("@")[2].lower()

    @property
    def database(self) -> str:
        """The host of a URL of PostgreSQL and the database: the same with another user, and with or without 5432."""
        parts = urlsplit(self.url)
        given = dict(parse_qsl(parts.query))
        host = (self.host or given.get("host", "")).removesuffix(f":{POSTGRES_PORT}")
        return f"{host}/{parts.path.strip('/') or given.get('dbname', '')}"


def is_url(path: str | Path) -> bool:
    """Return True if a source is a URL."""
    return isinstance(path, str) and "://" in path


@contextmanager
def copied(path: Path) -> Iterator[sqlite3.Connection]:
    """A copy of an SQLite database, with what its log has; the database itself is only read.

    Raises:
        InvalidInput: it is in use by this process.
        OSError: it cannot be read.
    """
    refuse_live_database(path, "source")
    with tempfile.TemporaryDirectory(prefix="memoranda-import-") as folder:
        copy = Path(folder, "copy.sqlite")
        shutil.copyfile(path, copy)
        log = path.with_name(f"{path.name}-wal")
        if log.exists():
            shutil.copyfile(log, copy.with_name(f"{copy.name}-wal"))
        with closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
            yield connection


def databases(source: Source, tables: frozenset[str]) -> Iterator[tuple[str, Path]]:
    """The SQLite databases of a source that have these tables: name and path."""
    for name in source.names:
        path = source.file(name)
        if (
            path is not None
            and name.endswith((".sqlite3", ".sqlite", ".db", ".db3"))
            and tables <= _tables(path)
        ):
            yield name, path


def _tables(path: Path) -> set[str]:
    """The names of a database's tables, from its schema alone; empty for a file that is not a database."""
    with path.open("rb") as file:
        if file.read(16) != b"SQLite format 3\0":
            return set()
    try:
        with copied(path) as c:
            return {name for (name,) in c.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except (sqlite3.Error, OSError, InvalidInput):
        return set()
