"""Tables of PostgreSQL with vectors: those of LangChain, LlamaIndex and mem0, and any other whose columns are named.

The table is that with a column of the type `vector`, or the one named by `table`. A column of JSON is metadata; a
column of vectors is not read: texts are embedded again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.importers.databases import Remote
from memoranda.importers.mapping import entry
from memoranda.importers.postgres import columns, opened, rows, tables
from memoranda.importers.values import Item

NAME = "pgvector"
VECTORS = ("vector", "halfvec", "sparsevec", "bit")
_WITH_VECTORS = (
    "EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0"
    " AND format_type(a.atttypid, NULL) IN ('vector', 'halfvec', 'sparsevec'))"
)
_IDS = ("id", "uuid", "node_id", "langchain_id", "custom_id")


def read_url(remote: Remote) -> Iterator[Item]:
    """The rows of the table as notes.

    Raises:
        InvalidInput: the database cannot be read, has no such table or columns, or several tables with vectors.
    """
    with opened(remote) as connection:
        table = remote.fields.get("table") or _only(tables(connection, _WITH_VECTORS))
        types = columns(connection, table)
        wanted = [name for name, type_ in types.items() if type_ not in VECTORS]
        for what, name in remote.fields.items():
            if what != "table" and name not in wanted and not any(_is_json(types[each]) for each in wanted):
                raise InvalidInput("map", f"{table} has no column {name!r}; it has {', '.join(wanted)}")
        key = remote.fields.get("id") or next((name for name in _IDS if name in wanted), "")
        if not key:
            raise InvalidInput("map", f"{table} has no column named as an id; name it with --map id=COLUMN")
        yield from _entries(connection, table, wanted, key, remote)


def _entries(connection: Any, table: str, wanted: list[str], key: str, remote: Remote) -> Iterator[Item]:
    from psycopg import sql

    names = sql.SQL(", ").join(map(sql.Identifier, wanted))
    parts = [sql.Identifier(part.strip('"')) for part in table.split(".")]
    query = sql.SQL("SELECT {} FROM {}").format(names, sql.SQL(".").join(parts))
    for row in rows(connection, query):
        id_ = str(row.pop(key))
        place = f"table {table}, row {id_}"
        payload = _payload(row)
        yield from entry(f"{table}/{id_}", payload, place, remote.fields, source=remote.database, table=table)


def _payload(row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a row, with the keys of its JSON columns beside them."""
    payload: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            payload = value | payload
        elif value is not None:
            payload[name] = value.isoformat() if isinstance(value, date) else value
    return payload


def _is_json(type_: str) -> bool:
    return type_ in ("json", "jsonb")


def _only(names: list[str]) -> str:
    if len(names) == 1:
        return names[0]
    says = (
        "there is no table with vectors" if not names else f"several tables have vectors: {', '.join(names)}"
    )
    raise InvalidInput("map", f"{says}; name one with --map table=NAME")
