"""Plain data into the house's values, with errors that name the field as the caller wrote it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from memoranda.errors import InvalidInput

T = TypeVar("T")
_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$?\.?(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_LENGTH = re.compile(r"Expected `(?P<kind>array|object|str)` of length (?P<sign>>=|<=) (?P<bound>\d+)")
_ENUM = re.compile(r"[Ii]nvalid (?:enum )?value (?P<value>.+)", re.DOTALL)
_EXPECTED = re.compile(r"Expected `(?P<kinds>[^`]+)`, got `(?P<got>[^`]+)`")
_BOUND = re.compile(r"Expected `(?:int|float)` (?P<sign>>=|<=|>|<) (?P<bound>[\d.-]+)")
_BOUNDS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_KINDS = {
    "array": "a list", "object": "an object", "str": "text", "int": "a whole number", "float": "a number",
    "bool": "true or false", "null": "null", "datetime": "a date and time", "bytes": "bytes",
}  # fmt: skip
_EXAMPLES = {"a list": '; write ["a", "b"]', "a date and time": ", such as 2024-05-01T12:00:00Z"}
_STEPS = re.compile(r"[^.\[\]]+")
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
    if length := _LENGTH.search(what):
        return InvalidInput(_join(where, path) or "body", _of_length(length))
    return InvalidInput(_join(where, path) or "body", _in_words(what, type_, path))


def _of_length(found: re.Match[str]) -> str:
    """What is wrong with a length, with what is allowed."""
    parts, least = "characters" if found["kind"] == "str" else "elements", found["sign"] == ">="
    if least and found["bound"] == "1":
        return "must not be empty"
    few, most = ("few", "least") if least else ("many", "most")
    return f"has too {few} {parts}; send at {most} {found['bound']}"


def _in_words(what: str, type_: Any, path: str) -> str:
    """What is wrong with a value, with what is allowed."""
    if value := _ENUM.search(what):
        allowed = _allowed(type_, path)
        if allowed:
            return f"must be one of {', '.join(allowed)}, not {value['value']}"
    if wrong := _EXPECTED.fullmatch(what):
        kinds = dict.fromkeys(_KINDS.get(kind, kind) for kind in wrong["kinds"].split(" | "))
        got = _KINDS.get(wrong["got"], wrong["got"])
        return f"must be {' or '.join(kinds)}, not {got}{_EXAMPLES.get(next(iter(kinds)), '')}"
    if bound := _BOUND.fullmatch(what):
        return f"must be {_BOUNDS[bound['sign']]} {bound['bound'].removesuffix('.0')}"
    if "datetime" in what:
        return "must be a date and time such as 2024-05-01T12:00:00Z"
    return what[:1].lower() + what[1:]


def _allowed(type_: Any, path: str) -> list[str]:
    """The words that may stand at a place, in order; empty where that is not known."""
    try:
        nodes = [msgspec.inspect.type_info(type_)]
    except TypeError:
        return []
    for step in _STEPS.findall(path):
        nodes = [inner for node in _alternatives(nodes) for inner in _inside(node, step)]
    words = [value for node in _alternatives(nodes) for value in _values(node)]
    return list(dict.fromkeys(map(str, words)))


def _alternatives(nodes: Iterable[Any]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, msgspec.inspect.Metadata):
            yield from _alternatives([node.type])
        elif isinstance(node, msgspec.inspect.UnionType):
            yield from _alternatives(node.types)
        else:
            yield node


def _inside(node: Any, step: str) -> Iterator[Any]:
    """The types of what stands at a step of a path, which is a name or an index."""
    fields = getattr(node, "fields", None)
    if fields is not None:
        yield from (field.type for field in fields if field.encode_name == step)
    for name in ("item_type", "value_type"):
        if hasattr(node, name):
            yield getattr(node, name)


def _values(node: Any) -> Sequence[Any]:
    if isinstance(node, msgspec.inspect.LiteralType):
        return node.values
    if isinstance(node, msgspec.inspect.EnumType):
        return [member.value for member in node.cls]
    tag = getattr(node, "tag", None)
    return [] if tag is None else [tag]


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
