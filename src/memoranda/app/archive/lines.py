"""The lines of an archive as rows: checked, and moved to another scope if one is given. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from memoranda.app.archive.tables import PLACES, Table
from memoranda.errors import InvalidInput
from memoranda.text.stored import compact_json

Fields = dict[str, Any]
NewIds = Mapping[str, str | None]
"""Ids that replace those of the rows, by column; empty: rows stay where they were."""


def row_of(table: Table, raw: bytes, place: NewIds) -> dict[str, Any]:
    """Return the fields of a line, JSON as text.

    Raises:
        InvalidInput: says what is wrong.
    """
    try:
        line = table.decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInput("line", str(exc)) from exc
    row = {name: _value(name, kind, getattr(line, name)) for name, kind in table.fields.items()}
    return _moved(table, row, place) if place else row


def _value(name: str, kind: str, value: Any) -> Any:
    if value is None:
        return None
    kind = kind.removesuffix("?")
    if kind == "text" and "\0" in value:
        raise InvalidInput(name, "holds a NUL character")
    if kind in ("object", "array"):
        return _json(name, kind, value)
    return value


def _json(name: str, kind: str, raw: msgspec.Raw) -> str:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInput(name, f"is no JSON: {exc}") from exc
    if not isinstance(value, dict if kind == "object" else list):
        raise InvalidInput(name, f"must be an {kind}")
    return bytes(raw).decode()


def _moved(table: Table, row: dict[str, Any], place: NewIds) -> dict[str, Any]:
    """Return the row in another scope. A session has the user of that scope as its only one."""
    for name in table.places:
        if name in place:
            row[name] = place[name]
    if "user_id" in place:
        user = place["user_id"]
        if "owner" in row:
            row["owner"] = user or ""
        for name in ("written_by", "redacted_by"):
            if row.get(name) is not None:
                row[name] = user
        if table.name == "sessions":
            row["users"] = compact_json([] if user is None else [user])
    return row


def place_of_rows(scope: Mapping[str, str | None] | None, user_id: str | None) -> dict[str, str | None]:
    """Return the ids that replace those of rows: those of a scope, and a user."""
    place = {} if scope is None else {name: scope[name] for name in PLACES}
    if user_id is not None:
        place["user_id"] = user_id
    return place
