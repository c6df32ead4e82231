"""Dotted keys: flattening of nested documents, and validation of each value by its type, with a sentence for each
mistake."""

from __future__ import annotations

import difflib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from memoranda.errors import ConfigError

_INDEX = re.compile(r"\[\d+\]")


def leaves(
    node: Mapping[Any, Any], known: Iterable[str], hints: Mapping[str, str], problems: list[ConfigError]
) -> Iterator[tuple[str, Any]]:
    """Yield the values of a nested mapping by dotted key, as far as the keys are `known`.

    A key that is not known, or a value where a section belongs, is added to `problems`; `hints` has a better
    sentence for some of them. A section given as null is an empty one.
    """
    known = frozenset(known)
    sections = _sections(known)

    def walk(part: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for name, value in part.items():
            key = f"{prefix}{name}"
            if key in known:
                yield key, value
            elif key not in sections:
                problems.append(ConfigError(key, hints.get(key) or unknown_key(key, known)))
            elif isinstance(value, Mapping):
                yield from walk(value, f"{key}.")
            elif value is not None:
                inside = ", ".join(f"`{each}`" for each in children(key, known))
                problems.append(ConfigError(key, f"is a section and takes {inside}, not {shown(key, value)}"))

    yield from walk(node, "")


@cache
def _sections(known: frozenset[str]) -> frozenset[str]:
    """Return the keys of all sections of these keys."""
    return frozenset(key[:at] for key in known for at in range(len(key)) if key[at] == ".")


def children(section: str, known: Iterable[str]) -> list[str]:
    """Return the full names one level below `section` ("" for the top), in order."""
    prefix = f"{section}." if section else ""
    below = (key[len(prefix) :].split(".")[0] for key in known if key.startswith(prefix))
    return [f"{prefix}{name}" for name in sorted(set(below))]


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the sentence for an unknown key, with the key that was probably meant."""
    known = list(known)
    here = children(key.rpartition(".")[0], known)
    if meant := _closest(key.rpartition(".")[2], {name.rpartition(".")[2]: name for name in here}):
        return f"unknown key `{key}`; did you mean `{meant}`?"
    if meant := closest(key, known):
        return f"unknown key `{key}`; did you mean `{meant}`?"
    return f"unknown key `{key}`; known here: {', '.join(f'`{name}`' for name in here)}"


def closest(key: str, known: Iterable[str]) -> str | None:
    """Return the full key that was probably meant: one of that last name, else one that reads nearly the same."""
    known = sorted(known, key=len)
    last = key.rpartition(".")[2]
    same = next((other for other in known if other.rpartition(".")[2] == last), None)
    return same or _closest(key, {other: other for other in known})


def _closest(word: str, names: Mapping[str, str]) -> str | None:
    plain = {_plain(name): full for name, full in names.items()}
    matches = difflib.get_close_matches(_plain(word), plain, n=1, cutoff=0.6)
    return plain[matches[0]] if matches else None


def _plain(word: str) -> str:
    return re.sub(r"[._-]", "", word).casefold()


def checked(key: str, value: Any, kind: Any, lax: bool = False) -> Any:
    """Return `value` as the type `kind` (an annotation msgspec understands).

    `lax` reads numbers, booleans and null from text, as given in environment variables and `${NAME}`.

    Raises:
        ConfigError: it is of another type or out of range; the message says what is expected.
    """
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if lax and value == "null" and _nullable(kind):
        value = None
    try:
        result = msgspec.convert(value, kind, strict=not lax)
    except msgspec.ValidationError as wrong:
        raise ConfigError(key, f"must be {described(kind)}, not {shown(key, value)}") from wrong
    if isinstance(result, float) and not math.isfinite(result):
        raise ConfigError(key, f"must be {described(kind)}, not {shown(key, value)}")
    return result


def described(kind: Any) -> str:
    """Return a type in words: "a number between 0 and 1, or null"."""
    return _words(inspect.type_info(kind))


def takes_list(kind: Any) -> bool:
    """Return True if a list is a value of the type `kind`."""
    info = inspect.type_info(kind)
    kinds = info.types if isinstance(info, inspect.UnionType) else (info,)
    bare = (each.type if isinstance(each, inspect.Metadata) else each for each in kinds)
    return any(isinstance(each, inspect.ListType) for each in bare)


def _nullable(kind: Any) -> bool:
    info = inspect.type_info(kind)
    return isinstance(info, inspect.UnionType) and info.includes_none


def _words(info: inspect.Type) -> str:
    match info:
        case inspect.Metadata(type=inner, extra_json_schema=schema):
            return str(schema["description"]) if schema and "description" in schema else _words(inner)
        case inspect.UnionType(types=kinds):
            words = [_words(kind) for kind in kinds if not isinstance(kind, inspect.NoneType)]
            return " or ".join(words) + (", or null" if info.includes_none else "")
        case inspect.LiteralType(values=values):
            return f"one of {', '.join(map(str, values))}"
        case inspect.IntType() | inspect.FloatType():
            return ("a whole number" if isinstance(info, inspect.IntType) else "a number") + _bounds(info)
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType(item_type=item):
            return f"a list of: {_words(item)}"
        case _:
            return "text"


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return f" between {info.ge} and {info.le}"
    if info.ge is not None:
        return f" of {info.ge} or more"
    return f" above {info.gt}" if info.gt is not None else ""


def shown(key: str, value: Any) -> str:
    """Return a value for an error or a listing: short, and without secrets."""
    text = repr(masked(key, value))
    return text if len(text) <= 60 else f"{text[:57]}..."


def masked(key: str, value: Any) -> Any:
    """Return the value with secrets replaced by `***`: those of keys with such names, and passwords inside URLs."""
    name = _INDEX.sub("", key).rpartition(".")[2].casefold()
    if value and (name in {"key", "keys"} or name.endswith(("api_key", "password", "secret", "token"))):
        return "***"
    if isinstance(value, str):
        value = re.sub(r"(://[^/@\s]*?:)[^/\s]*@", r"\1***@", value)
        return re.sub(r"(?i)((?:password|api_key|secret|token)=)[^&;\s]+", r"\1***", value)
    return value
