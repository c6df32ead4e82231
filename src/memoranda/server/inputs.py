"""Bodies and query strings as values, with errors that name the field and what is wrong with it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from starlette.datastructures import Headers, QueryParams

from memoranda.errors import InvalidInput
from memoranda.validation import converted, decode
from memoranda.validation.constraints import check

T = TypeVar("T", bound=msgspec.Struct)
DIAGNOSED = 8 << 20
"""Bodies up to this size are parsed a second time, leniently, for a precise error."""
_SURROGATE = re.compile("[\ud800-\udfff]")
_GZIP = re.compile(r"(?:^|,)\s*gzip\s*(?:;\s*q=(?!0(?:\.0*)?\s*(?:,|$))[^,]*)?(?:,|$)", re.IGNORECASE)


def accepts_gzip(headers: Headers) -> bool:
    """Return True if a request takes an answer that is compressed with gzip (RFC 9110, section 12.5.3)."""
    return _GZIP.search(headers.get("accept-encoding", "")) is not None


@lru_cache
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(type_)


def from_json(body: bytes, type_: type[T]) -> T:
    """The body as a `type_`; no body at all is an empty object.

    Raises:
        InvalidInput: names the field and the fix.
    """
    decoder: msgspec.json.Decoder[T] = _decoder(type_)
    try:
        value = decode(body or b"{}", decoder)
    except InvalidInput as exc:
        if exc.field == "body" and len(body) <= DIAGNOSED:
            _diagnose(body)
        raise
    check(value)
    return value


def ignored_fields(body: bytes, value: msgspec.Struct) -> set[str]:
    """The names in a JSON body, at any depth, that `value`, which was read from it, does not have."""
    return set(_ignored(decode(body or b"{}", _decoder(Any)), value))


def _ignored(sent: dict[str, Any], read: msgspec.Struct) -> Iterator[str]:
    names = dict(zip(read.__struct_encode_fields__, read.__struct_fields__, strict=True))
    yield from sent.keys() - names.keys()
    for name in sent.keys() & names.keys():
        value = getattr(read, names[name])
        pairs = zip(sent[name], value, strict=True) if isinstance(value, list) else [(sent[name], value)]
        for inner, struct in pairs:
            if isinstance(struct, msgspec.Struct):
                yield from _ignored(inner, struct)


def ignored_parameters(given: QueryParams, type_: type[T] | None) -> set[str]:
    """The names of a query string that its type does not have; None has none."""
    known: frozenset[str] = frozenset() if type_ is None else _names(type_)
    return {name for name in given if name.removesuffix("[]") not in known}


def _diagnose(body: bytes) -> None:
    """Raise a precise error for valid JSON with invalid values: NaN, or a lone surrogate."""
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return
    todo: list[tuple[str, Any]] = [("", document)]
    while todo:
        path, value = todo.pop()
        if isinstance(value, dict):
            todo += [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
        elif isinstance(value, list):
            todo += [(f"{path}[{i}]", item) for i, item in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            raise InvalidInput(_shown(path), "is NaN or infinite; send finite numbers")
        elif isinstance(value, str) and (half := _SURROGATE.search(value)):
            raise InvalidInput(
                _shown(path), f"holds a lone surrogate at character {half.start()}; send valid unicode"
            )


def _shown(path: str) -> str:
    return path.encode("utf-8", "replace").decode("utf-8") or "body"


def from_query(given: QueryParams, type_: type[T]) -> T:
    """The query string as a `type_`: a list is a parameter that is repeated (`tags` or `tags[]`), `filters` is JSON.
    Unknown parameters are refused or ignored, as the type declares.

    Raises:
        InvalidInput: names the parameter and the fix.
    """
    lists, known = _lists(type_), _known(type_)
    raw: dict[str, Any] = {}
    for written in given:
        name = written.removesuffix("[]") if written.removesuffix("[]") in lists else written
        if known is not None and name not in known:
            continue
        values = given.getlist(written)
        if name in lists:
            raw[name] = [*raw.get(name, ()), *values]
        elif len(values) > 1:
            raise InvalidInput(name, "is there twice; it takes one value")
        elif "\x00" in values[0]:
            raise InvalidInput(name, "holds a NUL character; remove it")
        elif name == "filters":
            raw[name] = _filters(values[0])
        else:
            raw[name] = values[0]
    value = converted(raw, type_, strict=False)
    check(value)
    return value


@lru_cache
def _lists(type_: Any) -> frozenset[str]:
    """The fields that hold lists."""
    fields = msgspec.structs.fields(type_)
    return frozenset(field.name for field in fields if "list[" in str(field.type))


@lru_cache
def _known(type_: Any) -> frozenset[str] | None:
    """The known names if others are ignored; None if others are refused."""
    return None if type_.__struct_config__.forbid_unknown_fields else _names(type_)


def _names(type_: Any) -> frozenset[str]:
    return frozenset(field.encode_name for field in msgspec.structs.fields(type_))


def _filters(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidInput("filters", f"is not valid JSON: {exc}") from exc
