"""Attributes as index terms and numbers, and filters as tantivy queries with the meaning of `filters.matches`.

Every value of a key becomes a term of the `tag` field: `a`, the key with its length before it (so that no
key can pose as another), one letter for the type, the value. A scalar number that a float holds exactly is
instead a column of the `num` field: an int64 in the order of the floats.

| letter | term |
|---|---|
| `?` | the key is there and not None |
| `[` | the value is a list: order comparisons are false |
| `0` | None is an element of the list |
| `b` `s` | a bool; a string |
| `n` | a number by its float, when it is an element of a list or an int beyond what a float can hold |
| `x` | that int in full, for order comparisons |
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from memoranda.storage.numbers import float_order, in_float_range, is_exact, number_order
from memoranda.text.memo import kept
from memoranda.text.terms import encodable

MAX_STRING = 4_000


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that a filter can see: scalars and lists of scalars.

    Anything else keeps only its presence, as `{}`: nested objects, and ints beyond the range of a float.
    """
    return {key: _plain(value) for key, value in attributes.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [{} if isinstance(item, list | tuple) else _plain(item) for item in value]
    if value is None or isinstance(value, str | float | bool):
        return value
    return value if isinstance(value, int) and in_float_range(value) else {}


@kept(4_096)
def key_prefix(key: str) -> str:
    """Return the prefix of every term of this key, and of no other key."""
    return f"a{len(key)}:{encodable(key)}"


@kept(4_096)
def column(key: str) -> str:
    """Return the key's column of numbers: letters and digits only, so that a range query can name it."""
    return "k" + key.encode("utf-8", "surrogatepass").hex()


def string_form(value: str) -> str:
    """Return the string as a term: itself, or its first 4 000 characters and a hash of all.

    Equality stays exact; two strings that agree in their first 4 000 characters are ordered by hash.
    """
    if len(value) <= MAX_STRING:
        return encodable(value)
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{encodable(value[:MAX_STRING])}\0{digest}"


class Indexed(msgspec.Struct, frozen=True):
    """The index form of one row's attributes: terms for `tag`, numbers for `num`."""

    tags: list[str]
    numbers: dict[str, int]


def indexed(attributes: Mapping[str, Any]) -> Indexed:
    """The index form of attributes that went through `plain`."""
    tags: list[str] = []
    numbers: dict[str, int] = {}
    for key, value in attributes.items():
        if value is None:
            continue
        prefix = key_prefix(key)
        tags.append(prefix + "?")
        if isinstance(value, str):
            tags.append(f"{prefix}s{string_form(value)}")
        elif isinstance(value, list):
            tags.append(prefix + "[")
            tags.extend(_element_tags(prefix, value))
        elif is_exact(value):
            numbers[column(key)] = float_order(value)
        else:
            tags.extend(_scalar_tags(prefix, value))
    return Indexed(tags, numbers)


def _element_tags(prefix: str, values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if value is None:
            yield prefix + "0"
        elif isinstance(value, str):
            yield f"{prefix}s{string_form(value)}"
        elif is_exact(value):
            yield f"{prefix}n{float_order(value)}"
        else:
            yield from (tag for tag in _scalar_tags(prefix, value) if tag[len(prefix)] != "x")


def _scalar_tags(prefix: str, value: Any) -> Iterator[str]:
    if isinstance(value, bool):
        yield f"{prefix}b{value:d}"
    elif isinstance(value, int):
        yield f"{prefix}n{float_order(value)}"
        yield f"{prefix}x{value}"


def equal_tag(key: str, value: str | int | float | bool) -> str | None:
    """Return the term of rows whose `key` equals `value` (numbers: rows outside the column); None if nothing equals
    it."""
    prefix = key_prefix(key)
    if isinstance(value, bool):
        return f"{prefix}b{value:d}"
    if isinstance(value, str):
        return f"{prefix}s{string_form(value)}"
    order = number_order(value)
    return None if order is None else f"{prefix}n{order}"
