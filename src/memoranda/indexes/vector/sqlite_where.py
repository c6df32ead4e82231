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

from memoranda.filters import AllOf, Compare, Filter, Scalar
from memoranda.storage.attributes import COMPARE, in_float_range, is_exact, number_order, plain
from memoranda.storage.sql.where import NUMBERS, ORDER, TEXT
from memoranda.text.memo import kept

Condition = tuple[str, list[Any]]
"""SQL and its values."""

OWN = (*TEXT, *(key for key in NUMBERS if key != "$seq"))
COLUMNS = ("seq", *(TEXT.get(key) or NUMBERS[key] for key in OWN), "attributes", "original")
EXACT = 1 << 53
"""Whole numbers up to here are their own floats."""
MANY = 64
"""From this many values on, they are sent as one JSON array: a statement takes 250 000 values in all."""
DEEP = 100
"""A chain of more conditions than this is a balanced tree: SQLite nests 1 000 deep."""
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
    if type(value) is int and not _small(value) and in_float_range(value) and not is_exact(value):
        raise _Odd
    return _item(value)


def _item(value: Any) -> str:
    if isinstance(value, str):
        if not _sound(value):
            raise _Odd
        return "s" + value
    return code(value) or "o"


def code(value: Any) -> str | None:
    """Return the scalar's code; None if nothing equals it, such as NaN."""
    if isinstance(value, str):
        return "s" + value
    if isinstance(value, bool):
        return f"b{value:d}"
    if isinstance(value, int):
        return _whole(value)
    order = number_order(value) if isinstance(value, float) else None
    return None if order is None else _place(order)


@kept(16_384)
def _whole(value: int) -> str | None:
    order = number_order(value)
    return None if order is None else _place(order)


def _place(order: int) -> str:
    return f"n{order + (1 << 63):016x}"


@kept(4_096)
def _label(key: str) -> str:
    """Return the key in the JSON: itself, or its bytes if a path could not quote it."""
    return key if _SIMPLE.fullmatch(key) else "~" + key.encode("utf-8", "surrogatepass").hex()


def condition(where: Filter) -> Condition:
    """The filter over rows that have no `original`."""
    if isinstance(where, Compare):
        return _compare(where)
    word, none = ("AND", "1") if isinstance(where, AllOf) else ("OR", "0")
    return _joined([condition(part) for part in where.parts], word, none)


def _joined(parts: Sequence[Condition], word: str, none: str) -> Condition:
    if len(parts) > DEEP:
        half = len(parts) // 2
        parts = [_joined(parts[:half], word, none), _joined(parts[half:], word, none)]
    sql = f" {word} ".join(f"({sql})" for sql, _ in parts) or none
    return sql, [value for _, values in parts for value in values]


def _compare(compare: Compare) -> Condition:
    key, op = compare.key, compare.op
    values = compare.value if isinstance(compare.value, tuple) else (compare.value,)
    if op in ORDER:
        if key in TEXT:
            return _text_order(TEXT[key], op, values[0])
        return (
            _number_order(NUMBERS[key], op, values[0]) if key in NUMBERS else _code_order(key, op, values[0])
        )
    if key in TEXT:
        sql, params = _equal(
            TEXT[key], [v for v in values if isinstance(v, str) and _sound(v)], None in values
        )
    elif key in NUMBERS:
        sql, params = _equal(NUMBERS[key], _wholes(values), None in values)
    else:
        sql, params = _code_equal(key, values)
    return (sql if op in ("eq", "in") else f"({sql}) IS NOT TRUE"), params


def _equal(operand: str, values: Sequence[Any], none: bool) -> Condition:
    sql, params = _among(operand, values)
    return (f"{sql} OR {operand} IS NULL" if none else sql), params


def _among(operand: str, values: Sequence[Any]) -> Condition:
    if len(values) >= MANY:
        return f"{operand} IN (SELECT value FROM json_each(?))", [_encode(values).decode()]
    if len(values) == 1:
        return f"{operand} = ?", [values[0]]
    return f"{operand} IN ({', '.join('?' * len(values))})", list(values)


def _wholes(values: Sequence[Scalar]) -> list[int]:
    """Return the values that a whole number of a column can equal, by their floats."""
    orders = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    floats = [float(v) for v in orders if isinstance(v, float) or in_float_range(v)]
    return [int(value) for value in floats if value.is_integer() and -EXACT <= value <= EXACT]


def _text_order(column: str, op: str, value: object) -> Condition:
    if not isinstance(value, str):
        return "0", []
    op, bound = _bound(op, value)
    return f"{column} {ORDER[op]} ?", [bound]


def _bound(op: str, value: str) -> tuple[str, str]:
    """The comparison for strings without surrogates: none lies between a surrogate and U+E000."""
    broken = _SURROGATE.search(value)
    if broken is None:
        return op, value
    return ("gte" if op in ("gt", "gte") else "lt"), value[: broken.start()] + "\ue000"


def _number_order(column: str, op: str, value: object) -> Condition:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "0", []
    if isinstance(value, int):
        value = max(-2 * EXACT, min(value, 2 * EXACT))
    return f"{column} {ORDER[op]} ?", [value]


def _code_equal(key: str, values: Sequence[Scalar]) -> Condition:
    path, field = f'$."{_label(key)}"', "json_extract(attributes, ?)"
    codes = [
        coded
        for value in values
        if value is not None and not (isinstance(value, str) and not _sound(value))
        if (coded := code(value)) is not None
    ]
    item, params = _equal("value", codes, None in values)
    exists = f"EXISTS (SELECT 1 FROM json_each(attributes, ?) WHERE {item})"
    if None in values or len(codes) > FEW:
        alone, params = _among(field, codes)
        sql = f"{alone} OR ({field} BETWEEN '[' AND '\\' AND {exists})"
        everything = [path, *params, path, path, *params]
        return (f"{sql} OR {field} IS NULL", [*everything, path]) if None in values else (sql, everything)
    texts = [_encode(value_code).decode() for value_code in codes]
    somewhere = " OR ".join(["instr(attributes, ?)"] * len(codes)) or "0"
    sql = f"({somewhere}) AND ({somewhere} OR (instr(attributes, ?) AND {exists}))"
    return sql, [*texts, *(_entry(key, text) for text in texts), _entry(key, "["), path, *params]


def _entry(key: str, begins: str) -> str:
    """Return the beginning of a key and its value in the JSON's text. It occurs nowhere else there: labels have no
    quotes, nothing is nested, and no colon follows a string that is a value."""
    return f'"{_label(key)}":{begins}'


def _code_order(key: str, op: str, value: object) -> Condition:
    path, field = f'$."{_label(key)}"', "json_extract(attributes, ?)"
    if isinstance(value, str):
        op, bound = _bound(op, value)
        if op in ("lt", "lte"):
            return f"{field} {ORDER[op]} ? AND {field} >= 's'", [path, "s" + bound, path]
        return f"{field} BETWEEN ? AND 't'", [path, f"s{bound}\0" if op == "gt" else "s" + bound]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "0", []
    upward = op in ("gt", "gte")
    low, high = "n", "nz"
    if isinstance(value, float) or in_float_range(value):
        order = number_order(value)
        if order is None:
            return "0", []
        if not COMPARE[op](float(value), value):
            order += 1 if upward else -1
        low, high = (_place(order), high) if upward else (low, _place(order))
    elif upward != (value < 0):
        return "0", []
    number = _entry(key, '"n')
    place = f"substr(attributes, instr(attributes, ?) + {len(number) - 1}, {len(_place(0))})"
    return f"instr(attributes, ?) AND {place} BETWEEN ? AND ?", [number, number, low, high]
