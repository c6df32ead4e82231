"""One table of a TOML file, as a block of its own: added at the end, taken out again, all else keeps its bytes."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from memoranda.cli.connect.jsonc import Unreadable

Strings = Mapping[str, str | Sequence[str]]


def parse(text: str) -> dict[str, Any]:
    """Return the values of a text.

    Raises:
        Unreadable: it is no TOML; the message names the line.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise Unreadable(str(exc)) from exc


def block(table: Sequence[str], values: Strings) -> str:
    """Return a table of strings and arrays of strings as text. JSON's strings are strings of TOML, too."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()]
    return "\n".join([f"[{'.'.join(table)}]", *lines]) + "\n"


def has(text: str, table: Sequence[str], values: Strings) -> bool:
    """Return True if the table has these values; it may have others, too."""
    found = table_of(parse(text), table)
    return found is not None and {**found, **values} == found


def with_table(text: str, table: Sequence[str], values: Strings) -> str:
    """Return the text with these values in a table. Tables below it stay.

    Raises:
        Unreadable: the text is no TOML, or has the table in another form, such as an inline table.
    """
    if has(text, table, values):
        return text
    newline = "\r\n" if "\r\n" in text else "\n"
    kept = _without(text, table, below=False)
    gap = "" if not kept else newline if kept.endswith("\n") else newline * 2
    made = kept + gap + block(table, values).replace("\n", newline)
    try:
        if has(made, table, values):
            return made
    except Unreadable:
        pass
    raise Unreadable(f"{'.'.join(table)} is written in another form; replace it by:\n{block(table, values)}")


def without_table(text: str, table: Sequence[str]) -> str:
    """Return the text without a table, the tables below it, and the empty line between it and the next.

    Raises:
        Unreadable: the text is no TOML, or has the table in another form, such as an inline table.
    """
    kept = _without(text, table, below=True)
    if table_of(parse(kept), table) is not None:
        raise Unreadable(f"{'.'.join(table)} is written in another form; take it out by hand")
    return kept


def table_of(values: dict[str, Any], table: Sequence[str]) -> dict[str, Any] | None:
    """Return the values of a table; None if there is none."""
    for part in table:
        inner = values.get(part)
        if not isinstance(inner, dict):
            return None
        values = inner
    return values


def _without(text: str, table: Sequence[str], *, below: bool) -> str:
    """The text without the block of a table, and with `below` the blocks of those below it."""
    name = r"\s*\.\s*".join(rf"[\"']?{re.escape(part)}[\"']?" for part in table)
    own = re.compile(rf"\s*\[\s*{name}\s*{r'(?:[.][^]]*)?' if below else ''}\]")
    kept: list[str] = []
    dropping = False
    for line in text.splitlines(keepends=True):
        if _is_header(line):
            dropping = own.match(line) is not None
        if not dropping:
            kept.append(line)
    if dropping and kept and not kept[-1].strip():
        kept.pop()  # the empty line between the last two tables
    if _others(parse(text), table) != _others(parse("".join(kept)), table):
        raise Unreadable(f"{'.'.join(table)} is written in another form; take it out by hand")
    return "".join(kept)


def _is_header(line: str) -> bool:
    """Return True for a line that begins a table, False for one within an array of several lines."""
    if not line.lstrip().startswith("["):
        return False
    try:
        tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _others(values: dict[str, Any], table: Sequence[str]) -> dict[str, Any]:
    """The values without those of a table, and without tables that are empty then."""
    first, *rest = table
    inner = values.get(first)
    if not isinstance(inner, dict):
        return values
    left = _others(inner, rest) if rest else {}
    others = {key: value for key, value in values.items() if key != first}
    return {**others, first: left} if left else others
