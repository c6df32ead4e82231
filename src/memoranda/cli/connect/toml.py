"""One table of a TOML file: added at the end, changed in place, taken out again; all else keeps its bytes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from memoranda.cli.connect.jsonc import Unreadable

Strings = Mapping[str, str | Sequence[str]]
Values = MutableMapping[str, Any]


def parse(text: str) -> tomlkit.TOMLDocument:
    """Return a text as a document that can be changed.

    Raises:
        Unreadable: it is no TOML, the message names the line; or its tables lie in an order that would change.
    """
    try:
        document = tomlkit.parse(text)
    except TOMLKitError as exc:
        raise Unreadable(str(exc)) from exc
    if document.as_string() != text:
        raise Unreadable("tables of one array lie apart; put them one after the other")
    return document


def table_of(values: Values, table: Sequence[str]) -> Values | None:
    """Return a table; None if there is none."""
    for part in table:
        inner = values.get(part)
        if not isinstance(inner, MutableMapping):
            return None
        values = inner
    return values


def with_table(text: str, table: Sequence[str], values: Strings) -> str:
    """Return the text with these values in a table. Its other values and the tables below it stay.

    Raises:
        Unreadable: the text is no TOML, or has the table in a form that cannot be changed.
    """
    document = parse(text)
    own = table_of(document, table)
    if own is None:
        return _checked(text + _block(text, table, values), text, table, values)
    own.update({key: value for key, value in values.items() if own.get(key) != value})
    return _checked(document.as_string(), text, table, values)


def without_table(text: str, table: Sequence[str]) -> str:
    """Return the text without a table, the tables below it, and the empty line between it and the next.

    Raises:
        Unreadable: the text is no TOML, or has the table in a form that cannot be changed.
    """
    document = parse(text)
    parent = table_of(document, table[:-1])
    if parent is not None:
        with suppress(TOMLKitError):
            parent.pop(table[-1], None)
    made, newline = document.as_string(), _newline(text)
    if made != text and text.startswith(made) and made.endswith(newline * 2):
        made = made.removesuffix(newline)  # the empty line before the last table
    return _checked(made, text, table, None)


def _block(text: str, table: Sequence[str], values: Strings) -> str:
    """A table for the end of a text. tomlkit would put it between the next table and the comment about that."""
    newline = _newline(text)
    nested: Mapping[str, Any] = values
    for part in reversed(table):
        nested = {part: nested}
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    return gap + tomlkit.dumps(nested).replace("\n", newline)


def _checked(made: str, text: str, table: Sequence[str], values: Strings | None) -> str:
    """Return `made` if it differs from `text` in the values of a table, or in having none, and in nothing else.

    Raises:
        Unreadable: it does not.
    """
    *above, name = table
    with suppress(tomllib.TOMLDecodeError):
        found, expected = tomllib.loads(made), tomllib.loads(text)
        _parent(found, above)
        parent = _parent(expected, above)
        own = parent.pop(name, {})
        if values is not None:
            parent[name] = {**own, **values}
        if found == expected:
            return made
    how = "take it out by hand" if values is None else f"put this there:\n{_block('', table, values)}"
    raise Unreadable(f"{'.'.join(table)} is written in another form; {how}")


def _parent(values: dict[str, Any], above: Sequence[str]) -> dict[str, Any]:
    for part in above:
        values = values.setdefault(part, {})
    return values


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
