"""What calamine does not read of OpenDocument spreadsheets: shown texts that say more than their value, comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memoranda.readers.archive import LOCKED, Archive
from memoranda.readers.base import Unreadable
from memoranda.readers.cells import Sheet, comment, place
from memoranda.readers.xml import Element, attribute, forget, parse, walk, whole_number

_CONTENT = "content.xml"
_MANIFEST = "META-INF/manifest.xml"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_CELLS = (_TABLE + "table-cell", _TABLE + "covered-table-cell")
_SHOWN = ("percentage", "currency", "time")
_MORE = re.compile(r"-?0\d|.*[^\d\s.,'’eE+-]", re.DOTALL)
"""Numbers with leading zeros, or with a unit."""
_MOST_COLUMNS = 1 << 14
_MOST_CELLS = 1 << 22
"""The most cells that one repeated row is noted for."""

_REFERENCE = re.compile(r"\[\.([^\]\[.:]+)\]|(?<=:)\.")
"""A cell of the same sheet in a formula: [.B2]."""


def sheets(archive: Archive) -> dict[str, Sheet]:
    """Return the sheets by name. Raises `Unreadable` for a locked file, and for XML on which calamine would not end."""
    if _MANIFEST in archive and next(parse(archive, _MANIFEST).iter("{*}encryption-data"), None) is not None:
        raise Unreadable("invalid_file", LOCKED)
    found: dict[str, Sheet] = {}
    tables: list[Table] = []
    with archive.open(_CONTENT) as file:
        for event, name, element in walk(file, _CONTENT, ("table", "table-row")):
            if name == "table" and event == "start":
                tables.append(Table())
            elif name == "table":
                found[attribute(element, "name")] = tables.pop().sheet
                forget(element)
            elif tables and event == "end":
                tables[-1].row(element)
                forget(element)
    return found


class Table:
    """A table that is being read."""

    def __init__(self) -> None:
        self.sheet = Sheet()
        self._row = 0

    def row(self, element: Element) -> None:
        """Note the cells of a row, as often as it is repeated."""
        shown: dict[int, str] = {}
        column = 0
        for cell in element.iterchildren(*_CELLS):
            times = whole_number(cell.get(_TABLE + "number-columns-repeated", "1"), 1)
            if text := _shown(cell):
                shown.update(dict.fromkeys(range(column, min(column + times, _MOST_COLUMNS)), text))
            if cell.get(_TABLE + "formula") and not cell.get(_OFFICE + "value-type"):
                text = cell.get(_TABLE + "formula").partition("=")[2]
                self.sheet.add_formula(self._row, column, _REFERENCE.sub(r"\1", text))
            for note in cell.iterchildren(_OFFICE + "annotation"):
                self._comment(note, place(self._row, column))
            column += times
        times = whole_number(element.get(_TABLE + "number-rows-repeated", "1"), 1)
        for row in range(self._row, self._row + min(times, _MOST_CELLS // max(1, len(shown)))):
            for column, text in shown.items():
                self.sheet.cells.add(row, column, text)
        self._row += times

    def _comment(self, note: Element, where: str) -> None:
        author = "".join(part.text or "" for part in note.iterchildren("{*}creator"))
        if line := comment(where, author, _text(note.iter("{*}p"))):
            self.sheet.lines.append(line)


def _shown(cell: Element) -> str:
    """Return the text of a number that says more than its value; empty for others."""
    kind = cell.get(_OFFICE + "value-type")
    if kind != "float" and kind not in _SHOWN:
        return ""
    text = _text(cell.iterchildren("{*}p"))
    return text if kind in _SHOWN or _MORE.match(text) else ""


def _text(paragraphs: Iterable[Element]) -> str:
    return "\n".join("".join(part.itertext()) for part in paragraphs)
