"""Fields of foreign JSON, read without trust: a value of another type counts as missing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memoranda.text.stored import storable


def text(value: Any) -> str:
    """The text without surrounding white space; characters that cannot be stored become U+FFFD. Empty for any other
    type."""
    return storable(value).strip() if isinstance(value, str) else ""


def name(value: Any) -> str | None:
    """A text that may be an id or a name, cut to 256 characters; None for an empty one."""
    return text(value)[:256] or None


def mapping(value: Any) -> dict[str, Any]:
    """The object; an empty one for any other type."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The list; an empty one for any other type."""
    return value if isinstance(value, list) else []


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """The objects of a list."""
    return (each for each in items(value) if isinstance(each, dict))


def metadata(value: Any, depth: int = 8) -> Any:
    """Metadata of another system as it can be stored: texts as by `storable`, names without a `$` at their beginning,
    and nothing below `depth` levels."""
    if isinstance(value, str):
        return storable(value)
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return None
    if isinstance(value, list):
        return [metadata(each, depth - 1) for each in value]
    return {storable(str(key)).lstrip("$") or "_": metadata(each, depth - 1) for key, each in value.items()}


def named(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that are there: metadata without empty ones."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {})}
