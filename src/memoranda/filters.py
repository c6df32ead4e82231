"""Filters: one small expression tree over a row's attributes.

Every index compiles the same tree. `matches` defines its meaning in plain Python; the backends are tested against it.

Attribute names that begin with `$` are the record's own (`$kind`, `$session_id`, `$occurred_at`,
`$seq`, `$tags`, ...); all others are top-level metadata keys.

The meaning, for every backend:
- `eq`/`in` compare by type and value: `1 == 1.0`, but `1 != "1"` and `True != 1`. Numbers are 64-bit floats: two beyond
  2^53 may be equal that differ; store longer ids as strings.
- A missing key equals only `None`, so `eq None` finds rows without the key, and `ne`/`nin` are the
  exact negations of `eq`/`in`: a missing key is "not equal" to any value.
- `gt gte lt lte` compare numbers with numbers and strings with strings (by code point); any other
  pair, or a missing key, is false.
- On a list (tags, or a list in metadata) `eq` and `in` ask whether any element matches; the four
  order comparisons are false.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from memoranda.errors import InvalidInput
from memoranda.types import FILTER_KEYS, MAX_VALUES

Scalar: TypeAlias = str | int | float | bool | None
Attributes: TypeAlias = Mapping[str, Any]
Op = Literal["eq", "ne", "gt", "gte", "lt", "lte", "in", "nin"]

OWN_KEYS = frozenset(FILTER_KEYS)
"""Fields of a memory that filters of callers may name; `$occurred_at` is compared in microseconds since 1970."""
STAMPS = ("$origin", "$by", "$read")
"""Keys of stored metadata with texts, or lists of them, that no caller can write: the class of a row where its role
does not say it, who wrote it, what was read before."""
OPS: tuple[str, ...] = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin")
MAX_DEPTH = 16
MAX_NODES = 1_000


class Compare(msgspec.Struct, frozen=True):
    """`key op value`; for `in` and `nin`, `value` is a tuple of scalars."""

    key: str
    op: Op
    value: Scalar | tuple[Scalar, ...]


class AllOf(msgspec.Struct, frozen=True):
    """True if every part is; with no parts, always."""

    parts: tuple[Filter, ...]


class AnyOf(msgspec.Struct, frozen=True):
    """True if some part is; with no parts, never."""

    parts: tuple[Filter, ...]


Filter: TypeAlias = Compare | AllOf | AnyOf
EVERYTHING = AllOf(())
NOTHING = AnyOf(())


def all_of(*parts: Filter | None) -> Filter:
    """Return the conjunction, flattened; `None` parts are left out."""
    flat: list[Filter] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, AllOf):
            flat.extend(part.parts)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(*parts: Filter) -> Filter:
    """Return the disjunction; a single part is returned as it is."""
    return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))


def parse(raw: Any, path: str = "filters", *, own: Collection[str] = ()) -> Filter:
    """Return a filter from its JSON form.

    Two forms are read: OpenAI's (`{"type": "eq", "key": "lang", "value": "en"}`, with `and`/`or` over
    `filters`), and a plain mapping (`{"lang": "en", "year": [2024, 2025]}`), in which every key must
    equal its value, or one of its values when a list is given. `own` are the keys with a `$` that are allowed.

    Raises:
        InvalidInput: names the offending node by its path.
    """
    budget = [MAX_NODES]
    return _parse(raw, path, 0, budget, own)


def _parse(raw: Any, path: str, depth: int, budget: list[int], own: Collection[str]) -> Filter:
    budget[0] -= 1
    if depth > MAX_DEPTH or budget[0] < 0:
        raise _too_many(path)
    if not isinstance(raw, Mapping):
        raise InvalidInput(path, 'expected an object such as {"type": "eq", "key": "lang", "value": "en"}')
    kind = raw.get("type")
    if kind in ("and", "or") and isinstance(raw.get("filters"), Sequence):
        parts = tuple(
            _parse(part, f"{path}.filters[{i}]", depth + 1, budget, own)
            for i, part in enumerate(raw["filters"])
        )
        return AllOf(parts) if kind == "and" else AnyOf(parts)
    if "key" in raw and "value" in raw and "type" in raw:
        return _parse_compare(raw, path, own)
    if (isinstance(kind, str) and kind in OPS and len(raw) > 1) or raw.keys() == {"key", "value"}:
        missing = next(name for name in ("type", "key", "value") if name not in raw)
        raise InvalidInput(
            f"{path}.{missing}",
            "is missing; a comparison has `type`, `key` and `value`. To compare metadata that is itself called "
            'so, write {"type": "eq", "key": "value", "value": 1}',
        )
    if kind in ("and", "or"):
        raise InvalidInput(f"{path}.filters", f"an `{kind}` filter needs a list of filters")
    budget[0] -= len(raw) - 1
    if budget[0] < 0:
        raise _too_many(path)
    return AllOf(tuple(_shorthand(key, value, f"{path}.{key}", own) for key, value in raw.items()))


def _too_many(path: str) -> InvalidInput:
    return InvalidInput(path, f"filters may nest {MAX_DEPTH} deep and hold {MAX_NODES} conditions")


def _parse_compare(raw: Mapping[str, Any], path: str, own: Collection[str]) -> Compare:
    op, key, value = raw["type"], raw["key"], raw["value"]
    if op not in OPS:
        raise InvalidInput(f"{path}.type", f"{op!r} is unknown; use one of {', '.join(OPS)}, and, or")
    _check_key(key, f"{path}.key", own)
    if op in ("in", "nin"):
        return Compare(key, op, _scalars(value, f"{path}.value"))
    return Compare(key, op, _scalar(value, f"{path}.value"))


def _shorthand(key: Any, value: Any, path: str, own: Collection[str]) -> Compare:
    _check_key(key, path, own)
    if isinstance(value, list | tuple):
        return Compare(key, "in", _scalars(value, path))
    return Compare(key, "eq", _scalar(value, path))


def _check_key(key: Any, path: str, own: Collection[str]) -> None:
    if not isinstance(key, str) or not key:
        raise InvalidInput(path, "a filter key is a metadata key: a string that is not empty")
    if key.startswith("$") and key not in own:
        allowed = f", or {', '.join(sorted(own))}" if own else ""
        raise InvalidInput(
            path, f"keys that begin with $ are reserved; use the request's own fields instead{allowed}"
        )


def _scalars(value: Any, path: str) -> tuple[Scalar, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidInput(path, "`in` and `nin` take a list of values")
    if len(value) > MAX_VALUES:
        raise InvalidInput(path, f"at most {MAX_VALUES} values")
    return tuple(_scalar(item, f"{path}[{i}]") for i, item in enumerate(value))


def _scalar(value: Any, path: str) -> Scalar:
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        raise InvalidInput(path, "is a whole number beyond 64 bits, which no memory holds")
    if isinstance(value, str):
        check_unicode(value, path)
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise InvalidInput(path, "a filter value is a string, a number, true, false or null")


def check_unicode(text: str, path: str) -> None:
    """Check that a memory can store a string: it has no lone half of a surrogate pair.

    Raises:
        InvalidInput: names the character.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidInput(path, f"holds a lone surrogate at character {exc.start}") from exc


def fold(where: Filter, present: Callable[[str], bool]) -> Filter:
    """Return the filter for rows that have only keys for which `present` is True. Conditions on other keys are decided
    once, here, instead of on each row. The result may be `EVERYTHING` or `NOTHING`."""
    if isinstance(where, Compare):
        if present(where.key):
            return where
        return EVERYTHING if matches(where, {}) else NOTHING
    every = isinstance(where, AllOf)
    neutral, final = (EVERYTHING, NOTHING) if every else (NOTHING, EVERYTHING)
    parts = [part for part in (fold(part, present) for part in where.parts) if part != neutral]
    if final in parts:
        return final
    return all_of(*parts) if every else any_of(*parts)


def matches(where: Filter, attributes: Attributes) -> bool:
    """Return True if a row with these attributes passes. Every backend must give the same result."""
    if isinstance(where, AllOf):
        return all(matches(part, attributes) for part in where.parts)
    if isinstance(where, AnyOf):
        return any(matches(part, attributes) for part in where.parts)
    stored = attributes.get(where.key)
    match where.op:
        case "eq":
            return _equal(stored, where.value)
        case "ne":
            return not _equal(stored, where.value)
        case "in":
            return _among(stored, _tuple(where.value))
        case "nin":
            return not _among(stored, _tuple(where.value))
        case _:
            return _ordered(stored, where.op, where.value)


def _tuple(value: Scalar | tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    return value if isinstance(value, tuple) else (value,)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return float(a) == float(b)
    return type(a) is type(b) and bool(a == b)


def _equal(stored: Any, value: Any) -> bool:
    if isinstance(stored, list | tuple):
        return any(_same(item, value) for item in stored)
    return _same(stored, value)


def _among(stored: Any, values: tuple[Scalar, ...]) -> bool:
    """Return True if one of the values is equal. Texts and null, which equal nothing but texts and null, are compared
    without a call for each value: filters have up to 10 000."""
    items = stored if isinstance(stored, list | tuple) else (stored,)
    return any(
        item in values if item is None or type(item) is str else any(_same(item, value) for value in values)
        for item in items
    )


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ordered(stored: Any, op: str, value: Any) -> bool:
    if not ((_number(stored) and _number(value)) or (isinstance(stored, str) and isinstance(value, str))):
        return False
    match op:
        case "gt":
            return bool(stored > value)
        case "gte":
            return bool(stored >= value)
        case "lt":
            return bool(stored < value)
        case _:
            return bool(stored <= value)
