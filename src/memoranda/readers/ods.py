"""What calamine does not read of OpenDocument spreadsheets: shown texts that say more than their value, comments."""

from __future__ import annotations

import re
from collections.abc import Iterable

from memoranda.readers.archive import Archive
from memoranda.readers.cells import Sheet, comment, place
from memoranda.readers.xml import Element, attribute, forget, walk, whole_number

_CONTENT = "content.xml"
_EVENTS = ("table", "table-row", "table-cell", "covered-table-cell")
_UNLIKE_NUMBERS = ("percentage", "currency", "time")
_MORE = re.compile(r"-?0\d|.*[^\d\s.,'’eE+-]", re.DOTALL)
"""Numbers with leading zeros, or with a unit."""
_MOST_COLUMNS = 1 << 14
_MOST_CELLS = 1 << 22
"""The most cells that one repeated row is noted for."""


def sheets(archive: Archive) -> dict[str, Sheet]:
    """Return the sheets by name."""
    found: dict[str, Sheet] = {}
    tables: list[Table] = []
    with archive.open(_CONTENT) as file:
        for event, name, element in walk(file, _CONTENT, _EVENTS):
            if name == "table":
                if event == "start":
                    tables.append(Table())
                else:
                    found[attribute(element, "name")] = tables.pop().sheet
                    forget(element)
            elif tables and event == "end":
                tables[-1].end(name, element)
                forget(element)
    return found


class Table:
    """A table that is being read."""

    def __init__(self) -> None:
        self.sheet = Sheet()
        self._row = self._column = 0
        self._shown: dict[int, str] = {}

    def end(self, name: str, element: Element) -> None:
        """Note a row or a cell, as often as it is repeated."""
        if name == "table-row":
            self._end_row(whole_number(attribute(element, "number-rows-repeated"), 1))
            return
        times = whole_number(attribute(element, "number-columns-repeated"), 1)
        if text := _shown(element):
            end = min(self._column + times, _MOST_COLUMNS)
            self._shown.update(dict.fromkeys(range(self._column, end), text))
        if attribute(element, "formula") and not attribute(element, "value-type"):
            self.sheet.unsolved += 1
        for note in element.iterchildren("{*}annotation"):
            author = "".join(part.text or "" for part in note.iterchildren("{*}creator"))
            if line := comment(place(self._row, self._column), author, _text(note.iter("{*}p"))):
                self.sheet.lines.append(line)
        self._column += times

    def _end_row(self, times: int) -> None:
        for row in range(self._row, self._row + min(times, _MOST_CELLS // max(1, len(self._shown)))):
            for column, text in self._shown.items():
                self.sheet.cells.add(row, column, text)
        self._row += times
        self._column = 0
        self._shown = {}


def _shown(cell: Element) -> str:
    """Return the text of a number that says more than its value; empty for others."""
    kind = attribute(cell, "value-type")
    text = _text(cell.iterchildren("{*}p"))
    return text if kind in _UNLIKE_NUMBERS or (kind == "float" and _MORE.match(text)) else ""


def _text(paragraphs: Iterable[Element]) -> str:
    return "\n".join("".join(part.itertext()) for part in paragraphs)
