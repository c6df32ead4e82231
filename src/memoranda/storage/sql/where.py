"""A filter as SQL over the columns of `memories`, where columns can decide it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memoranda.filters import STAMPS, AllOf, AnyOf, Compare, Filter
from memoranda.text.json import compact_json

TEXT = {
    "$kind": "kind",
    "$user_id": "user_id",
    "$agent_id": "agent_id",
    "$channel_id": "channel_id",
    "$session_id": "session_id",
    "$role": "role",
    "$source": "source",
}
NUMBERS = {
    "$seq": "seq",
    "$occurred_at": "occurred_at",
    "$valid_from": "valid_from",
    "$invalid_at": "invalid_at",
    "$archived_at": "archived_at",
}
DEEP = 100
"""The most conditions joined in a row: SQLite refuses expressions that nest 1 000 deep, and each AND is one level."""
ORDER = {"gt": ">", "gte": ">=", "lt": "<", "lte": "<="}


class Where(msgspec.Struct, frozen=True):
    """A condition with its values. If `exact` is False it selects more rows than the filter does, and
    `filters.matches` must decide on each."""

    sql: str
    params: tuple[Any, ...]
    exact: bool


def compile_where(where: Filter) -> Where:
    """Return the narrowest SQL condition over columns that every row passing `where` satisfies."""
    if isinstance(where, Compare):
        return _compare(where)
    parts = [compile_where(part) for part in where.parts]
    params = tuple(value for part in parts for value in part.params)
    if isinstance(where, AllOf):
        sql = _joined([part.sql for part in parts], " AND ") or "TRUE"
        return Where(sql, params, all(part.exact for part in parts))
    assert isinstance(where, AnyOf)
    if any(part.sql == "TRUE" for part in parts):
        return Where("TRUE", (), all(part.exact for part in parts))
    sql = _joined([part.sql for part in parts], " OR ") or "FALSE"
    return Where(sql, params, all(part.exact for part in parts))


def _has(key: str, value: str) -> Where:
    """Return the rows whose metadata (JSON) has a key and somewhere a text."""
    text = compact_json(value).replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    sql = rf"""metadata LIKE '%"{key}":%' AND metadata LIKE ? ESCAPE '\'"""
    return Where(sql, (f"%{text}%",), exact=False)


def _joined(parts: Sequence[str], word: str) -> str:
    """The conditions joined by a word, many of them as a balanced tree."""
    if len(parts) > DEEP:
        half = len(parts) // 2
        parts = [_joined(parts[:half], word), _joined(parts[half:], word)]
    return word.join(f"({part})" for part in parts)


def _compare(compare: Compare) -> Where:
    if compare.key in STAMPS and compare.op == "eq" and isinstance(compare.value, str):
        return _has(compare.key, compare.value)
    column = TEXT.get(compare.key) or NUMBERS.get(compare.key)
    values = compare.value if isinstance(compare.value, tuple) else (compare.value,)
    kind = str if compare.key in TEXT else int
    if column is None or not all(value is None or type(value) is kind for value in values):
        return Where("TRUE", (), exact=False)
    if any(
        type(value) is str and "\x00" in value for value in values
    ):  # no column contains it, no server accepts it
        return Where("TRUE", (), exact=False)
    if compare.op in ORDER:
        if values[0] is None:
            return Where("FALSE", (), exact=True)
        return Where(f"{column} {ORDER[compare.op]} ?", values, exact=True)
    given = tuple(value for value in values if value is not None)
    ways = (
        [f"{column} IN ({', '.join('?' * len(given))})"] if len(given) > 1 else [f"{column} = ?"] * len(given)
    )
    if len(given) < len(values):
        ways.append(f"{column} IS NULL")
    sql = " OR ".join(ways) or "FALSE"
    if compare.op in ("eq", "in"):
        return Where(sql, given, exact=True)
    return Where(f"({sql}) IS NOT TRUE", given, exact=True)
