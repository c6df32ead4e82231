"""Plain data into the house's values, with errors that name the field as the caller wrote it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from memoranda.errors import InvalidInput

T = TypeVar("T")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_LONG = re.compile(r"Expected `(?:array|object)` of length <= (?P<most>\d+)")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")


def convert(raw: Any, type_: type[T], where: str = "") -> T:
    """`raw` (mappings, lists, strings, numbers, datetimes) as a `type_`.

    Raises:
        InvalidInput: names the field by its path, and the nearest known field when it is a slip.
    """
    if isinstance(raw, type_):
        return raw
    try:
        return msgspec.convert(raw, type_)
    except msgspec.ValidationError as exc:
        raise invalid(exc, type_, where) from exc


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """The JSON body as the decoder's type.

    Raises:
        InvalidInput: the body is not JSON, or a field is wrong.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as exc:
        raise invalid(exc, decoder.type, "") from exc
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInput("body", f"is not valid JSON: {exc}") from exc


def invalid(exc: msgspec.ValidationError, type_: Any, where: str) -> InvalidInput:
    """What msgspec found, as our error."""
    match = _AT.match(str(exc))
    what, path = (match["what"], match["path"] or "") if match else (str(exc), "")
    unknown, missing = _UNKNOWN.search(what), _MISSING.search(what)
    if unknown:
        name = unknown["name"]
        near = difflib.get_close_matches(name, _fields(type_), 1)
        fix = f"; did you mean `{near[0]}`?" if near else ""
        return InvalidInput(_join(where, path, name), f"is not a field that is known here{fix}")
    if missing:
        return InvalidInput(_join(where, path, missing["name"]), "is required")
    if long := _LONG.search(what):
        return InvalidInput(
            _join(where, path) or "body", f"has too many elements; send at most {long['most']}"
        )
    return InvalidInput(_join(where, path) or "body", what[:1].lower() + what[1:])


def _join(*pieces: str) -> str:
    return ".".join(piece for piece in pieces if piece).replace(".[", "[")


def _fields(type_: Any) -> list[str]:
    try:
        return [field.encode_name for field in msgspec.structs.fields(type_)]
    except TypeError:
        return []


def merged(first: str, value: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """A verb's positional argument and its keywords as one mapping."""
    return {first: value, **fields}
