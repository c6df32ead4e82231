"""Days where a moment is expected: `2026-03-02` is midnight of that day in UTC, and its end where it bounds something
from above."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import msgspec
from msgspec import inspect

from memoranda.clock import end_of, moment_of
from memoranda.validation.nodes import alternatives, described, inside

UNTIL = frozenset({"until"})
"""Fields that are an end which is not included: a day means the next midnight."""
INSIDE = frozenset({"as_of", "at", "end_date", "created_at[lte]"})
"""Fields that are a last moment: a day means its last microsecond."""


def expected(exc: msgspec.ValidationError) -> bool:
    """Return True if the error is a text, or a day, that msgspec cannot read as a moment."""
    return "datetime" in str(exc)


def dated(raw: Any, type_: Any) -> Any:
    """Return a copy of `raw` with moments in place of texts where the type has a moment."""
    node = described(type_)
    return raw if node is None else _dated(raw, [node], "")


def _dated(raw: Any, nodes: list[Any], name: str) -> Any:
    kinds = [node for node, _ in alternatives(nodes)]
    if isinstance(raw, str) or (isinstance(raw, date) and not isinstance(raw, datetime)):
        return moment_in(raw, name) if any(isinstance(kind, inspect.DateTimeType) for kind in kinds) else raw
    if isinstance(raw, dict):
        return {
            key: _dated(value, [n for kind in kinds for n in inside(kind, key)], str(key))
            for key, value in raw.items()
        }
    if isinstance(raw, list):
        items = [inner for kind in kinds for inner in inside(kind, "0")]
        return [_dated(value, items, name) for value in raw]
    return raw


def moment_in(given: str | date, name: str) -> Any:
    """Return the moment that a text or a day means in the field of this name; what is none, as it is."""
    if name in UNTIL or name in INSIDE:
        end = end_of(given, inside=name in INSIDE)
        if end is not None:
            return end
    try:
        return moment_of(given if isinstance(given, str) else given.isoformat())
    except ValueError:
        return given
