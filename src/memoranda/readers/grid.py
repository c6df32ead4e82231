"""The columns of a table with merged cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from memoranda.readers.body import table_line

MOST_COLUMNS = 30
"""The most columns that one cell takes, and the first columns, in which cells may reach into further rows."""
LONGEST_LABEL = 80
"""The most characters of a cell that is repeated in further rows."""


class Cell(NamedTuple):
    """The paragraphs of a cell, and how many columns and rows it takes; with 0 rows it continues the cell above."""

    paragraphs: Sequence[str]
    columns: int = 1
    rows: int = 1

    @property
    def text(self) -> str:
        return " ".join(self.paragraphs)


class Grid:
    """Places the cells of one table, row by row.

    A cell over several columns stands in the first; the others are empty, as its text is not the value of each. A cell
    over several rows is repeated if it is short, because a passage may be one row: "North | Bergen | 20" says what
    "| Bergen | 20" does not.
    """

    def __init__(self) -> None:
        self._above: list[str] = []
        self._left: dict[int, int] = {}
        self._wide = False

    def row(self, cells: Sequence[Cell]) -> list[str]:
        """Return the text of each column of a row; nothing if the row has no text of its own."""
        texts: list[str] = []
        left: dict[int, int] = {}
        for cell in cells:
            self._reach(texts, left)
            begin, columns = len(texts), max(1, min(cell.columns, MOST_COLUMNS))
            texts.append(cell.text or ("" if cell.rows else self._label(begin)))
            texts += [""] * (columns - 1)
            if cell.rows > 1:
                left |= dict.fromkeys(range(begin, min(begin + columns, MOST_COLUMNS)), cell.rows - 1)
        for at in sorted(self._left):
            if at >= len(texts):
                texts += [""] * (at - len(texts))
                self._reach(texts, left)
        self._above, self._left = texts, left
        return texts if any(cell.text for cell in cells) else []

    def line(self, cells: Sequence[Cell]) -> str | None:
        """Return a row as a line, or None if it only places paragraphs: all are in one cell, and there are several, or
        no row so far has two filled cells."""
        row = self.row(cells)
        filled = [cell.paragraphs for cell in cells if cell.paragraphs]
        self._wide = self._wide or len(filled) > 1
        places = len(filled) == 1 and (len(filled[0]) > 1 or not self._wide)
        return None if places else table_line(row)

    def _reach(self, texts: list[str], left: dict[int, int]) -> None:
        """Add what reaches into the next columns from rows above."""
        while rows := self._left.get(at := len(texts), 0):
            texts.append(self._label(at))
            if rows > 1:
                left[at] = rows - 1

    def _label(self, at: int) -> str:
        text = self._above[at] if at < len(self._above) else ""
        return text if len(text) <= LONGEST_LABEL else ""
