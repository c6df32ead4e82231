"""Rows, chosen by URL: one line adds a database."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from memoranda.errors import ConfigError
from memoranda.storage.sql.base import Connection, Database, Options, Row

DATABASES = {
    "sqlite": "memoranda.storage.sql.sqlite:open_sqlite",
    "postgresql": "memoranda.storage.sql.postgres:open_postgres",
    "postgres": "memoranda.storage.sql.postgres:open_postgres",
}

__all__ = ["DATABASES", "Connection", "Database", "Options", "Row", "open_database"]


def open_database(url: str, folder: Path | None, options: Options = Options()) -> Database:  # noqa: B008
    """Open the database that `url` names; SQLite has its file in `folder` (None: temporary, deleted at close).

    Raises:
        ConfigError: the scheme is unknown, and the message lists the known ones; or its package is missing.
        StorageError: it cannot be opened.
    """
    scheme = url.split(":", 1)[0]
    if scheme not in DATABASES:
        raise ConfigError("database.url", f"{scheme!r} is unknown; use one of {', '.join(DATABASES)}")
    module, name = DATABASES[scheme].split(":")
    database: Database = getattr(import_module(module), name)(url, folder, options)
    return database
