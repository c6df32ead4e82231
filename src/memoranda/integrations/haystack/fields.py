"""The fields of the meta of Haystack's documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from haystack.dataclasses import Document

from memoranda.text.stored import compact_json

TYPES = {bool: "boolean", int: "int", float: "float"}


def key_of(name: str) -> str:
    """The key of the meta that a field names, with or without `meta.` before it."""
    return name.removeprefix("meta.")


def values(documents: Iterable[Document], name: str) -> list[Any]:
    """The different values of a field, by their text; `1`, `1.0`, `"1"` and `True` are different."""
    present = [document.meta.get(key_of(name)) for document in documents]
    known = {
        (type(value).__name__, compact_json(value)): value for value in present[::-1] if value is not None
    }
    return [known[key] for key in sorted(known, key=lambda key: (str(known[key]), key))]


def types(documents: Iterable[Document]) -> dict[str, dict[str, str]]:
    """The type of each field, of the last document that has it."""
    types_by_key: dict[str, dict[str, str]] = {}
    for document in documents:
        for key, value in document.meta.items():
            if value is not None:
                types_by_key[key] = {"type": TYPES.get(type(value), "keyword")}
    return types_by_key


def least_and_greatest(documents: Iterable[Document], name: str) -> dict[str, Any]:
    """`min` and `max` of a field that holds numbers, or strings; None for others and for a mixture."""
    comparable = [value for value in values(documents, name) if isinstance(value, int | float | str)]
    if not comparable or len({isinstance(value, str) for value in comparable}) > 1:
        return {"min": None, "max": None}
    return {"min": min(comparable), "max": max(comparable)}
