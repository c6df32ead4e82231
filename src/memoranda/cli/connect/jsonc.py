"""JSON files that people edit: values are added and taken out in place, everything else keeps its bytes.

Comments and trailing commas are read as editors do (https://jsonc.org). An added value is written in the indentation
of the file; taking it out again gives the bytes from before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

SPACE = re.compile(r"(?:[ \t\r\n\ufeff]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
REST_OF_LINE = re.compile(r"(?:[ \t]|/\*[^\n]*?\*/)*(?://[^\r\n]*)?")
LITERAL = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
STRINGS = json.JSONDecoder()
UNIT = "  "
"""The indentation of a file that has none."""
Path = Sequence[str | int]


class Unreadable(ValueError):
    """The text is no JSON; the message names the line."""


class Node(msgspec.Struct):
    """A value and where it stands: `value` is decoded, `start` to `end` its text. `children` are the values of an
    object or an array, `begins` where each begins with its key, `keys` the keys of an object."""

    start: int
    end: int = 0
    value: Any = None
    children: list[Node] = msgspec.field(default_factory=list)
    begins: list[int] = msgspec.field(default_factory=list)
    keys: list[str] | None = None

    def at(self, path: Path) -> Node | None:
        """Return the value at a path of keys and indexes; None if there is none."""
        node = self
        for step in path:
            if isinstance(step, str):
                if node.keys is None or step not in node.keys:
                    return None
                node = node.children[node.keys.index(step)]
            elif isinstance(node.value, list) and step < len(node.children):
                node = node.children[step]
            else:
                return None
        return node


def parse(text: str) -> Node:
    """Return the value of a text; that of a text without any is an empty object.

    Raises:
        Unreadable: it is no JSON.
    """
    start = _space(text, 0)
    if start == len(text):
        return Node(start, start, {}, keys=[])
    node = _value(text, start)
    if (end := _space(text, node.end)) != len(text):
        raise _wrong(text, end, "something follows the value")
    return node


def with_value(text: str, path: Path, value: Any) -> str:
    """Return the text with the value at a path of keys; missing objects on the way are made.

    Raises:
        Unreadable: the text is no JSON, or something on the way is no object.
    """
    node = parse(text)
    if node.start == node.end:
        return _rendered(_nested(path, value), "", UNIT, "\n") + "\n"
    for place, step in enumerate(path):
        child = node.at([step])
        if child is None:
            if node.keys is None:
                raise _wrong(
                    text, node.start, f"{'.'.join(map(str, path[:place])) or 'the value'} must be an object"
                )
            return _inserted(text, node, _nested(path[place + 1 :], value), str(step))
        node = child
    return text if node.value == value else replaced(text, node, value)


def with_item(text: str, path: Path, value: Any) -> str:
    """Return the text with the value at the end of the array at a path; a missing array is made.

    Raises:
        Unreadable: the text is no JSON, or something else than an array stands there.
    """
    node = parse(text).at(path)
    if node is None:
        return with_value(text, path, [value])
    if not isinstance(node.value, list):
        raise _wrong(text, node.start, f"{'.'.join(map(str, path))} must be an array")
    return _inserted(text, node, value, None)


def replaced(text: str, node: Node, value: Any) -> str:
    """Return the text with another value in the place of a node."""
    line = _indent(text, node.start)
    return text[: node.start] + _rendered(value, line, _unit(text), _newline(text)) + text[node.end :]


def without(text: str, path: Path) -> str:
    """Return the text without the value at a path, its key and its comma; the text itself if there is none."""
    root = parse(text)
    parent = root.at(path[:-1])
    node = root.at(path)
    if parent is None or node is None:
        return text
    index = next(i for i, child in enumerate(parent.children) if child is node)
    own_comma = _comma(text, node.end)
    end = node.end if own_comma is None else own_comma + 1
    if index == 0:
        rest = text[end : parent.end - 1]
        if not rest.strip() and not text[parent.start + 1 : parent.begins[0]].strip():
            return text[: parent.start + 1] + text[parent.end - 1 :]
        if index + 1 < len(parent.children):
            end += len(text[end:]) - len(text[end:].lstrip())
        return text[: parent.begins[0]] + text[end:]
    before = parent.children[index - 1]
    comma = _comma(text, before.end)
    assert comma is not None
    tail = _line_rest(text, comma + 1)
    kept = text[:tail] if own_comma is not None else text[:comma] + text[comma + 1 : tail]
    return kept + text[end:]


# --- reading ---------------------------------------------------------------------------------------


def _space(text: str, at: int) -> int:
    found = SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> Node:
    first = text[at : at + 1]
    if first in ("{", "["):
        return _container(text, at, first == "{")
    if first == '"':
        value, end = _string(text, at)
        return Node(at, end, value)
    found = LITERAL.match(text, at)
    if found is None:
        raise _wrong(text, at, "a value must stand here")
    return Node(at, found.end(), json.loads(found.group()))


def _container(text: str, at: int, is_object: bool) -> Node:
    node = Node(at, keys=[] if is_object else None)
    closing = "}" if is_object else "]"
    at = _space(text, at + 1)
    while text[at : at + 1] != closing:
        node.begins.append(at)
        if node.keys is not None:
            if text[at : at + 1] != '"':
                raise _wrong(text, at, "a key in double quotes, or }, must stand here")
            key, at = _string(text, at)
            at = _space(text, at)
            if text[at : at + 1] != ":":
                raise _wrong(text, at, "a colon must stand here")
            node.keys.append(key)
            at = _space(text, at + 1)
        node.children.append(child := _value(text, at))
        at = _space(text, child.end)
        if text[at : at + 1] == ",":
            at = _space(text, at + 1)
        elif text[at : at + 1] != closing:
            raise _wrong(text, at, f"a comma or {closing} must stand here")
    values = [child.value for child in node.children]
    node.value = values if node.keys is None else dict(zip(node.keys, values, strict=True))
    node.end = at + 1
    return node


def _string(text: str, at: int) -> tuple[str, int]:
    try:
        value, end = STRINGS.raw_decode(text, at)
    except json.JSONDecodeError as exc:
        raise _wrong(text, exc.pos, exc.msg) from exc
    return str(value), end


def _wrong(text: str, at: int, says: str) -> Unreadable:
    return Unreadable(f"line {text.count(chr(10), 0, at) + 1}: {says}")


# --- writing ---------------------------------------------------------------------------------------


def _inserted(text: str, parent: Node, value: Any, key: str | None) -> str:
    """The text with a value at the end of an object or an array."""
    newline, unit = _newline(text), _unit(text)
    outer = _indent(text, parent.start)
    name = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if not parent.children:
        inner = text[parent.start + 1 : parent.end - 1].rstrip()
        item = name + _rendered(value, outer + unit, unit, newline)
        return f"{text[: parent.start + 1]}{inner}{newline}{outer}{unit}{item}{newline}{outer}{text[parent.end - 1 :]}"
    last, begins = parent.children[-1], parent.begins[-1]
    line = _indent(text, begins)
    own_line = not text[text.rfind("\n", 0, begins) + 1 : begins].strip()
    comma = _comma(text, last.end)
    if not own_line:
        place, item = last.end, f", {name}{json.dumps(value, ensure_ascii=False)}"
        return text[:place] + item + text[place:]
    item = f"{newline}{line}{name}{_rendered(value, line, unit, newline)}"
    if comma is not None:
        place = _line_rest(text, comma + 1)
        return f"{text[:place]}{item},{text[place:]}"
    place = _line_rest(text, last.end)
    return f"{text[: last.end]},{text[last.end : place]}{item}{text[place:]}"


def _comma(text: str, at: int) -> int | None:
    """Where the comma after a value stands."""
    at = _space(text, at)
    return at if text[at : at + 1] == "," else None


def _line_rest(text: str, at: int) -> int:
    """The end of the comments that stand behind a value on its line."""
    found = REST_OF_LINE.match(text, at)
    return at if found is None or not found.group().strip() else found.end()


def _nested(path: Path, value: Any) -> Any:
    for step in reversed(path):
        value = {str(step): value}
    return value


def _rendered(value: Any, indent: str, unit: str, newline: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline}{indent}".join(lines)


def _indent(text: str, at: int) -> str:
    """The white space that the line of a place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())].lstrip("\ufeff")


def _unit(text: str) -> str:
    """The indentation of the file: that of its first indented line."""
    found = re.search(r"\n([ \t]+)\S", text)
    return found.group(1) if found else UNIT


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
