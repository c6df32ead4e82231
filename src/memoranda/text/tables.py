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
MAX_COLUMNS = 500
"""Characters of a row that names columns; a longer one is not repeated."""
_YEARS = re.compile(rf"{_YEAR.pattern}(?:\s*[/–-]\s*\d{{2,4}})?")


class Row(msgspec.Struct, frozen=True):
    """A row as a sentence, and its cells, each with the name of its column, empty where no row names it; `marked` if a
    line of dashes marks the row that does."""

    text: str
    cells: list[tuple[str, str]]
    marked: bool = False


class Table(msgspec.Struct, frozen=True):
    """The begin and end of a table in a text, and its rows."""

    start: int
    end: int
    rows: list[Row]


def tables(text: str, columns: str | None = None) -> Iterator[Table]:
    """Yield the tables of a text: two lines or more with bars. `columns` is the row that names the columns of a table
    that the text begins in.

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
            if lines:
                start = lines[0][0]
                begun = bool(text[:start].strip())
                names = None if begun else columns
                if len(lines) > 1 or names:
                    rows = _rows([row for _, _, row in lines], names, begun=begun)
                    yield Table(start, lines[-1][1], rows)
            lines = []
        at += len(line)


def columns_at(text: str, places: Sequence[int]) -> list[str | None]:
    """Return for each of the ascending places (characters) the row that names the columns of the table there; None
    outside of tables, and if no row does."""
    found: list[str | None] = []
    spans = _spans(text)
    start = end = 0
    names: str | None = None
    for place in places:
        while place >= end and (span := next(spans, None)):
            start, end = span
            names = _names(text[start : min(end, start + 4 * MAX_COLUMNS)])
        found.append(names if start <= place < end else None)
    return found


def with_columns(text: str, columns: str | None) -> str:
    """Return a text below the row that names its columns, unless it begins with that row."""
    if columns is None or _line(_cells(text.split("\n", 1)[0])) == columns:
        return text
    return f"{columns}\n{text}"


def _line(cells: Sequence[str]) -> str:
    return " | ".join(cells).strip()


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the begin and end of two lines or more with bars."""
    bar = text.find("|")
    while bar >= 0:
        start, lines = text.rfind("\n", 0, bar) + 1, 0
        end = start
        while bar >= 0 and text.find("\n", end, bar) < 0:
            lines += 1
            end = text.find("\n", bar) + 1 or len(text)
            bar = text.find("|", end)
        if lines > 1:
            yield start, end


def _names(table: str) -> str | None:
    """Return the first row of a table, which is in lines, if it names the columns."""
    first, second = map(_cells, table.split("\n", 2)[:2])
    row = _line(first)
    if len(list(filter(None, first))) < 2 or len(row) > MAX_COLUMNS or _is_rule(first):
        return None
    return row if _is_rule(second) or _may_name(first, second) else None


def _cells(line: str) -> list[str]:
    """Return the cells of a line with bars; `\\|` is a bar inside a cell. A bar before the first cell is its edge only
    if one is after the last."""
    line = line.strip()
    if line.endswith("|") and not line.endswith("\\|"):
        line = line.strip("|").strip()
    return _CELLS.split(line) if "|" in line else []


def _rows(table: Sequence[list[str]], columns: str | None, *, begun: bool) -> list[Row]:
    rows = [row for row in table if not _is_rule(row)]
    if not rows:
        return []
    if len(table) > 1 and _is_rule(table[1]) and rows[0] is table[0]:
        return [_named(rows[0], row) for row in rows[1:]]
    if columns:
        cut = len(rows[0]) < len(_cells(columns))
        below = [row for row in rows[cut:] if _line(row) != columns]
        return [_plain(row) for row in rows[:cut]] + [_plain(row, columns) for row in below]
    if begun and len(rows) > 1 and _may_name(rows[0], rows[1]):
        return [_plain(row, _line(rows[0])) for row in rows[1:]]
    return [_plain(row) for row in rows]


def _may_name(row: Sequence[str], below: Sequence[str]) -> bool:
    """Return True if a row may name the columns of the rows below: only its first cell may be empty, only others may be
    numbers, these are years, the row below has no more cells, and no cell differs from the one below by its number
    alone, as `KB-7` over `KB-8`."""
    if len(row) < len(below) or _is_number(row[0]) or not all(row[1:]):
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


def _named(names: Sequence[str], row: Sequence[str]) -> Row:
    places = zip_longest(names, row, fillvalue="")
    cells = [(name.replace("\\|", "|"), value.replace("\\|", "|")) for name, value in places if value]
    return Row("; ".join(f"{name}: {value}" if name else value for name, value in cells), cells, marked=True)


def _plain(row: Sequence[str], columns: str | None = None) -> Row:
    """Return a row below the row that names the columns, if there is one."""
    names = _cells(columns) if columns else []
    text = f"{columns}\n{_line(row)}" if columns else _line(row)
    return Row(text, list(zip_longest(names, row, fillvalue="")))
