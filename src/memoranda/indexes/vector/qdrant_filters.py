"""Attributes as payload fields of a Qdrant point, and filters as Qdrant conditions with the meaning of `matches`.

Every value of a key becomes a keyword of the field `tags`: the key with its length before it (so that no key can
pose as another), a letter for the kind, the value.

| letter | keyword |
|---|---|
| `?` | the key is there and not None |
| `"` | the value is a string, not a list: strings have no ranges in Qdrant, see `Compiled` |
| `0` | None is an element of the list |
| `b` `s` `n` | a bool; a string; a number by its float |

For the order comparisons a scalar number is two floats: `num.<key>`, the float nearest to it, and `rest.<key>`, what
is left (absent when 0). An infinity, which JSON cannot say, is the largest float and a rest beyond all others. Ints of
more than 105 bits that agree in their first 105 compare as equal; no memory holds one. `$seq` is the field `seq`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from math import isinf, isnan
from sys import float_info
from typing import Any

import msgspec

from memoranda.filters import Attributes
from memoranda.indexes.vector.qdrant_link import models
from memoranda.storage.attributes import plain
from memoranda.storage.dialect import Dialect, Values
from memoranda.storage.numbers import COMPARE, EXACT, in_float_range, is_number, whole_bound, wholes
from memoranda.text.memo import kept

SEQ = "$seq"
LONG = 200
"""Characters of a keyword; a longer one is its hash."""
RUN = 8
"""From this many consecutive numbers on, a range stands for them."""
BEYOND = 1e300
OPPOSITE = {"gt": "lte", "gte": "lt", "lt": "gte", "lte": "gt"}
STRICT = {"gt": "gt", "gte": "gt", "lt": "lt", "lte": "lt"}


def tagged(tag: str) -> models.FieldCondition:
    """Return the condition for points with this keyword."""
    return models.FieldCondition(key="tags", match=models.MatchValue(value=tag))


NEVER = tagged("")
EVER = models.Filter(must_not=[NEVER])


class Compiled(msgspec.Struct, frozen=True):
    """`condition` selects every point that passes the filter. If not `exact` it also selects others, and `matches` must
    decide on their attributes."""

    condition: models.Condition
    exact: bool = True


def fields(attributes: Attributes, seq: int) -> dict[str, Any]:
    """Return the payload of a point's attributes: `tags`, `num`, `rest`, and all of them as JSON."""
    values = plain(attributes) | {SEQ: seq}
    tags: list[str] = []
    numbers: dict[str, float] = {}
    rests: dict[str, float] = {}
    for key, value in values.items():
        if key == SEQ or value is None:
            continue
        tags.append(keyword(key, "?"))
        tags.extend(_value_tags(key, value if isinstance(value, list) else [value]))
        if isinstance(value, str):
            tags.append(keyword(key, '"'))
        split = None if isinstance(value, list) else halves(value)
        if split is not None:
            numbers[column(key)] = split[0]
            if split[1]:
                rests[column(key)] = split[1]
    payload: dict[str, Any] = {"tags": tags, "attributes": json.dumps(values)}
    if numbers:
        payload["num"] = numbers
    if rests:
        payload["rest"] = rests
    return payload


def _value_tags(key: str, values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if value is None:
            yield keyword(key, "0")
        elif (tag := equal_tag(key, value)) is not None:
            yield tag


def equal_tag(key: str, value: Any) -> str | None:
    """Return the keyword of points whose `key` equals `value`; None if nothing equals it."""
    if isinstance(value, bool):
        return keyword(key, "b", str(int(value)))
    if isinstance(value, str):
        return keyword(key, "s", value)
    if isinstance(value, int | float) and (split := halves(value)) is not None:
        return keyword(key, "n", split[0].hex() if abs(split[1]) < BEYOND else repr(float(value)))
    return None


def keyword(key: str, letter: str, value: str = "") -> str:
    """The keyword, or its hash when it is long or UTF-8 cannot hold it."""
    text = f"{len(key)}:{key}{letter}{value}"
    data = text.encode("utf-8", "surrogatepass")
    if len(text) <= LONG and (text.isascii() or data.decode("utf-8", "replace") == text):
        return text
    return "#" + blake2b(data, digest_size=24).hexdigest()


@kept(4_096)
def column(key: str) -> str:
    """Return the key's name among the numbers: letters and digits, so that it can be part of a path."""
    return "k" + blake2b(key.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def halves(value: Any) -> tuple[float, float] | None:
    """A number as the float nearest to it and the rest; None for NaN and for what is no number."""
    if not is_number(value):
        return None
    if isinstance(value, int):
        if not in_float_range(value):
            return None
        near = float(value)
        return near, float(value - int(near))
    if isnan(value):
        return None
    if isinf(value):
        return (float_info.max, BEYOND) if value > 0 else (-float_info.max, -BEYOND)
    return value + 0.0, 0.0


class _Points(Dialect[Compiled]):
    def all_of(self, parts: Sequence[Compiled]) -> Compiled:
        conditions = [part.condition for part in parts if part.condition is not EVER]
        condition = models.Filter(must=conditions) if conditions else EVER
        return Compiled(condition, all(part.exact for part in parts))

    def any_of(self, parts: Sequence[Compiled]) -> Compiled:
        return Compiled(_any([part.condition for part in parts]), all(part.exact for part in parts))

    def equal(self, key: str, values: Values) -> Compiled:
        return Compiled(_equal(key, values))

    def unequal(self, key: str, values: Values) -> Compiled:
        return Compiled(models.Filter(must_not=[_equal(key, values)]))

    def text_order(self, key: str, op: str, value: str) -> Compiled:
        return Compiled(NEVER) if key == SEQ else Compiled(tagged(keyword(key, '"')), exact=False)

    def number_order(self, key: str, op: str, value: float) -> Compiled:
        return Compiled(_ordered(key, op, value))


compiled = _Points().condition


def _any(conditions: Sequence[models.Condition]) -> models.Condition:
    if not conditions:
        return NEVER
    return conditions[0] if len(conditions) == 1 else models.Filter(should=list(conditions))


def _equal(key: str, values: Values) -> models.Condition:
    if key == SEQ:
        return with_seqs(wholes(values.numbers))
    parts: list[models.Condition] = []
    tags = [tag for value in values.present if (tag := equal_tag(key, value)) is not None]
    if len(tags) == 1:
        parts.append(tagged(tags[0]))
    elif tags:
        parts.append(models.FieldCondition(key="tags", match=models.MatchAny(any=tags)))
    if values.null:
        parts += [tagged(keyword(key, "0")), models.Filter(must_not=[tagged(keyword(key, "?"))])]
    return _any(parts)


def with_seqs(seqs: Iterable[int]) -> models.Condition:
    """Points of these memories: ranges for runs of numbers, a list for the others."""
    ordered = sorted(set(seqs))
    breaks = [i for i in range(1, len(ordered)) if ordered[i] != ordered[i - 1] + 1]
    parts: list[models.Condition] = []
    single: list[int] = []
    for start, end in zip([0, *breaks], [*breaks, len(ordered)], strict=True):
        if end - start < RUN:
            single.extend(ordered[start:end])
        else:
            parts.append(_range("seq", gte=ordered[start], lte=ordered[end - 1]))
    if single:
        parts.append(models.FieldCondition(key="seq", match=models.MatchAny(any=single)))
    return _any(parts)


def _range(field: str, **bounds: float) -> models.FieldCondition:
    return models.FieldCondition(key=field, range=models.Range(**bounds))


def _ordered(key: str, op: str, value: float) -> models.Condition:
    if key == SEQ:
        return _range("seq", **{op: whole_bound(op, value)})
    split = halves(value)
    if split is None:
        return NEVER
    near, rest = split
    field = f"num.{column(key)}"
    if abs(near) < EXACT:  # every int near it is its own float
        return _range(field, **{op: near})
    tied = models.Filter(must=[_range(field, gte=near, lte=near), _rest(key, op, rest)])
    return models.Filter(should=[_range(field, **{STRICT[op]: near}), tied])


def _rest(key: str, op: str, rest: float) -> models.Condition:
    field = f"rest.{column(key)}"
    if COMPARE[op](0.0, rest):  # then points without a rest pass too
        return models.Filter(must_not=[_range(field, **{OPPOSITE[op]: rest})])
    return _range(field, **{op: rest})
