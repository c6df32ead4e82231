"""The tables as the migrations leave them, for what is derived from their columns."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from functools import cache
from typing import NamedTuple

from pysqlite3 import dbapi2 as sqlite

from memoranda.storage.sql.statements import migrations

_COLUMNS = """
SELECT m.name, p.name, p.type, p.pk, NOT (p."notnull" OR p.pk > 0), p.dflt_value
FROM sqlite_master m, pragma_table_info(m.name) p WHERE m.type = 'table' ORDER BY m.name, p.cid
"""


class Column(NamedTuple):
    """A column: `TEXT`, `INTEGER`, `REAL` or `BLOB`; its place in the primary key, from 1, or 0; if it may be NULL; its
    default as SQL; if it was added after its table."""

    type: str
    key: int
    nullable: bool
    default: str | None
    added: bool


@cache
def schema() -> Mapping[str, Mapping[str, Column]]:
    """Return the columns of every table, in order. They are the same in every database."""
    created: dict[str, set[str]] = {}
    with closing(sqlite.connect(":memory:")) as db:
        for _, script in migrations("sqlite"):
            db.executescript(script)
            rows = db.execute(_COLUMNS).fetchall()
            now: dict[str, set[str]] = {}
            for table, name, *_ in rows:
                now.setdefault(table, set()).add(name)
            created = now | created
    tables: dict[str, dict[str, Column]] = {}
    for table, name, type_, key, nullable, default in rows:
        added = name not in created[table]
        tables.setdefault(table, {})[name] = Column(type_, key, bool(nullable), default, added)
    return tables
