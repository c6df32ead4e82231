"""A filter as SQL over the columns of `memories`, where columns can decide it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from memoranda.filters import STAMPS, Filter
from memoranda.storage.dialect import ORDER, ColumnDialect, Values, joined
from memoranda.text.stored import compact_json


class Where(msgspec.Struct, frozen=True):
    """A condition with its values. If `exact` is False it selects more rows than the filter does, and
    `filters.matches` must decide on each."""

    sql: str
    params: tuple[Any, ...] = ()
    exact: bool = True


UNDECIDED = Where("TRUE", exact=False)


def compile_where(where: Filter) -> Where:
    """Return the narrowest SQL condition over columns that every row passing `where` satisfies."""
    return _MEMORIES.condition(where)


class SqlDialect(ColumnDialect[Where]):
    """SQL with `?` for each value."""

    def all_of(self, parts: Sequence[Where]) -> Where:
        return _joined(parts, "AND", "TRUE")

    def any_of(self, parts: Sequence[Where]) -> Where:
        if any(part.sql == "TRUE" for part in parts):
            return Where("TRUE", exact=all(part.exact for part in parts))
        return _joined(parts, "OR", "FALSE")

    def unequal(self, key: str, values: Values) -> Where:
        equal = self.equal(key, values)
        return Where(f"({equal.sql}) IS NOT TRUE", equal.params) if equal.exact else UNDECIDED

    def column_equal(self, column: str, values: Sequence[str] | Sequence[int], null: bool) -> Where:
        sql, params = self.among(column, values)
        return Where(f"{sql} OR {column} IS NULL" if null else sql, params)

    def among(self, operand: str, values: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
        """True if the operand is one of the values."""
        if len(values) < 2:
            return (f"{operand} = ?", tuple(values)) if values else ("FALSE", ())
        return f"{operand} IN ({', '.join('?' * len(values))})", tuple(values)

    def column_order(self, column: str, op: str, value: str | int) -> Where:
        return Where(f"{column} {ORDER[op]} ?", (value,))


class _Memories(SqlDialect):
    def fits(self, text: str) -> bool:
        return "\x00" not in text  # no column contains it, no server accepts it

    def column_order(self, column: str, op: str, value: str | int) -> Where:
        fits = not isinstance(value, str) or self.fits(value)
        return super().column_order(column, op, value) if fits else UNDECIDED

    def coded_equal(self, key: str, values: Values) -> Where:
        if key in STAMPS and len(values.given) == len(values.texts) == 1:
            return _has(key, values.texts[0])
        return UNDECIDED

    def coded_text_order(self, key: str, op: str, value: str) -> Where:
        return UNDECIDED

    def coded_number_order(self, key: str, op: str, value: float) -> Where:
        return UNDECIDED


_MEMORIES = _Memories()


def _joined(parts: Sequence[Where], word: str, none: str) -> Where:
    params = tuple(value for part in parts for value in part.params)
    return Where(joined([part.sql for part in parts], word, none), params, all(part.exact for part in parts))


def _has(key: str, value: str) -> Where:
    """Return the rows whose metadata (JSON) has a key and somewhere a text."""
    text = compact_json(value).replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    sql = rf"""metadata LIKE '%"{key}":%' AND metadata LIKE ? ESCAPE '\'"""
    return Where(sql, (f"%{text}%",), exact=False)
