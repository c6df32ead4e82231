"""Numbers of attributes by their floats: their order, and comparisons with whole numbers of any size.

`filters.matches` compares numbers exactly and calls them equal if their floats are.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor, inf, isnan
from typing import Any

from memoranda.text.memo import kept

EXACT = 1 << 53
"""Whole numbers up to here are their own floats."""
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "gt": operator.gt,
    "gte": operator.ge,
    "lt": operator.lt,
    "lte": operator.le,
}
UPWARD = ("gt", "gte")


def is_number(value: object) -> bool:
    """An int or float; a bool is not a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def in_float_range(value: int) -> bool:
    """Return True if the int is in the range of floats."""
    return value.bit_length() < 1024


def as_float(value: float) -> float:
    """The nearest float; an int beyond all floats is infinite."""
    try:
        return float(value)
    except OverflowError:
        return inf if value > 0 else -inf


def is_exact(value: Any) -> bool:
    """Return True if the value is a number that equals its float; False for NaN."""
    return is_number(value) and float(value) == value


def float_order(value: float) -> int:
    """Return the float as an int64 of the same order; both zeros are 0. Undefined for NaN."""
    (bits,) = struct.unpack(">q", struct.pack(">d", value + 0.0))
    return int(bits) if bits >= 0 else int(bits) ^ 0x7FFF_FFFF_FFFF_FFFF


def number_order(value: float) -> int | None:
    """Return the number's rank among the floats; None for NaN and for ints beyond their range."""
    if isinstance(value, int):
        return float_order(value) if in_float_range(value) else None
    return None if isnan(value) else float_order(value)


FIRST, LAST = float_order(-inf), float_order(inf)


def scalar_code(value: Any) -> str | None:
    """Return a scalar other than a string as text: `b0`, `b1`, or `n` and a number's rank in 16 hex digits. None if
    nothing equals it, such as NaN."""
    if isinstance(value, bool):
        return f"b{value:d}"
    return _number_code(value) if isinstance(value, int | float) else None


@kept(16_384)
def _number_code(value: float) -> str | None:
    order = number_order(value)
    return None if order is None else rank_code(order)


def rank_code(order: int) -> str:
    """Return the code of a rank."""
    return f"n{order + (1 << 63):016x}"


def is_wide(value: Any) -> bool:
    """Return True if the value is a whole number in the range of floats that no float is."""
    return (
        type(value) is int and not -EXACT <= value <= EXACT and in_float_range(value) and not is_exact(value)
    )


def bound(op: str, value: float) -> tuple[str, float]:
    """Return the comparison with a float that is equivalent to `op value` for every float, even for huge ints."""
    near = as_float(value)
    strict = "gt" if op in UPWARD else "lt"
    return strict + "e" if COMPARE[op](near, value) else strict, near


def ranks(op: str, value: float) -> tuple[int, int]:
    """Return the first and the last rank of floats for which `op value` is true; none if the first is the greater."""
    op, near = bound(op, value)
    order = float_order(near)
    if op in UPWARD:
        return order + (op == "gt"), LAST
    return FIRST, order - (op == "lt")


def whole_bound(op: str, value: float) -> int:
    """Return the whole number with which `op` is equivalent to `op value` for whole numbers up to `EXACT`."""
    near = max(-2 * EXACT, min(value, 2 * EXACT))
    return floor(near) if op in ("gt", "lte") else ceil(near)


def wholes(values: Sequence[float]) -> list[int]:
    """Return the numbers that a whole number up to `EXACT` can equal, by their floats."""
    if set(map(type, values)) == {int} and min(values) >= -EXACT and max(values) <= EXACT:
        return [*values]  # type: ignore[list-item]  # up to 10 000 ids, checked without a call for each
    floats = map(as_float, values)
    return [int(value) for value in floats if value.is_integer() and -EXACT <= value <= EXACT]
