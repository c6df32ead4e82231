"""Text of spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods): a page for each sheet, its name as a heading, a line for
each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from memoranda.readers import ods, office, ole, xlsx
from memoranda.readers.archive import LOCKED, Archive
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import Body
from memoranda.readers.cells import Sheet, Shown, number_words
from memoranda.readers.native import panics_are_damage

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
MOST_CELLS = 20_000_000
"""Cells between the first and the last of a sheet, empty ones too: the parser takes 32 bytes for each."""

Cell: TypeAlias = int | float | str | bool | time | date | datetime | timedelta


def read(path: Path, limits: Limits) -> Document:
    """Return the sheets in order, without empty rows and the empty cells at the ends of rows; ` | ` between cells."""
    body = Body(limits)
    if _is_zip(path):
        with Archive(path, limits) as archive:
            return _read(path, body, archive)
    if ole.tangled(path.read_bytes()):
        raise Unreadable("invalid_file", "is damaged: its sectors follow each other in circles")
    with _damage_is_told():
        _sheets(CalamineWorkbook.from_path(path), body, {})
    return body.document(XLS)


def _read(path: Path, body: Body, archive: Archive) -> Document:
    """Return the sheets of a zip file."""
    opendocument = "content.xml" in archive
    known, others = (ods.sheets(archive), []) if opendocument else xlsx.sheets(archive)
    with _damage_is_told():
        _sheets(CalamineWorkbook.from_path(path), body, known)
    if opendocument:
        return body.document(ODS, office.property_of(archive, "meta.xml", "title"))
    body.add("\n".join(others))
    return body.document(XLSX, office.title(archive))


@contextmanager
def _damage_is_told() -> Iterator[None]:
    """Make the errors of calamine `Unreadable`."""
    try:
        with panics_are_damage():
            yield
    except PasswordError as exc:
        raise Unreadable("invalid_file", LOCKED) from exc
    except CalamineError as exc:
        raise Unreadable("invalid_file", f"is damaged: the spreadsheet cannot be read ({exc})") from exc


def _sheets(workbook: CalamineWorkbook, body: Body, known: Mapping[str, Sheet]) -> None:
    """Add the sheets; `known` is what their parts say besides, by name."""
    skipped = set()
    for number, about in enumerate(workbook.sheets_metadata, 1):
        body.page(number)
        sheet = known.get(about.name) or Sheet()
        rows: Iterator[list[str]] = iter(())
        if about.visible is not SheetVisibleEnum.Visible and not body.limits.hidden_text:
            body.hidden += 1
            continue
        if sheet.places > MOST_CELLS:
            skipped.add(about.name)
        elif about.typ is SheetTypeEnum.WorkSheet:
            rows = _rows(workbook.get_sheet_by_name(about.name), sheet, body)
        _sheet(about.name, rows, sheet.lines, body)
    if unsolved := sum(sheet.unsolved for sheet in known.values()):
        hint = "open and save the file in a spreadsheet program"
        body.notes.append(f"formulas without a stored result, shown as formulas here: {unsolved:,}; {hint}")
    if skipped:
        names = ", ".join(sorted(skipped))
        body.notes.append(f"left out, as their cells lie more than {MOST_CELLS:,} places apart: {names}")


def _sheet(name: str, rows: Iterator[list[str]], lines: list[str], body: Body) -> None:
    first = next(rows, None)
    if first is not None or lines:
        body.heading(name, 1)
    if first is not None:
        body.rows(chain((first,), rows))
    body.add("\n".join(lines))


def _rows(table: CalamineSheet, sheet: Sheet, body: Body) -> Iterator[list[str]]:
    """Yield the rows that are not empty, from the first column with cells on, without those that are hidden, nor the
    hidden columns."""
    starts = chain((table.start[1],) if table.start else (), *sheet.formulas.values())
    left = min(starts, default=0)
    hidden_rows: Set[int] = frozenset() if body.limits.hidden_text else sheet.hidden_rows
    ranges = [] if body.limits.hidden_text else sheet.hidden_columns
    filled: set[int] = set()
    for number, words in _words_of(table, sheet, left):
        if number in hidden_rows:
            body.hidden += 1
        elif ranges:
            right = left + len(words)
            hidden = {
                at - left for each in ranges for at in range(max(each.start, left), min(each.stop, right))
            }
            filled.update(at for at in hidden if words[at])
            yield [word for at, word in enumerate(words) if at not in hidden]
        else:
            yield words
    body.hidden += len(filled)


def _words_of(table: CalamineSheet, sheet: Sheet, left: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty as their numbers, from 0, and the text of their cells from column `left` on. A
    formula without a result is its own text."""
    number, start = -1, table.start[1] if table.start else left
    before = [""] * (start - left)
    for number, row in enumerate(table.iter_rows()):
        formulas = sheet.formulas.get(number)
        if formulas or any(cell != "" for cell in row):
            shown = sheet.cells.row(number)
            words = before + [_shown(cell, shown.get(column)) for column, cell in enumerate(row, start)]
            yield number, _placed(formulas, words, left) if formulas else words
    for last in sorted(sheet.formulas):
        if last > number:
            yield last, _placed(sheet.formulas[last], [], left)


def _placed(formulas: Mapping[int, str], words: list[str], left: int) -> list[str]:
    """Return the cells of a row with its formulas at their columns."""
    words += [""] * (max(formulas) + 1 - left - len(words))
    for column, text in formulas.items():
        words[column - left] = text
    return words


def _shown(cell: Cell, shown: Shown | None) -> str:
    """Return a cell as it is shown; without a format, as text."""
    if isinstance(shown, str):
        return shown
    if shown and isinstance(cell, int | float) and not isinstance(cell, bool):
        return shown.text(cell)
    return _words(cell)


def _words(cell: Cell) -> str:
    """Return a cell as text: whole numbers without a point, dates and times as ISO 8601 has them, durations in
    hours."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, int | float):
        return number_words(cell)
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "seconds").removesuffix(" 00:00:00")
    if isinstance(cell, date | time):
        return cell.isoformat()
    minutes, seconds = divmod(round(abs(cell).total_seconds()), 60)
    return f"{'-' if cell < timedelta() else ''}{minutes // 60}:{minutes % 60:02}:{seconds:02}"


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"PK"
