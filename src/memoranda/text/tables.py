"""Tables in plain text, with cells between bars. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import msgspec

_CELLS = re.compile(r"\s*(?<!\\)\|\s*")
_RULE = re.compile(r"^[\s:|+-]+$")
_DIGITS = re.compile(r"\d+")
_LETTER = re.compile(r"[^\W\d_]")
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
_YEARS = re.compile(rf"{_YEAR.pattern}(?:\s*[/–-]\s*\d{{2,4}})?")


class Table(msgspec.Struct, frozen=True):
    """The begin and end of a table in a text, and its rows as sentences."""

    start: int
    end: int
    rows: list[str]


def tables(text: str) -> Iterator[Table]:
    """Yield the tables of a text: two lines or more with bars.

    A row is `Column: value; column: value` only if a line of dashes is below the first row, which then names the
    columns. Otherwise it is the row itself, after the first row if that may name the columns, and the text does not
    begin with it, as the text of a chunk that continues a table does.
    """
    lines: list[tuple[int, int, list[str]]] = []
    at = 0
    for line in [*text.splitlines(keepends=True), ""]:
        cells = _cells(line)
        if len(cells) > 1 and (lines or len(list(filter(None, cells))) > 1):
            lines.append((at, at + len(line), cells))
        else:
            if len(lines) > 1:
                start = lines[0][0]
                rows = _rows([row for _, _, row in lines], begun=bool(text[:start].strip()))
                yield Table(start, lines[-1][1], rows)
            lines = []
        at += len(line)


def _cells(line: str) -> list[str]:
    """Return the cells of a line with bars; `\\|` is a bar inside a cell. A bar before the first cell is its edge only
    if one is after the last."""
    line = line.strip()
    if line.endswith("|") and not line.endswith("\\|"):
        line = line.strip("|").strip()
    return _CELLS.split(line) if "|" in line else []


def _rows(table: Sequence[list[str]], *, begun: bool) -> list[str]:
    rows = [row for row in table if not _is_rule(row)]
    if not rows:
        return []
    if _is_rule(table[1]) and rows[0] is table[0]:
        return [_named(rows[0], row) for row in rows[1:]]
    plain = [" | ".join(row).strip() for row in rows]
    if begun and len(plain) > 1 and _may_name(rows[0], rows[1]):
        return [f"{plain[0]}\n{row}" for row in plain[1:]]
    return plain


def _may_name(row: Sequence[str], below: Sequence[str]) -> bool:
    """Return True if a row may name the columns of the rows below: only its first cell may be empty, only others may be
    numbers, these are years, and no cell differs from the one below by its number alone, as `KB-7` over `KB-8`."""
    if _is_number(row[0]) or not all(row[1:]):
        return False
    if any(_is_number(cell) and not _YEARS.fullmatch(cell) for cell in row[1:]):
        return False
    pairs = zip(row, below, strict=False)
    return not any(_DIGITS.search(cell) and _form(cell) == _form(value) for cell, value in pairs)


def _is_number(cell: str) -> bool:
    """Return True for digits without a letter: amounts, dates, times."""
    return bool(_DIGITS.search(cell)) and not _LETTER.search(cell)


def _form(cell: str) -> str:
    """Return a cell with a sign for each of its years and numbers."""
    return _DIGITS.sub("0", _YEAR.sub("Y", cell))


def _is_rule(row: Sequence[str]) -> bool:
    return bool(_RULE.match("|".join(row)))


def _named(names: Sequence[str], row: Sequence[str]) -> str:
    cells = zip_longest(names, row, fillvalue="")
    named = "; ".join(f"{name}: {value}" if name else value for name, value in cells if value)
    return named.replace("\\|", "|")
