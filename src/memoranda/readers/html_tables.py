"""The tables of an HTML document: where its blocks go, and what becomes of a row."""

from __future__ import annotations

import msgspec

from memoranda.readers.body import Body, table_line
from memoranda.readers.grid import Cell, Grid

DEEPEST_TABLE = 32
"""The depth from which on nested tables are only lines."""
SHORT_CELL = 300
"""The most characters of a cell whose lines are joined into one."""


class Block(msgspec.Struct):
    """A paragraph, heading or listing. `level` is a heading's; `exact` says that its spaces count; `table` that it is
    rows."""

    text: str
    level: int = 0
    exact: bool = False
    table: bool = False


class Content(msgspec.Struct):
    """The content of a table cell, or of the document outside of tables: blocks, and the lines of the one in
    progress; and how many columns and rows the cell takes."""

    blocks: list[Block] = []
    lines: list[str] = []
    table: bool = False
    columns: int = 1
    rows: int = 1


class Table(msgspec.Struct):
    """A table that is being read: its rows that are not in the text yet, and the cells of the current row, the last of
    which may be open."""

    rows: list[list[str]] = []
    cells: list[Content] = []
    open: bool = False
    grid: Grid = msgspec.field(default_factory=Grid)


class Tables:
    """Puts blocks and lines into the innermost open cell; outside of any, into the document. Tables deeper than
    `DEEPEST_TABLE` have no cells."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._top = self._current = Content()
        self._tables: list[Table] = []
        self._deeper = 0

    @property
    def depth(self) -> int:
        """The number of tables that have not ended."""
        return len(self._tables) + self._deeper

    @property
    def in_cell(self) -> bool:
        """True inside a cell of the innermost table."""
        return bool(self._tables) and not self._deeper and self._tables[-1].open

    @property
    def between_cells(self) -> bool:
        """True in a table, but in none of its cells."""
        return bool(self._tables) and not self._deeper and not self._tables[-1].open

    def begin(self) -> None:
        """Begin a table."""
        if len(self._tables) == DEEPEST_TABLE:
            self._deeper += 1
            return
        self.leave_rows()
        self._tables.append(Table())

    def end(self) -> None:
        """End the innermost table, if there is one."""
        if self._deeper:
            self._deeper -= 1
        elif self._tables:
            self.end_cell(row=True)
            self._end_rows(self._tables.pop())
            self.end_lines()

    def begin_cell(self, columns: int, rows: int) -> None:
        """Begin a cell; the one before it has ended."""
        if self._tables and not self._deeper:
            table = self._tables[-1]
            table.cells.append(Content(columns=columns, rows=max(1, rows)))
            table.open = True
            self._find_current()

    def end_cell(self, row: bool) -> None:
        """End the open cell, and with `row` its row."""
        if not self._tables or self._deeper:
            return
        table = self._tables[-1]
        table.open = False
        self._find_current()
        if row and table.cells:
            self._end_row(table)

    def leave_rows(self) -> None:
        """Keep what is in a table but in none of its cells behind the rows before it."""
        if self._tables and not self._tables[-1].open:
            self._end_rows(self._tables[-1])

    def add_line(self, line: str) -> None:
        """Add a line to the block in progress."""
        self._current.lines.append(line)

    def end_lines(self) -> None:
        """End the block in progress."""
        content = self._current
        if content.lines:
            block = Block("\n".join(content.lines), table=content.table)
            content.lines, content.table = [], False
            self.put(block)

    def put(self, block: Block) -> None:
        """Add a whole block."""
        if self._current is not self._top:
            self._current.blocks.append(block)
        elif block.level:
            self._body.heading(block.text, block.level)
        elif block.exact:
            self._body.put(block.text)
        else:
            self._body.add(block.text)

    def _end_row(self, table: Table) -> None:
        """End a row. A row of short cells is a line; a layout row is the content of its cells."""
        cells, table.cells = table.cells, []
        short = all(map(_short, cells))
        row = table.grid.row(
            [
                Cell([block.text for block in cell.blocks] if short else [], cell.columns, cell.rows)
                for cell in cells
            ]
        )
        if short:
            table.rows.append(row)
            return
        self._end_rows(table)
        for cell in cells:
            for block in cell.blocks:
                self.end_lines()
                self.put(block)

    def _end_rows(self, table: Table) -> None:
        """Add the rows as lines. Empty cells keep the others in their columns; columns without text, which are only
        for spacing, are left out."""
        self._find_current()
        used = sorted({at for row in table.rows for at, text in enumerate(row) if text})
        lines = [table_line([row[at] for at in used if at < len(row)]) for row in table.rows]
        table.rows.clear()
        if lines := [line for line in lines if line]:
            self._current.lines += lines
            self._current.table = True

    def _find_current(self) -> None:
        opened = (table.cells[-1] for table in reversed(self._tables) if table.open)
        self._current = next(opened, self._top)


def _short(cell: Content) -> bool:
    """Return True if the content of a cell may be put on one line."""
    if any(block.level or block.exact or (block.table and "\n" in block.text) for block in cell.blocks):
        return False
    one_line = len(cell.blocks) == 1 and "\n" not in cell.blocks[0].text
    return one_line or sum(len(block.text) for block in cell.blocks) <= SHORT_CELL
