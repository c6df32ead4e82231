"""Tables of PostgreSQL, a row at a time, in a transaction that only reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from memoranda.errors import ConfigError, InvalidInput
from memoranda.importers.databases import Remote

PAGE = 500


@contextmanager
def opened(remote: Remote) -> Iterator[Any]:
    """A connection to the database.

    Raises:
        InvalidInput: it cannot be reached or read.
        ConfigError: psycopg is not installed.
    """
    try:
        import psycopg
    except ImportError as exc:
        raise ConfigError(
            "source", "reading PostgreSQL needs psycopg: pip install 'memoranda[postgres]'"
        ) from exc
    try:
        with psycopg.connect(remote.url) as connection:
            connection.read_only = True
            yield connection
    except psycopg.Error as exc:
        says = str(exc).strip().splitlines()[0]
        raise InvalidInput("source", f"{remote.place} cannot be read: {says}") from exc


def tables(connection: Any, where: str) -> list[str]:
    """The tables and views that the connection finds by name and that pass, see `columns`."""
    cursor = connection.execute(
        "SELECT c.oid::regclass::text FROM pg_class c WHERE c.relkind IN ('r', 'v', 'm', 'p')"
        f" AND pg_table_is_visible(c.oid) AND {where} ORDER BY 1"
    )
    return [name for (name,) in cursor.fetchall()]


def columns(connection: Any, table: str) -> dict[str, str]:
    """The columns of a table, by name: their types.

    Raises:
        InvalidInput: there is no such table.
    """
    attributes = connection.execute(
        "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        [table],
    ).fetchall()
    if not attributes:
        raise InvalidInput("map", f"the database has no table {table!r}")
    return dict(attributes)


def rows(connection: Any, query: Any) -> Iterator[dict[str, Any]]:
    """The rows of a query by the names of their columns, some at a time."""
    from psycopg.rows import dict_row

    with connection.cursor("memoranda_import", row_factory=dict_row) as cursor:
        cursor.itersize = PAGE
        cursor.execute(query)
        yield from cursor
