"""Attributes as one row of SQLite, and filters as its conditions, with exactly the meaning of `filters.matches`.

A row's own fields are columns; its tags and metadata are one JSON object of coded values, in which every value is
a string that begins with its type, so that a comparison of text is a comparison by type and value:

| code | value |
|---|---|
| `s` and the string | a string |
| `n` and 16 hex digits | a number, by its rank among the floats |
| `b0`, `b1` | false, true |
| `o` | what equals nothing and has no order: objects, nested lists, NaN |

A list is a JSON array of these, with null for None; a key whose value is None is left out. The few rows that cannot be
stored so (an own field of another type, a whole number that is no float, NUL or half a surrogate pair in a string)
store their attributes unchanged, in `original`, and `matches` decides on them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memoranda.storage.attributes import plain
from memoranda.storage.dialect import NUMBERS, ORDER, OWN, TEXT, Values
from memoranda.storage.numbers import EXACT, is_wide, rank_code, ranks, scalar_code
from memoranda.storage.sql.where import SqlDialect, Where
from memoranda.text.memo import kept

COLUMNS = ("seq", *(TEXT.get(key) or NUMBERS[key] for key in OWN), "attributes", "original")
MANY = 64
"""From this many values on, they are sent as one JSON array: a statement takes 250 000 values in all."""
FEW = 4
"""Up to here, values are searched in the JSON's text, at a third of the cost of parsing it."""
_COLUMN = {key: column for column, key in enumerate(("$seq", *OWN))}
_BLANK: tuple[Any, ...] = (0, *(0 if key in TEXT else "" for key in OWN), 0, 0)
_SIMPLE = re.compile(r"[\w$. -]+", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")
_encode = msgspec.json.Encoder().encode


class _Odd(Exception):
    """The row cannot be stored as columns and codes."""


def record(seq: int, attributes: Mapping[str, Any]) -> list[Any]:
    """The values of COLUMNS for a row. An absent text is 0 and an absent number '', as binding None is slow."""
    row = list(_BLANK)
    row[0] = seq
    try:
        if attributes.get("$seq") != seq:
            raise _Odd
        others = {}
        for key, value in attributes.items():
            if value is None:
                continue
            column = _COLUMN.get(key)
            if column is None:
                others[_label(key)] = _code(value)
            elif column:
                row[column] = _own(value, str if column <= len(TEXT) else int)
        if others:
            row[-2] = _encode(others).decode()
        return row
    except _Odd:
        return [seq, *_BLANK[1:-1], json.dumps(plain(attributes))]


def _own(value: Any, kind: type[str] | type[int]) -> Any:
    sound: Callable[[Any], bool] = _sound if kind is str else _small
    if type(value) is not kind or not sound(value):
        raise _Odd
    return value


def _small(number: int) -> bool:
    return -EXACT <= number <= EXACT


def _sound(text: str) -> bool:
    return "\0" not in text and (text.isascii() or _SURROGATE.search(text) is None)


def _code(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [None if item is None else _item(item) for item in value]
    if is_wide(value):
        raise _Odd
    return _item(value)


def _item(value: Any) -> str:
    coded = code(value)
    if coded is None and isinstance(value, str):
        raise _Odd
    return coded or "o"


def code(value: Any) -> str | None:
    """Return the scalar's code; None if nothing in the JSON equals it, such as NaN."""
    if isinstance(value, str):
        return "s" + value if _sound(value) else None
    return scalar_code(value)


@kept(4_096)
def _label(key: str) -> str:
    """Return the key in the JSON: itself, or its bytes if a path could not quote it."""
    return key if _SIMPLE.fullmatch(key) else "~" + key.encode("utf-8", "surrogatepass").hex()


class _Records(SqlDialect):
    """Filters over rows that have no `original`."""

    def fits(self, text: str) -> bool:
        return _sound(text)

    def among(self, operand: str, values: Sequence[Any]) -> tuple[str, tuple[Any, ...]]:
        if len(values) < MANY:
            return super().among(operand, values)
        return f"{operand} IN (SELECT value FROM json_each(?))", (_encode(values).decode(),)

    def column_order(self, column: str, op: str, value: str | int) -> Where:
        return super().column_order(column, *(_bound(op, value) if isinstance(value, str) else (op, value)))

    def coded_equal(self, key: str, values: Values) -> Where:
        path, field = f'$."{_label(key)}"', "json_extract(attributes, ?)"
        codes = [coded for value in values.present if (coded := code(value)) is not None]
        item = self.column_equal("value", codes, values.null)
        exists = f"EXISTS (SELECT 1 FROM json_each(attributes, ?) WHERE {item.sql})"
        if values.null or len(codes) > FEW:
            alone, params = self.among(field, codes)
            sql = f"{alone} OR ({field} BETWEEN '[' AND '\\' AND {exists})"
            params = (*((path, *params) if codes else ()), path, path, *item.params)
            return Where(f"{sql} OR {field} IS NULL", (*params, path)) if values.null else Where(sql, params)
        texts = [_encode(coded).decode() for coded in codes]
        somewhere = " OR ".join(["instr(attributes, ?)"] * len(codes)) or "0"
        sql = f"({somewhere}) AND ({somewhere} OR (instr(attributes, ?) AND {exists}))"
        starts = (_entry(key, text) for text in texts)
        return Where(sql, (*texts, *starts, _entry(key, "["), path, *item.params))

    def coded_text_order(self, key: str, op: str, value: str) -> Where:
        path, field = f'$."{_label(key)}"', "json_extract(attributes, ?)"
        op, bound = _bound(op, value)
        if op in ("lt", "lte"):
            return Where(f"{field} {ORDER[op]} ? AND {field} >= 's'", (path, "s" + bound, path))
        return Where(f"{field} BETWEEN ? AND 't'", (path, f"s{bound}\0" if op == "gt" else "s" + bound))

    def coded_number_order(self, key: str, op: str, value: float) -> Where:
        number, (low, high) = _entry(key, '"n'), map(rank_code, ranks(op, value))
        place = f"substr(attributes, instr(attributes, ?) + {len(number) - 1}, {len(low)})"
        return Where(f"instr(attributes, ?) AND {place} BETWEEN ? AND ?", (number, number, low, high))


condition = _Records().condition


def _bound(op: str, value: str) -> tuple[str, str]:
    """The comparison for strings without surrogates: none lies between a surrogate and U+E000."""
    broken = _SURROGATE.search(value)
    if broken is None:
        return op, value
    return ("gte" if op in ("gt", "gte") else "lt"), value[: broken.start()] + "\ue000"


def _entry(key: str, begins: str) -> str:
    """Return the beginning of a key and its value in the JSON's text. It occurs nowhere else there: labels have no
    quotes, nothing is nested, and no colon follows a string that is a value."""
    return f'"{_label(key)}":{begins}'
