"""Attributes as columns of a Lance table, and filters as SQL over them with the meaning of `filters.matches`.

A memory's own fields are typed columns. Every other key becomes tokens of the `tags` list and, for what can be
ordered, an entry of the `scalars` text. A token is the key with its length before it, one letter, the value:

| letter | token |
|---|---|
| `?` | the key is there and not None |
| `0` | None is an element of the list |
| `b` `s` | a bool; a string |
| `n` | a number, by its float |

An entry is `\\1 key \\2 s value \\1` or `\\1 key \\2 n digits \\1`; the digits are in the order of the numbers. A
row that cannot be stored so (a control character in a string, a field of another type) is odd: its attributes are
stored as JSON, `matches` decides, and the SQL names the odd rows that pass.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import inf, isinf, isnan, nextafter
from typing import Any

import msgspec
import numpy as np

from memoranda.errors import ConfigError
from memoranda.filters import EVERYTHING, Attributes, Filter, matches
from memoranda.indexes.vector.base import VectorBatch, Vectors
from memoranda.indexes.vector.lance_options import MISSING
from memoranda.storage.dialect import NUMBERS, ORDER, TEXT, ColumnDialect, Values, joined
from memoranda.storage.numbers import EXACT, float_order, in_float_range
from memoranda.text.memo import kept

try:
    import pyarrow as pa  # type: ignore[import-untyped]
except ImportError as exc:
    raise ConfigError("index.url", MISSING) from exc

SEQ = "$seq"
TIMES = {key: column for key, column in NUMBERS.items() if key != SEQ}
_OWN = frozenset([*TEXT, *NUMBERS])
RESIDUE = 0xFFFF
SHORT = 100
"""Characters. The encoding of shorter values is cached: most of them recur."""
_MARKS = frozenset("\0\1\2")
TRUE, FALSE = "seq IS NOT NULL", "seq IS NULL"


def schema(dim: int) -> pa.Schema:
    """The table's columns for vectors of `dim` dimensions."""
    return pa.schema(
        [
            pa.field("tenant", pa.utf8(), nullable=False),
            pa.field("seq", pa.int64(), nullable=False),
            pa.field("part", pa.int32(), nullable=False),
            pa.field("vector", pa.list_(pa.float32(), dim), nullable=False),
            *(pa.field(name, pa.utf8()) for name in TEXT.values()),
            *(pa.field(name, pa.int64()) for name in TIMES.values()),
            pa.field("tags", pa.list_(pa.utf8()), nullable=False),
            pa.field("scalars", pa.utf8(), nullable=False),
            pa.field("odd", pa.utf8()),
        ]
    )


# --- rows ----------------------------------------------------------------------------------------------


class Odd(Exception):
    """The columns cannot store this row."""


def columns(tenant: str, batch: VectorBatch, units: Vectors) -> pa.Table:
    """Return the rows of the batch as table columns; `units` are its vectors at length 1."""
    rows = batch.attributes
    n = len(rows)
    keys = set().union(*rows)
    odd: set[int] = set()
    own = [_texts(rows, key, odd) if key in keys else pa.nulls(n, pa.utf8()) for key in TEXT]
    own += [_times(rows, key, odd) if key in keys else pa.nulls(n, pa.int64()) for key in TIMES]
    tags, ends, scalars = _tokens_of(rows, odd)
    originals = [json.dumps(dict(row)) if i in odd else None for i, row in enumerate(rows)] if odd else None
    dim = units.shape[1]
    return pa.table(
        [
            pa.array([tenant]).take(pa.array(np.zeros(n, np.int32))),
            pa.array(batch.seqs, pa.int64()),
            pa.array(batch.parts, pa.int32()),
            pa.FixedSizeListArray.from_arrays(pa.array(np.ascontiguousarray(units).reshape(-1)), dim),
            *own,
            pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pa.array(tags, pa.utf8())),
            pa.array(scalars, pa.utf8()),
            pa.nulls(n, pa.utf8()) if originals is None else pa.array(originals, pa.utf8()),
        ],
        schema=schema(dim),
    )


def _tokens_of(rows: Sequence[Attributes], odd: set[int]) -> tuple[list[str], list[int], list[str]]:
    """Return the tags of all rows, the end of each row's tags, and each row's scalars; odd rows have none."""
    tags: list[str] = []
    ends = [0]
    scalars: list[str] = []
    for i, row in enumerate(rows):
        start = len(tags)
        entries = ""
        try:
            for key, value in row.items():
                if key not in _OWN and value is not None:
                    of_list = isinstance(value, list | tuple)
                    some, entry = _of_list(key, value) if of_list else _encoded(key, value)
                    tags += some
                    entries += entry
        except Odd:
            odd.add(i)
        if i in odd:
            del tags[start:]
            entries = ""
        ends.append(len(tags))
        scalars.append(entries)
    return tags, ends, scalars


def _texts(rows: Sequence[Attributes], key: str, odd: set[int]) -> pa.Array:
    values: list[Any] = [row.get(key) for row in rows]
    if set(map(type, values)) <= {str, type(None)}:
        try:
            return pa.array(values, pa.utf8())
        except UnicodeEncodeError:  # half of a surrogate pair
            pass
    fits = [value is None or (isinstance(value, str) and _encodable(value)) for value in values]
    return pa.array(_fitting(values, fits, odd), pa.utf8())


def _times(rows: Sequence[Attributes], key: str, odd: set[int]) -> pa.Array:
    values: list[Any] = [row.get(key) for row in rows]
    fits = [value is None or (type(value) is int and -EXACT <= value <= EXACT) for value in values]
    return pa.array(values if all(fits) else _fitting(values, fits, odd), pa.int64())


def _fitting(values: Sequence[Any], fits: Sequence[bool], odd: set[int]) -> list[Any]:
    odd.update(i for i, fit in enumerate(fits) if not fit)
    return [value if fit else None for value, fit in zip(values, fits, strict=True)]


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(text: str) -> bool:
    """Return True if `scalars` can contain the text: none of its marks, and valid UTF-8."""
    return text.isprintable() or (_MARKS.isdisjoint(text) and _encodable(text))


def _encoded(key: str, value: Any) -> tuple[Sequence[str], str]:
    """The tags and the entry of a value that is no list."""
    if isinstance(value, str | int | float) and (not isinstance(value, str) or len(value) <= SHORT):
        return _encoded_often(key, value)
    return _encoded_once(key, value)


def _encoded_once(key: str, value: Any) -> tuple[Sequence[str], str]:
    if not _plain(key):
        raise Odd
    prefix = prefix_of(key)
    token = _token(prefix, value)
    if token is None:
        return (prefix + "?",), ""
    if isinstance(value, bool):
        return (prefix + "?", token), ""
    entry = f"s{value}" if isinstance(value, str) else f"n{_digits(value)}"
    return (prefix + "?", token), f"\1{key}\2{entry}\1"


_encoded_often = kept(8_192, typed=True)(_encoded_once)


def _of_list(key: str, values: Sequence[Any]) -> tuple[Sequence[str], str]:
    if not _plain(key):
        raise Odd
    prefix = prefix_of(key)
    tokens = (prefix + "0" if value is None else _token(prefix, value) for value in values)
    return [prefix + "?", *(token for token in tokens if token is not None)], ""


def prefix_of(key: str) -> str:
    """Return the prefix of every token of this key, and of no other key."""
    return f"{len(key)}:{key}"


def _token(prefix: str, value: Any) -> str | None:
    """Return the token of a scalar; None if nothing equals it."""
    if isinstance(value, bool):
        return f"{prefix}b{value:d}"
    if isinstance(value, str):
        if not _plain(value):
            raise Odd
        return f"{prefix}s{value}"
    if (isinstance(value, int) and in_float_range(value)) or (isinstance(value, float) and not isnan(value)):
        return f"{prefix}n{float_order(value)}"
    return None


def _digits(value: int | float) -> str:
    """Return the number as hex digits of its order: the float at or below it, and the distance above that."""
    low, residue = _split(value)
    if residue > RESIDUE:
        raise Odd
    return f"{float_order(low) + 2**63:016x}{residue:04x}"


def _split(value: int | float) -> tuple[float, int]:
    if isinstance(value, float):
        return value, 0
    low = float(value)
    if isinf(low) or low > value:
        low = nextafter(low, -inf)
    return low, value - int(low)


def _bound(value: int | float) -> str:
    """Return the digits of a number in a filter. A number beyond those of rows stays in order between them."""
    if isinstance(value, int) and not in_float_range(value):
        edge = nextafter(inf, 0) if value > 0 else -inf
        return f"{float_order(edge) + 2**63:016x}{RESIDUE:04x}"
    low, residue = _split(value)
    return f"{float_order(low) + 2**63:016x}{min(residue, RESIDUE):04x}"


# --- filters -------------------------------------------------------------------------------------------


class OddRow(msgspec.Struct, frozen=True):
    """A row that the columns cannot store."""

    seq: int
    part: int
    attributes: Mapping[str, Any]


def odd_rows(table: pa.Table) -> list[OddRow]:
    """The rows of `seq`, `part` and `odd` columns."""
    rows = zip(*(table[name].to_pylist() for name in ("seq", "part", "odd")), strict=True)
    return [OddRow(seq, part, json.loads(text)) for seq, part, text in rows]


def condition(tenant: str | None, where: Filter, odd: Sequence[OddRow] = ()) -> str:
    """Return the SQL for rows of the tenant (None: every row) that pass `where`; `odd` are all odd rows of the
    tenant."""
    own = [f"tenant = {quoted(tenant)}"] if tenant is not None else []
    if where == EVERYTHING:
        return _both(own)
    sql = _TABLE.condition(where)
    if odd:
        sql = _either([_both(["odd IS NULL", sql]), _both(["odd IS NOT NULL", _named(where, odd)])])
    return _both([*own, sql])


def _named(where: Filter, odd: Sequence[OddRow]) -> str:
    parts: dict[int, list[int]] = {}
    for row in odd:
        if matches(where, {**row.attributes, SEQ: row.seq}):
            parts.setdefault(row.part, []).append(row.seq)
    return _either([_both([f"part = {part}", f"seq IN ({listed(seqs)})"]) for part, seqs in parts.items()])


def memories(tenant: str, seqs: Iterable[int]) -> str:
    """Return the SQL for the rows of these memories."""
    return f"tenant = {quoted(tenant)} AND seq IN ({listed(seqs)})"


def listed(seqs: Iterable[int]) -> str:
    """The numbers with commas between them."""
    return ", ".join(map(str, seqs))


def quoted(text: str) -> str:
    """The text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def _both(parts: Sequence[str]) -> str:
    return joined(parts, "AND", TRUE)


def _either(parts: Sequence[str]) -> str:
    return joined(parts, "OR", FALSE)


class _Table(ColumnDialect[str]):
    """Every condition is true or false, never NULL."""

    def all_of(self, parts: Sequence[str]) -> str:
        return _both(parts)

    def any_of(self, parts: Sequence[str]) -> str:
        return _either(parts)

    def unequal(self, key: str, values: Values) -> str:
        return f"NOT ({self.equal(key, values)})"

    def fits(self, text: str) -> bool:
        return _encodable(text)

    def column_equal(self, column: str, values: Sequence[str] | Sequence[int], null: bool) -> str:
        among = ", ".join(_literal(value) for value in dict.fromkeys(values))
        parts = [f"{column} IS NOT NULL AND {column} IN ({among})"] if values else []
        return _either([*parts, f"{column} IS NULL"] if null else parts)

    def column_order(self, column: str, op: str, value: str | int) -> str:
        if isinstance(value, str) and not _encodable(value):
            return FALSE
        return f"{column} IS NOT NULL AND {column} {ORDER[op]} {_literal(value)}"

    def coded_equal(self, key: str, values: Values) -> str:
        if not _plain(key):
            return TRUE if values.null else FALSE
        prefix = prefix_of(key)
        tokens = dict.fromkeys(_tokens(prefix, values.present))
        parts = [_has(tokens)] if tokens else []
        if values.null:
            parts += [_has([prefix + "0"]), f"NOT {_has([prefix + '?'])}"]
        return _either(parts)

    def coded_text_order(self, key: str, op: str, value: str) -> str:
        return _entry(key, "s", op, value) if _encodable(value) else FALSE

    def coded_number_order(self, key: str, op: str, value: float) -> str:
        return _entry(key, "n", op, _bound(value))


_TABLE = _Table()


def _literal(value: Any) -> str:
    return quoted(value) if isinstance(value, str) else str(value)


def _tokens(prefix: str, values: Iterable[str | float]) -> Iterable[str]:
    for value in values:
        try:
            token = _token(prefix, value)
        except Odd:
            continue
        if token is not None:
            yield token


def _has(tokens: Iterable[str]) -> str:
    listed = [quoted(token) for token in tokens]
    if len(listed) == 1:
        return f"array_has(tags, {listed[0]})"
    return f"array_has_any(tags, [{', '.join(listed)}])"


def _entry(key: str, letter: str, op: str, bound: str) -> str:
    if not _plain(key):
        return FALSE
    mark = quoted(f"\1{key}\2{letter}")
    value = f"split_part(split_part(scalars, {mark}, 2), '\1', 1)"
    return f"contains(scalars, {mark}) AND {value} {ORDER[op]} {quoted(bound)}"
