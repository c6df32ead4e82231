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
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.filters import Attributes, Filter
from memoranda.storage.dialect import NUMBERS, ORDER, OWN, TEXT, ColumnDialect, Values, joined
from memoranda.storage.numbers import EXACT, UPWARD, is_wide, number_order, rank_code, ranks, scalar_code
from memoranda.storage.sql import pgbinary
from memoranda.storage.sql.pgbinary import Binary
from memoranda.text.memo import kept

COLUMNS = (*(TEXT.get(key) or NUMBERS[key] for key in OWN), "odd", "attributes")
"""The columns beside `tenant_id` and `seq`, in the order of `columns`."""
DEFINITION = ",\n    ".join(
    [f'{name} TEXT COLLATE "C"' for name in TEXT.values()]
    + [f"{name} BIGINT" for name in NUMBERS.values() if name != "seq"]
    + ["odd BOOLEAN NOT NULL", "attributes JSONB"]
)
TYPES = ("text[]",) * len(TEXT) + ("bigint[]",) * (len(NUMBERS) - 1) + ("boolean[]", "jsonb[]")
INDEXED = ("user_id", "agent_id", "channel_id", "session_id")
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
            if is_wide(value):
                coded[name + WIDE] = str(value)
    return b"\1" + _encode(coded) if coded else None


def code(value: Any) -> str | None:
    """Return the scalar's code; None if nothing equals it, such as NaN."""
    return "s" + escaped(value) if isinstance(value, str) else scalar_code(value)


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


class Condition(ColumnDialect[str]):
    """A filter as SQL: `sql` with places `$1, $2, ...` and their `params`, the first of which may be given."""

    def __init__(self, where: Filter, params: Sequence[Any] = ()) -> None:
        self.params: list[Any] = list(params)
        self.sql = self.condition(where)

    def place(self, value: Any, cast: str) -> str:
        """Add a parameter and return its placeholder."""
        self.params.append(value)
        return f"${len(self.params)}::{cast}"

    def all_of(self, parts: Sequence[str]) -> str:
        return joined(parts, "AND", "TRUE")

    def any_of(self, parts: Sequence[str]) -> str:
        return joined(parts, "OR", "FALSE")

    def equal(self, key: str, values: Values) -> str:
        return self._regular(key, super().equal(key, values), self.coded_equal, values)

    def unequal(self, key: str, values: Values) -> str:
        return f"({self.equal(key, values)}) IS NOT TRUE"

    def text_order(self, key: str, op: str, value: str) -> str:
        return self._regular(key, super().text_order(key, op, value), self.coded_text_order, op, value)

    def number_order(self, key: str, op: str, value: float) -> str:
        return self._regular(key, super().number_order(key, op, value), self.coded_number_order, op, value)

    def _regular(self, key: str, sql: str, coded: Callable[..., str], *compared: Any) -> str:
        """Return a condition of columns for rows that are not odd, with the coded one for those that are."""
        return f"({sql}) AND NOT odd OR odd AND ({coded(key, *compared)})" if key in _OWN else sql

    def fits(self, text: str) -> bool:
        return fits(text)

    def column_equal(self, column: str, values: Sequence[Any], null: bool) -> str:
        array, cast = (pgbinary.ints, "bigint") if column in NUMBERS.values() else (pgbinary.texts, "text")
        ways = []
        if len(values) == 1:
            ways.append(f"{column} = {self.place(values[0], cast)}")
        elif values:
            ways.append(f"{column} = ANY({self.place(array(values), cast + '[]')})")
        if null:
            ways.append(f"{column} IS NULL")
        return " OR ".join(ways) or "FALSE"

    def column_order(self, column: str, op: str, value: str | int) -> str:
        if isinstance(value, int):
            return f"{column} {ORDER[op]} {self.place(value, 'bigint')}"
        if fits(value):
            return f"{column} {ORDER[op]} {self.place(value, 'text')}"
        # The column as `escaped` would write it; it contains neither NUL nor surrogates.
        column = f"replace(replace({column}, '\x01', '\x01\x02'), '\ue000', '\ue000\x04') COLLATE \"C\""
        return f"{column} {ORDER[op]} {self.place(escaped(value), 'text')}"

    def coded_equal(self, key: str, values: Values) -> str:
        codes = [coded for value in values.present if (coded := code(value)) is not None]
        if not codes and not values.null:
            return "FALSE"
        field = f"attributes -> {self.place(label(key), 'text')}"
        ways = [f"{field} IS NULL"] if values.null else []
        codes += ["z"] * len(ways)
        if len(codes) == 1:
            ways.append(f"jsonb_exists({field}, {self.place(codes[0], 'text')})")
        else:
            ways.append(f"jsonb_exists_any({field}, {self.place(pgbinary.texts(codes), 'text[]')})")
        return " OR ".join(ways)

    def coded_text_order(self, key: str, op: str, value: str) -> str:
        field, other = self._field(key), "< 't'" if op in UPWARD else ">= 's'"
        return f"{field} {ORDER[op]} {self.place('s' + escaped(value), 'text')} AND {field} {other}"

    def coded_number_order(self, key: str, op: str, value: float) -> str:
        low, high = (self.place(rank_code(rank), "text") for rank in ranks(op, value))
        way = f"{self._field(key)} BETWEEN {low} AND {high}"
        order = number_order(value)
        if order is None or not EXACT <= abs(value) < inf:
            return way
        return self._wide_order(key, op, int(value), rank_code(order), way)

    def _field(self, key: str) -> str:
        return f'(attributes ->> {self.place(label(key), "text")}) COLLATE "C"'

    def _wide_order(self, key: str, op: str, value: int, place: str, way: str) -> str:
        """Compare whole numbers that share the value's float in full."""
        field, wide = self.place(label(key), "text"), self.place(label(key) + WIDE, "text")
        return (
            f"CASE WHEN attributes ->> {field} = {self.place(place, 'text')} AND attributes ->> {wide} IS NOT NULL"
            f" THEN (attributes ->> {wide})::numeric {ORDER[op]} {self.place(str(value), 'numeric')} ELSE {way} END"
        )
