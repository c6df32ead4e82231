"""Columns as PostgreSQL arrays in the binary format, so that many rows are one INSERT.

`INSERT INTO t SELECT * FROM unnest($1, $2, ...)` is one statement and one round trip for one row or a thousand,
respects row security, which COPY does not, and is as fast.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.adapt import Buffer, Dumper
from psycopg.pq import Format

INT8, TEXT, BOOL, BYTEA, JSONB = 20, 25, 16, 17, 3802
"""Types by their oids in `pg_type`; the oids of their arrays are below."""
ARRAYS = {INT8: 1016, TEXT: 1009, BOOL: 1000, BYTEA: 1001, JSONB: 3807}
_NULL = b"\xff\xff\xff\xff"
_EMPTY = struct.Struct(">iii")
_HEAD = struct.Struct(">iiiii")
_length = struct.Struct(">i").pack


class Binary:
    """A value in the binary format of the type `oid`."""

    __slots__ = ("data", "oid")

    def __init__(self, oid: int, data: bytes) -> None:
        self.oid = oid
        self.data = data


class BinaryDumper(Dumper):
    """Passes a `Binary` to the driver unchanged."""

    format = Format.BINARY

    def get_key(self, obj: Binary, format: Any) -> Any:
        return (self.cls, obj.oid)

    def upgrade(self, obj: Binary, format: Any) -> Dumper:
        dumper = type(self)(self.cls)
        dumper.oid = obj.oid
        return dumper

    def dump(self, obj: Binary) -> Buffer:
        return obj.data


def array(element: int, items: Sequence[bytes | bytearray | None], oid: int | None = None) -> Binary:
    """An array of values, each in its type's binary format; `oid` is the array's own type, where it is not one of
    `ARRAYS`."""
    head = _head(element, len(items), None in items)
    parts = [_NULL if item is None else _length(len(item)) + item for item in items]
    return Binary(oid or ARRAYS[element], head + b"".join(parts))


def _head(element: int, count: int, nulls: bool) -> bytes:
    return _HEAD.pack(1, nulls, element, count, 1) if count else _EMPTY.pack(0, 0, element)


def texts(values: Iterable[str | None]) -> Binary:
    """`text[]`."""
    listed = list(values)
    packed: dict[str | None, bytes] = {None: _NULL}
    for value in set(listed):
        if value is not None:
            data = value.encode()
            packed[value] = _length(len(data)) + data
    head = _head(TEXT, len(listed), None in listed)
    return Binary(ARRAYS[TEXT], head + b"".join([packed[value] for value in listed]))


def ints(values: Sequence[int] | NDArray[np.integer[Any]]) -> Binary:
    """`bigint[]`."""
    rows = np.empty(len(values), [("length", ">i4"), ("value", ">i8")])
    rows["length"], rows["value"] = 8, values
    return Binary(ARRAYS[INT8], _head(INT8, len(values), False) + rows.tobytes())


def optional_ints(values: Sequence[int | None]) -> Binary:
    """`bigint[]` with NULL for None."""
    pack = struct.Struct(">q").pack
    return array(INT8, [None if value is None else pack(value) for value in values])


def vector(oid: int, values: NDArray[np.float32], half: bool) -> Binary:
    """One `vector` of pgvector, or one `halfvec`."""
    return Binary(oid, struct.pack(">hh", len(values), 0) + values.astype(">f2" if half else ">f4").tobytes())


def vectors(oid: int, element: int, values: NDArray[np.float32], half: bool) -> Binary:
    """`vector[]` or `halfvec[]` of the rows of `values` (n, dim)."""
    count, dim = values.shape
    kind, size = (">f2", 2) if half else (">f4", 4)
    rows = np.empty(count, [("length", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("values", kind, (dim,))])
    rows["length"], rows["dim"], rows["unused"], rows["values"] = 4 + dim * size, dim, 0, values
    return Binary(oid, _head(element, count, False) + rows.tobytes())
