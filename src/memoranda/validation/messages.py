"""Converts errors of msgspec to ours: the field, what is allowed, the fix."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET, inspect

from memoranda.errors import InvalidInput
from memoranda.types import PLACES
from memoranda.validation.nodes import keys_at, nodes_at, value_at

LONGEST = 60
"""The most characters of a value in an error."""
_AT = re.compile(r"^(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$?\.?(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")
_LENGTH = re.compile(r"Expected `(?P<kind>array|object|str)` of length (?P<sign>>=|<=) (?P<bound>\d+)")
_PATTERN = re.compile(r"Expected `str` matching regex .*", re.DOTALL)
_ENUM = re.compile(r"[Ii]nvalid (?:enum )?value (?P<value>.+)", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`, got `(?P<got>[^`]+)`")
_BOUND = re.compile(r"Expected `(?:int|float)` (?P<sign>>=|<=|>|<) (?P<bound>[\d.-]+)")
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_KINDS = {
    "array": "a list", "object": "an object", "str": "text", "int": "a whole number", "float": "a number",
    "bool": "true or false", "null": "null", "datetime": "a date and time", "date": "a date", "bytes": "bytes",
}  # fmt: skip
_EXAMPLES = {
    "a list": '; write ["a", "b"]',
    "a date and time": ", such as 2024-05-01T12:00:00Z",
    "a date": ", such as 2024-05-01",
}
LISTED = 16
"""The most names of fields in a message."""
MOMENT = "must be a date, or a date and time, such as 2024-05-01 or 2024-05-01T12:00:00Z"
DAY = "must be a date such as 2024-05-01"


def invalid(
    exc: msgspec.ValidationError, type_: Any, where: str, raw: Any = UNSET, beside: Sequence[str] = ()
) -> InvalidInput:
    """Return the error of msgspec on `raw` as our error; the field is below `where`. `beside` are more known fields."""
    match = _AT.match(str(exc))
    what, path = (match["what"], match["path"] or "") if match else (str(exc), "")
    if unknown := _UNKNOWN.search(what):
        name = unknown["name"]
        fields = [*beside, *_fields(type_, path)] if not path else _fields(type_, path)
        fix = _as_scope(name, value_at(raw, _join(path, name)), fields) or _known(name, fields)
        return InvalidInput(_join(where, path, name), f"is not a field that is known here{fix}")
    if missing := _MISSING.search(what):
        return InvalidInput(_join(where, path, missing["name"]), "is required")
    if match and match["key"] and _PATTERN.fullmatch(what):
        says = next(
            (extra["says"] for _, extra in keys_at(type_, path) if "says" in extra), "has a wrong form"
        )
        return InvalidInput(_join(where, path) or "body", f"a key {says}")
    return InvalidInput(_join(where, path) or "body", _sentence(what, type_, path, value_at(raw, path)))


def _known(name: str, fields: Sequence[str]) -> str:
    """Return the known field that is nearest to a name; if none is near, all of them, unless they are many."""
    if near := difflib.get_close_matches(name, fields, 1):
        return f"; did you mean `{near[0]}`?"
    return f"; use {', '.join(fields)}" if 0 < len(fields) <= LISTED else ""


def _as_scope(name: str, value: Any, fields: Sequence[str]) -> str:
    """Return how a selection names what a caller passed as `user_id`; nothing for other fields."""
    place = name.removesuffix("_id")
    if place not in PLACES or "scopes" not in fields:
        return ""
    id_ = value if isinstance(value, str) and value and len(value) <= LONGEST else "ID"
    return (
        f"; use scope={place}, scope_id={id_}" if "scope_id" in fields else f'; use scopes=["{place}:{id_}"]'
    )


def _sentence(what: str, type_: Any, path: str, value: Any) -> str:
    """Return what is wrong with the value at a path, with what is allowed."""
    length, bound = _LENGTH.search(what), _BOUND.fullmatch(what)
    if length or bound or _PATTERN.fullmatch(what):
        kind = length["kind"] if length else "str" if bound is None else "number"
        node, says = _limited(type_, path, kind)
        if says:
            return _naming(says, value, node)
        if not length and not bound:
            return _naming(f"must match {getattr(node, 'pattern', '')}", value, node)
    if length:
        return _of_length(length)
    if bound:
        return _naming(_range(node, bound), value, node)
    if chosen := _ENUM.search(what):
        if allowed := _allowed(type_, path):
            return f"must be one of {', '.join(allowed)}, not {chosen['value']}"
        return f"must not be {chosen['value']}"
    if wrong := _EXPECTED.fullmatch(what):
        if wrong["kinds"] == "null" and (says := _limited(type_, path, "null")[1]):
            return says
        kinds = dict.fromkeys(_KINDS.get(kind, kind) for kind in wrong["kinds"].split(" | "))
        got = _KINDS.get(wrong["got"], wrong["got"])
        return f"must be {' or '.join(kinds)}, not {got}{_EXAMPLES.get(next(iter(kinds)), '')}"
    if "datetime" in what:
        return MOMENT
    if "date" in what:
        return DAY
    return what[:1].lower() + what[1:]


def _limited(type_: Any, path: str, kind: str) -> tuple[Any, str]:
    """Return the type at a path that has limits for values of a kind, and its description of them."""
    types: dict[str, Any] = {
        "str": inspect.StrType, "array": inspect.ListType, "object": inspect.DictType,
        "number": (inspect.IntType, inspect.FloatType), "null": inspect.NoneType,
    }  # fmt: skip
    limits = [(node, extra) for node, extra in nodes_at(type_, path) if isinstance(node, types[kind])]
    return (limits[0][0], limits[0][1].get("says", "")) if limits else (None, "")


def _naming(says: str, value: Any, node: Any) -> str:
    """Return the sentence with the value in it, if that is short: `must be between 1 and 9, not 10; ...`"""
    shown = str(value) if not isinstance(node, inspect.StrType) else repr(value)
    if not isinstance(value, str | int | float) or len(shown) > LONGEST:
        return says
    rule, semicolon, fix = says.partition(";")
    return f"{rule}, not {shown}{semicolon}{fix}"


def _range(node: Any, bound: re.Match[str]) -> str:
    """Return the allowed numbers: both bounds, if the type includes both."""
    least, most = getattr(node, "ge", None), getattr(node, "le", None)
    if least is not None and most is not None:
        return f"must be between {_number(least)} and {_number(most)}"
    return f"must be {_BOUNDS[bound['sign']]} {_number(bound['bound'])}"


def _number(bound: Any) -> str:
    return str(bound).removesuffix(".0")


def _of_length(match: re.Match[str]) -> str:
    """Return what is wrong with a length, with what is allowed."""
    parts, least = "characters" if match["kind"] == "str" else "elements", match["sign"] == ">="
    if least and match["bound"] == "1":
        return "must not be empty"
    few, most = ("few", "least") if least else ("many", "most")
    return f"has too {few} {parts}; send at {most} {match['bound']}"


def _allowed(type_: Any, path: str) -> list[str]:
    """Return the allowed texts at a path, in order; empty if unknown."""
    words = [value for node, _ in nodes_at(type_, path) for value in _values(node)]
    return list(dict.fromkeys(map(str, words)))


def _values(node: Any) -> Sequence[Any]:
    if isinstance(node, inspect.LiteralType):
        return node.values
    if isinstance(node, inspect.EnumType):
        return [member.value for member in node.cls]
    tag = getattr(node, "tag", None)
    return [] if tag is None else [tag]


def _fields(type_: Any, path: str) -> list[str]:
    """Return the names of the fields that an object at a path may have."""
    field_lists = (getattr(node, "fields", ()) for node, _ in nodes_at(type_, path))
    return list(dict.fromkeys(field.encode_name for fields in field_lists for field in fields))


def _join(*pieces: str) -> str:
    return ".".join(piece for piece in pieces if piece).replace(".[", "[")
