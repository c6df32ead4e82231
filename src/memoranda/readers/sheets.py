"""Text of spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods): a page for each sheet, its name as a heading, a line for
each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
)

from memoranda.readers import ods, office, ole, xlsx
from memoranda.readers.archive import LOCKED, Archive
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import Body
from memoranda.readers.cells import Cells, Sheet, Shown, number_words
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
        if sheet.places > MOST_CELLS:
            skipped.add(about.name)
        elif about.typ is SheetTypeEnum.WorkSheet:
            rows = _rows(workbook.get_sheet_by_name(about.name), sheet.cells)
        _sheet(about.name, rows, sheet.lines, body)
    if unsolved := sum(sheet.unsolved for sheet in known.values()):
        hint = "open and save the file in a spreadsheet program"
        body.notes.append(f"formulas without a stored result, which are empty here: {unsolved:,}; {hint}")
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


def _rows(sheet: CalamineSheet, cells: Cells) -> Iterator[list[str]]:
    """Yield the rows that are not empty, from the first column with cells on."""
    left = sheet.start[1] if sheet.start else 0
    for number, row in enumerate(sheet.iter_rows()):
        if any(cell != "" for cell in row):
            shown = cells.row(number)
            yield [_shown(cell, shown.get(column)) for column, cell in enumerate(row, left)]


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
