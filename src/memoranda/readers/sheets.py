"""Text of spreadsheets (.xlsx, .xlsm, .xlsb, .xls, .ods): a page for each sheet, its name as a heading, a line for
each row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import TypeAlias

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
)

from memoranda.readers import office, ole
from memoranda.readers.archive import LOCKED, Archive
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import Body
from memoranda.readers.native import panics_are_damage
from memoranda.readers.xml import Element, attribute, local, parse

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLS = "application/vnd.ms-excel"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
MOST_CELLS = 20_000_000
"""Cells between the first and the last of a sheet, empty ones too: the parser takes 32 bytes for each."""

Cell: TypeAlias = int | float | str | bool | time | date | datetime | timedelta

_REFERENCE = re.compile(rb' r="([A-Z]{1,3})(\d{1,7})"')
_EXTRAS = re.compile(r"xl/(?:comments[^/]*|charts/chart[^/]*|diagrams/data[^/]*|drawings/drawing[^/]*)\.xml")


def read(path: Path, limits: Limits) -> Document:
    """Return the sheets in order, without empty rows and the empty cells at the ends of rows; ` | ` between cells."""
    body = Body(limits)
    media_type, title, extras, skipped = XLS, "", [], set()
    if _is_zip(path):
        with Archive(path, limits) as archive:
            media_type = ODS if "content.xml" in archive else XLSX
            if media_type == XLSX:
                title, extras, skipped = office.title(archive), _extras(archive), _sparse(archive)
            else:
                title = office.property_of(archive, "meta.xml", "title")
    elif ole.tangled(path.read_bytes()):
        raise Unreadable("invalid_file", "is damaged: its sectors follow each other in circles")
    with panics_are_damage():
        _sheets(path, body, skipped)
    body.add("\n".join(extras))
    if skipped:
        names = ", ".join(sorted(skipped))
        body.notes.append(f"left out, as their cells lie more than {MOST_CELLS:,} places apart: {names}")
    return body.document(media_type, title)


def _sheets(path: Path, body: Body, skipped: set[str]) -> None:
    try:
        workbook = CalamineWorkbook.from_path(path)
        for number, about in enumerate(workbook.sheets_metadata, 1):
            body.page(number)
            if about.typ is SheetTypeEnum.WorkSheet and about.name not in skipped:
                _sheet(about.name, workbook.get_sheet_by_name(about.name), body)
    except PasswordError as exc:
        raise Unreadable("invalid_file", LOCKED) from exc
    except CalamineError as exc:
        raise Unreadable("invalid_file", f"is damaged: the spreadsheet cannot be read ({exc})") from exc


def _sheet(name: str, sheet: CalamineSheet, body: Body) -> None:
    rows = (list(map(_words, row)) for row in sheet.iter_rows() if any(cell != "" for cell in row))
    first = next(rows, None)
    if first is not None:
        body.heading(name, 1)
        body.rows(_chain(first, rows))


def _chain(first: list[str], rest: Iterator[list[str]]) -> Iterator[list[str]]:
    yield first
    yield from rest


def _words(cell: Cell) -> str:
    """Return a cell as text: whole numbers without a point, dates and times as ISO 8601 has them."""
    if isinstance(cell, str):
        return cell
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else format(cell, ".15g")
    if isinstance(cell, datetime):
        return cell.isoformat(" ", "seconds").removesuffix(" 00:00:00")
    if isinstance(cell, date | time):
        return cell.isoformat()
    return str(cell)


def _is_zip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"PK"


def _parts(archive: Archive) -> dict[str, str]:
    """Return the part of every sheet, by the sheet's name; empty for binary workbooks."""
    main = office.main_part(archive, "xl/workbook.xml")
    if not main.endswith(".xml"):
        return {}
    links = office.relations(archive, main)
    parts = {}
    for sheet in parse(archive, main).iter("{*}sheet"):
        link = next((value for key, value in sheet.attrib.items() if key.endswith("}id")), "")
        if link in links and links[link][1] in archive:
            parts[attribute(sheet, "name")] = links[link][1]
    return parts


def _sparse(archive: Archive) -> set[str]:
    """Return the names of sheets whose cells span more than `MOST_CELLS`."""
    return {name for name, part in _parts(archive).items() if _span(archive, part) > MOST_CELLS}


def _span(archive: Archive, part: str) -> int:
    """Rows times columns up to the last cell that a sheet names."""
    rows, columns, before = 0, 0, b""
    with archive.open(part) as file:
        while block := file.read(1 << 20):
            seen = set()
            for letters, number in _REFERENCE.findall(before + block):
                seen.add(letters)
                rows = max(rows, int(number))
            columns = max([columns, *map(_column, seen)])
            before = block[-16:]
    return rows * columns


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number


def _extras(archive: Archive) -> list[str]:
    """Return the text of comments, charts, diagrams and text boxes, each once."""
    lines: dict[str, None] = {}
    for name in filter(_EXTRAS.fullmatch, archive.names):
        for element in parse(archive, name).iter("{*}p", "{*}comment", "{*}strCache"):
            lines[_line(element)] = None
    return [line for line in lines if line]


def _line(element: Element) -> str:
    if local(element) == "strCache":
        return ", ".join(part.text or "" for part in element.iter("{*}v"))
    return "".join(part.text or "" for part in element.iter("{*}t")).strip()
