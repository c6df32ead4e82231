"""Filters of LangGraph on the value of an item: their meaning, and the part that the product's filters can decide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from memoranda.errors import InvalidInput
from memoranda.filters import Compare, matches

OPERATORS = ("$eq", "$ne", "$gt", "$gte", "$lt", "$lte")


def check(conditions: Mapping[str, Any]) -> None:
    """Refuses an unknown operator.

    Raises:
        InvalidInput: names it, and those there are.
    """
    for key, wanted in conditions.items():
        for operator in wanted if _has_operators(wanted) else ():
            if operator not in OPERATORS:
                raise InvalidInput(
                    f"filter.{key}", f"{operator!r} is unknown; use one of {', '.join(OPERATORS)}"
                )


def passes(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    """Return True if a value passes every condition. A key that the value lacks may be a path (`user.name`); a missing
    value is None. Order comparisons take two numbers or two strings, and are false for anything else."""
    return all(_meets(_at(value, key), wanted) for key, wanted in conditions.items())


def narrowing(conditions: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Filters of the product that every value passes which `passes`, on its top-level keys: they narrow down what is
    read. Keys that begin with `prefix` are not stored as attributes."""
    narrow = []
    for key, wanted in conditions.items():
        if not key or key.startswith(("$", prefix)) or "." in key:
            continue
        for operator, operand in (wanted if _has_operators(wanted) else {"$eq": wanted}).items():
            if operator != "$ne" and _comparable(operand):
                narrow.append({"type": operator[1:], "key": key, "value": operand})
    return narrow


def _at(value: Mapping[str, Any], key: str) -> Any:
    if key in value:
        return value[key]
    part_value: Any = value
    for part in key.split("."):
        part_value = part_value.get(part) if isinstance(part_value, Mapping) else None
    return part_value


def _meets(value: Any, wanted: Any) -> bool:
    if _has_operators(wanted):
        return all(_compare(value, operator, operand) for operator, operand in wanted.items())
    return _equal(value, wanted)


def _has_operators(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and any(str(key).startswith("$") for key in wanted)


def _compare(value: Any, operator: str, operand: Any) -> bool:
    if operator == "$eq":
        return _equal(value, operand)
    if operator == "$ne":
        return not _equal(value, operand)
    return matches(Compare("value", operator[1:], operand), {"value": value})  # type: ignore[arg-type]


def _equal(value: Any, wanted: Any) -> bool:
    """Equal, list by list; of an object the keys that are wanted. True is not 1."""
    if isinstance(wanted, Mapping):
        return isinstance(value, Mapping) and all(
            _meets(value.get(key), part) for key, part in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(wanted)
        return same and all(_equal(*pair) for pair in zip(value, wanted, strict=True))
    return isinstance(value, bool) == isinstance(wanted, bool) and bool(value == wanted)


def _comparable(operand: Any) -> bool:
    """Return True if the product's filters accept it: a string, a number of JSON in 64 bits, true, false or null."""
    if isinstance(operand, bool) or operand is None:
        return True
    if isinstance(operand, int):
        return -(1 << 63) <= operand < 1 << 63
    if isinstance(operand, float):
        return math.isfinite(operand)
    return isinstance(operand, str) and "\x00" not in operand
