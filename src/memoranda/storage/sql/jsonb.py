"""Attributes as columns of PostgreSQL, and filters as its conditions, with exactly the meaning of `filters.matches`.

A row's own fields are columns; its tags and metadata are one JSON object of coded values, in which every value is a
string that begins with its type, so that a comparison of text is a comparison by type and value:

| code | value |
|---|---|
| `s` and the string | a string |
| `n` and 16 hex digits | a number, by its rank among the floats |
| `b0`, `b1` | false, true |
| `z` | None, as the element of a list |
| `o` | what equals nothing and has no order: objects, nested lists, NaN |

A list is an array of these; a key whose value is None is left out. A whole number that is no float is also stored in
full, under its key followed by `WIDE`. Characters that PostgreSQL cannot store in a string, NUL and lone surrogates,
are written with other characters of the same order, see `escaped`. A row with an own field of another type is `odd`:
its own fields are in the JSON object too, and filters read only that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.filters import AllOf, Attributes, Compare, Filter, Scalar
from memoranda.storage.attributes import COMPARE, in_float_range, is_exact, number_order
from memoranda.storage.sql import pgbinary
from memoranda.storage.sql.pgbinary import Binary
from memoranda.storage.sql.where import NUMBERS, ORDER, TEXT
from memoranda.text.memo import kept

OWN = (*TEXT, *(key for key in NUMBERS if key != "$seq"))
COLUMNS = (*(TEXT.get(key) or NUMBERS[key] for key in OWN), "odd", "attributes")
"""The columns beside `tenant_id` and `seq`, in the order of `columns`."""
DEFINITION = ",\n    ".join(
    [f'{name} TEXT COLLATE "C"' for name in TEXT.values()]
    + [f"{name} BIGINT" for name in NUMBERS.values() if name != "seq"]
    + ["odd BOOLEAN NOT NULL", "attributes JSONB"]
)
TYPES = ("text[]",) * len(TEXT) + ("bigint[]",) * (len(NUMBERS) - 1) + ("boolean[]", "jsonb[]")
INDEXED = ("user_id", "agent_id", "channel_id", "session_id")
EXACT = 1 << 53
"""Whole numbers up to here are their own floats."""
WIDE = "\x02wide"
_OWN = frozenset(OWN) | {"$seq"}
_UNFIT = re.compile("[\0\x01\ue000\ud800-\udfff]")
_encode = msgspec.json.Encoder().encode


def policy(table: str) -> str:
    """Return the row security of a table with `tenant_id`, as in migrations/postgres/0001_core.sql. A setting that is
    read in a SELECT of its own is read once per statement, not once per row."""
    return (
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY; ALTER TABLE {table} FORCE ROW LEVEL SECURITY;"
        f" DROP POLICY IF EXISTS own_tenant ON {table};"
        f" CREATE POLICY own_tenant ON {table} USING (tenant_id = (SELECT current_setting('memoranda.tenant', true))"
        " OR (SELECT current_setting('memoranda.house', true)) = 'on')"
    )


def indexes(table: str) -> str:
    """Return the indexes for scopes, which most filters contain."""
    statements = [
        f"CREATE INDEX IF NOT EXISTS {table}_{name} ON {table} (tenant_id, {name}) WHERE {name} IS NOT NULL"
        for name in INDEXED
    ]
    return "; ".join(
        [*statements, f"CREATE INDEX IF NOT EXISTS {table}_odd ON {table} (tenant_id) WHERE odd"]
    )


def columns(seqs: Sequence[int] | NDArray[np.int64], rows: Sequence[Attributes]) -> list[Binary | None]:
    """Return the rows' values of `COLUMNS`, each column an array of `TYPES`; None for a column that is all NULL."""
    own = {key: [attributes.get(key) for attributes in rows] for key in OWN}
    numbered = [attributes.get("$seq") for attributes in rows]
    if _are_regular(own) and set(map(type, numbered)) <= {int} and numbered == list(map(int, seqs)):
        odd = [False] * len(rows)
    else:
        odd = [_is_odd(int(seq), attributes) for seq, attributes in zip(seqs, rows, strict=True)]
        own = {
            key: [None if strange else value for value, strange in zip(values, odd, strict=True)]
            for key, values in own.items()
        }
    arrays = [_column(key, values) for key, values in own.items()]
    arrays.append(pgbinary.array(pgbinary.BOOL, [b"\1" if strange else b"\0" for strange in odd]))
    coded = [_coded(attributes, strange) for attributes, strange in zip(rows, odd, strict=True)]
    arrays.append(pgbinary.array(pgbinary.JSONB, coded) if any(coded) else None)
    return arrays


def _column(key: str, values: Sequence[Any]) -> Binary | None:
    if values.count(None) == len(values):
        return None
    if key in TEXT:
        return pgbinary.texts(values)
    return pgbinary.optional_ints(values) if None in values else pgbinary.ints(values)


def _are_regular(own: dict[str, list[Any]]) -> bool:
    """Return True if none of these columns makes its row odd: `_is_odd` for whole columns."""
    for key, values in own.items():
        kinds = set(map(type, values)) - {type(None)}
        if not kinds:
            continue
        given = [value for value in values if value is not None]
        if key in TEXT:
            if kinds != {str} or not fits("".join(set(given))):
                return False
        elif kinds != {int} or min(given) < -EXACT or max(given) > EXACT:
            return False
    return True


def _is_odd(seq: int, attributes: Attributes) -> bool:
    for key, value in attributes.items():
        if key in TEXT:
            if value is not None and (type(value) is not str or not fits(value)):
                return True
        elif (
            key in NUMBERS and value is not None and (type(value) is not int or not -EXACT <= value <= EXACT)
        ):
            return True
    return bool(attributes.get("$seq") != seq)


def fits(text: str) -> bool:
    """Return True if PostgreSQL can store the string unchanged."""
    return "\0" not in text and (text.isascii() or text.encode("utf-8", "ignore").decode() == text)


def _coded(attributes: Attributes, odd: bool) -> bytes | None:
    coded: dict[str, Any] = {}
    for key, value in attributes.items():
        if value is None or (key in _OWN and not odd):
            continue
        name = label(key)
        if isinstance(value, list | tuple):
            coded[name] = ["z" if item is None else code(item) or "o" for item in value]
        else:
            coded[name] = code(value) or "o"
            if _is_wide(value):
                coded[name + WIDE] = str(value)
    return b"\1" + _encode(coded) if coded else None


def _is_wide(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int) or -EXACT <= value <= EXACT:
        return False
    return in_float_range(value) and not is_exact(value)


def code(value: Any) -> str | None:
    """Return the scalar's code; None if nothing equals it, such as NaN."""
    if isinstance(value, str):
        return "s" + escaped(value)
    if isinstance(value, bool):
        return f"b{value:d}"
    return _number(value) if isinstance(value, int | float) else None


@lru_cache(maxsize=16_384)
def _number(value: int | float) -> str | None:
    order = number_order(value)
    return None if order is None else _place(order)


def _place(order: int) -> str:
    return f"n{order + (1 << 63):016x}"


def escaped(text: str) -> str:
    """Return the string in characters that PostgreSQL stores; different strings stay different and in order."""
    return text if text.isascii() and text.isprintable() else _UNFIT.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    point = ord(match[0])
    if point < 2:
        return "\x01\x01" if point == 0 else "\x01\x02"
    return "\ue000\x04" if point == 0xE000 else f"\ue000\x03{chr(0x100 + point - 0xD800)}"


@kept(4_096)
def label(key: str) -> str:
    """Return the key in the JSON object."""
    return escaped(key)


class Condition:
    """A filter as SQL: `sql` with places `$1, $2, ...` and their `params`, the first of which may be given."""

    def __init__(self, where: Filter, params: Sequence[Any] = ()) -> None:
        self.params: list[Any] = list(params)
        self.sql = self._filter(where)

    def place(self, value: Any, cast: str) -> str:
        """Add a parameter and return its placeholder."""
        self.params.append(value)
        return f"${len(self.params)}::{cast}"

    def _filter(self, where: Filter) -> str:
        if isinstance(where, Compare):
            return self._compare(where)
        word, none = (" AND ", "TRUE") if isinstance(where, AllOf) else (" OR ", "FALSE")
        return word.join(f"({self._filter(part)})" for part in where.parts) or none

    def _compare(self, compare: Compare) -> str:
        key, op = compare.key, compare.op
        values = compare.value if isinstance(compare.value, tuple) else (compare.value,)
        if op in ORDER:
            if key not in TEXT and key not in NUMBERS:
                return self._coded_order(key, op, values[0])
            own = self._text_order(TEXT[key], op, values[0]) if key in TEXT else self._number_order(
                NUMBERS[key], op, values[0]
            )  # fmt: skip
            return f"({own}) AND NOT odd OR odd AND ({self._coded_order(key, op, values[0])})"
        sql = self._coded_equal(key, values)
        if key in TEXT or key in NUMBERS:
            sql = f"({self._own_equal(key, values)}) AND NOT odd OR odd AND ({sql})"
        return sql if op in ("eq", "in") else f"({sql}) IS NOT TRUE"

    def _own_equal(self, key: str, values: Sequence[Scalar]) -> str:
        column, ways = TEXT.get(key) or NUMBERS[key], []
        if key in TEXT:
            given: list[Any] = [value for value in values if isinstance(value, str) and fits(value)]
            array, cast = pgbinary.texts, "text"
        else:
            given, array, cast = _wholes(values), pgbinary.ints, "bigint"  # type: ignore[assignment]
        if len(given) == 1:
            ways.append(f"{column} = {self.place(given[0], cast)}")
        elif given:
            ways.append(f"{column} = ANY({self.place(array(given), cast + '[]')})")
        if None in values:
            ways.append(f"{column} IS NULL")
        return " OR ".join(ways) or "FALSE"

    def _text_order(self, column: str, op: str, value: object) -> str:
        if not isinstance(value, str):
            return "FALSE"
        if fits(value):
            return f"{column} {ORDER[op]} {self.place(value, 'text')}"
        # The column as `escaped` would write it; it contains neither NUL nor surrogates.
        column = f"replace(replace({column}, '\x01', '\x01\x02'), '\ue000', '\ue000\x04') COLLATE \"C\""
        return f"{column} {ORDER[op]} {self.place(escaped(value), 'text')}"

    def _number_order(self, column: str, op: str, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return "FALSE"
        if isinstance(value, int):
            return f"{column} {ORDER[op]} {self.place(max(-2 * EXACT, min(value, 2 * EXACT)), 'bigint')}"
        return f"{column} {ORDER[op]} {self.place(value, 'float8')}"

    def _coded_equal(self, key: str, values: Sequence[Scalar]) -> str:
        codes = [coded for value in values if value is not None if (coded := code(value)) is not None]
        if not codes and None not in values:
            return "FALSE"
        field = f"attributes -> {self.place(label(key), 'text')}"
        ways = [f"{field} IS NULL"] if None in values else []
        codes += ["z"] * len(ways)
        if len(codes) == 1:
            ways.append(f"jsonb_exists({field}, {self.place(codes[0], 'text')})")
        else:
            ways.append(f"jsonb_exists_any({field}, {self.place(pgbinary.texts(codes), 'text[]')})")
        return " OR ".join(ways)

    def _coded_order(self, key: str, op: str, value: object) -> str:
        if isinstance(value, str):
            return self._between(key, op, "s" + escaped(value), "s", "t")
        if isinstance(value, bool) or not isinstance(value, int | float):
            return "FALSE"
        upward = op in ("gt", "gte")
        if isinstance(value, int) and not in_float_range(value):
            return self._between(key, "gte", "n", "n", "o") if upward == (value < 0) else "FALSE"
        order = number_order(value)
        if order is None:
            return "FALSE"
        same = COMPARE[op](float(value), value)
        strict = "gt" if upward else "lt"
        way = self._between(key, strict + "e" if same else strict, _place(order), "n", "o")
        if not EXACT <= abs(value) < float("inf"):
            return way
        return self._wide_order(key, op, int(value), _place(order), way)

    def _between(self, key: str, op: str, bound: str, low: str, high: str) -> str:
        field = f'(attributes ->> {self.place(label(key), "text")}) COLLATE "C"'
        other = f"< '{high}'" if op in ("gt", "gte") else f">= '{low}'"
        return f"{field} {ORDER[op]} {self.place(bound, 'text')} AND {field} {other}"

    def _wide_order(self, key: str, op: str, value: int, place: str, way: str) -> str:
        """Compare whole numbers that share the value's float in full."""
        field, wide = self.place(label(key), "text"), self.place(label(key) + WIDE, "text")
        return (
            f"CASE WHEN attributes ->> {field} = {self.place(place, 'text')} AND attributes ->> {wide} IS NOT NULL"
            f" THEN (attributes ->> {wide})::numeric {ORDER[op]} {self.place(str(value), 'numeric')} ELSE {way} END"
        )


def _wholes(values: Sequence[Scalar]) -> list[int]:
    """Return the values that a whole number of a column can equal, by their floats."""
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    floats = [float(v) for v in numbers if isinstance(v, float) or in_float_range(v)]
    return [int(value) for value in floats if value.is_integer() and -EXACT <= value <= EXACT]
