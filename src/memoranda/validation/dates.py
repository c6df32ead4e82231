"""Days where a moment is expected: `2026-03-02` is midnight of that day in UTC."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect

from memoranda.clock import moment_of
from memoranda.validation.nodes import alternatives, described, inside


def expected(exc: msgspec.ValidationError) -> bool:
    """Return True if the error is a text that msgspec cannot read as a moment."""
    return "datetime" in str(exc)


def dated(raw: Any, type_: Any) -> Any:
    """Return a copy of `raw` with moments in place of texts where the type has a moment."""
    node = described(type_)
    return raw if node is None else _dated(raw, [node])


def _dated(raw: Any, nodes: list[Any]) -> Any:
    kinds = [node for node, _ in alternatives(nodes)]
    if isinstance(raw, str):
        return _moment(raw) if any(isinstance(kind, inspect.DateTimeType) for kind in kinds) else raw
    if isinstance(raw, dict):
        return {
            key: _dated(value, [n for kind in kinds for n in inside(kind, key)]) for key, value in raw.items()
        }
    if isinstance(raw, list):
        items = [inner for kind in kinds for inner in inside(kind, "0")]
        return [_dated(value, items) for value in raw]
    return raw


def _moment(text: str) -> Any:
    try:
        return moment_of(text)
    except ValueError:
        return text
