"""Converts plain data to values of the library, with errors that name the field as the caller wrote it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from memoranda.errors import InvalidInput
from memoranda.validation import constraints, dates
from memoranda.validation.messages import invalid

__all__ = ["checked", "convert", "converted", "decode", "merged"]
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")
DIAGNOSED = 8 << 20
"""Bodies up to this size are parsed a second time for a better error."""


def convert(raw: Any, type_: type[T], where: str = "", *, beside: Sequence[str] = ()) -> T:
    """`raw` (mappings, lists, strings, numbers, datetimes) as a `type_`; an instance is returned unchanged. A date
    where a moment is expected is midnight of that day in UTC, or its end, see `dates`. `beside` are fields of the
    caller that are not in `raw`.

    Raises:
        InvalidInput: names the field by its path, below `where`, and the nearest known field when it is a slip.
    """
    return raw if isinstance(raw, type_) else converted(raw, type_, where, beside=beside)


def converted(
    raw: Any, type_: type[T], where: str = "", *, strict: bool = True, beside: Sequence[str] = ()
) -> T:
    """Return `raw` as a `type_`; if not `strict`, text may represent numbers and so on. Errors as `convert`."""
    try:
        return msgspec.convert(raw, type_, strict=strict)
    except msgspec.ValidationError as exc:
        if dates.expected(exc) and (moments := dates.dated(raw, type_)) != raw:
            return converted(moments, type_, where, strict=strict, beside=beside)
        raise invalid(exc, type_, where, raw, beside) from exc


def checked(value: S) -> S:
    """Return a value built in code, validated as if it had been read. Errors as `convert`, for its constraints as
    well."""
    read = converted(_taken_apart(value), type(value))
    constraints.check(read)
    return read


def _taken_apart(value: Any) -> Any:
    """Return the value with an object in place of each struct."""
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        fields = {sent: getattr(value, name) for name, sent in names}
        return {name: _taken_apart(each) for name, each in fields.items() if each is not msgspec.UNSET}
    return [_taken_apart(each) for each in value] if isinstance(value, list) else value


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Return the JSON body as the decoder's type.

    Raises:
        InvalidInput: the body is not JSON, or a field is wrong.
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as exc:
        if len(body) > DIAGNOSED and not dates.expected(exc):
            raise invalid(exc, decoder.type, "") from exc
        return converted(_plain(body), decoder.type)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInput("body", f"is not valid JSON: {exc}") from exc


def _plain(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise InvalidInput("body", f"is not valid JSON: {exc}") from exc


def merged(first: str, value: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the positional argument of a method and its keywords as one mapping."""
    return {first: value, **fields}
