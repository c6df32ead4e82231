"""The text of a document under construction: blocks with gaps between them, and where pages and headings begin.

Offsets are taken when a block is added, after its normalisation, so they hold in the finished text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from memoranda.readers.base import Document, Heading, Limits, Page, Unreadable

Gap = Literal["\n", "\n\n"]
PARAGRAPH: Gap = "\n\n"
LINE: Gap = "\n"
ROWS_AT_ONCE = 1_000

_CONTROLS = {code: None for code in range(32) if chr(code) not in "\t\n"} | {127: None}
_UNWANTED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\xad\ud800-\udfff\ufeff\ufffe\uffff]")
_RETURN = re.compile(r"[\x85\u2028\u2029]")
_RAISED = re.compile(r"[+\-−–]?\d")
_BASE = re.compile(r"(?:\d|\)|(?<![^\W\d_])[^\W\d_]{1,2})\Z")
"""What a power can follow: a number, a parenthesis, or a name of one or two letters, as x and cm; not a word, behind
which the number is that of a note."""
_MANY = re.compile(r"\n{3,}")


def tidy(text: str) -> str:
    """Return text with `\\n` as line ends, no control characters or soft hyphens, no spaces at line ends, at most one
    empty line in a row."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = text.translate(_CONTROLS) if text.isascii() else _UNWANTED.sub("", _RETURN.sub("\n", text))
    text = "\n".join(map(str.rstrip, text.split("\n")))
    return _MANY.sub("\n\n", text) if "\n\n\n" in text else text


def raised(text: str, before: str) -> str:
    """Return a superscript with `^` before it if it is a number and follows what can have a power: "10^6" is not 106,
    nor is "x^2" x2."""
    return f"^{text}" if _RAISED.match(text) and _BASE.search(before[-4:]) else text


class Body:
    """Collects a document. Raises `Unreadable` if it has more text or pages than `limits` allow. `hidden` counts the
    parts that are left out, since a reader does not see them or they are struck out."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.hidden = 0
        self.headings: list[Heading] = []
        self.notes: list[str] = []
        self._parts: list[str] = []
        self._pages: list[Page] = []
        self._size = 0
        self._gap: Gap = PARAGRAPH
        self._waiting: list[int] = []

    def page(self, number: int) -> None:
        """Begin page (slide, sheet) `number` with the next block."""
        if number > self.limits.pages:
            raise too_many_pages(self.limits.pages)
        self._waiting.append(number)
        self._gap = PARAGRAPH

    def add(self, text: str, gap: Gap = PARAGRAPH) -> int | None:
        """Add a block and return its offset, or None if it is empty. `gap` separates it from both of its neighbours,
        unless they need more."""
        return self.put(tidy(text).strip("\n "), gap)

    def put(self, text: str, gap: Gap = PARAGRAPH) -> int | None:
        """`add` for a text that is tidy and stripped already."""
        if not text:
            return None
        if self._parts:
            between = max(self._gap, gap)
            self._parts.append(between)
            self._size += len(between)
        start = self._size
        self._parts.append(text)
        self._size += len(text)
        self._gap = gap
        self._turn(start)
        if self._size > self.limits.characters:
            most = self.limits.characters
            raise Unreadable("invalid_file", f"holds more than {most:,} characters of text; split it")
        return start

    @property
    def empty(self) -> bool:
        """Return True if no text has been added yet."""
        return not self._parts

    def heading(self, text: str, level: int) -> None:
        """Add a heading as a block of its own, on one line. `level` 1 is the highest."""
        words = " ".join(tidy(text).split())
        start = self.add(words)
        if start is not None:
            self.headings.append(Heading(start, max(1, level), words))

    def rows(self, rows: Iterable[Sequence[str]]) -> None:
        """Add a table: a line for each row that is not empty, cells separated by ` | `; no cell holds a table."""
        lines: list[str] = []
        gap: Gap = PARAGRAPH
        for line in filter(None, map(record_line, rows)):
            lines.append(line)
            if len(lines) == ROWS_AT_ONCE:
                self.add("\n".join(lines), gap)
                lines, gap = [], LINE
        self.add("\n".join(lines), gap)
        self._gap = PARAGRAPH

    def document(self, media_type: str, title: str | None = None) -> Document:
        """Return the finished document. Raises `Unreadable` if it has no text."""
        if not self._parts:
            why = "; what it has is hidden or struck out (readers.hidden_text)" if self.hidden else ""
            raise Unreadable("invalid_file", f"holds no text{why}")
        if self.hidden:
            parts = "1 part is" if self.hidden == 1 else f"{self.hidden:,} parts are"
            self.notes.append(f"{parts} hidden or struck out, and left out")
        self._turn(self._size)
        return Document(
            text="".join(self._parts),
            media_type=media_type,
            title=" ".join(tidy(title or "").split()) or None,
            pages=self._pages,
            headings=self.headings,
            notes=self.notes,
        )

    def _turn(self, start: int) -> None:
        self._pages.extend(Page(start, number) for number in self._waiting)
        self._waiting.clear()


def table_line(cells: Sequence[str]) -> str:
    """Return the cells of one row on one line; empty cells at its end are left out. A table inside a cell adds its
    columns."""
    words = [" ".join(cell.split()) for cell in cells]
    while words and not words[-1]:
        words.pop()
    return " | ".join(words).strip()


def record_line(cells: Sequence[str]) -> str:
    """Return `table_line` for cells that hold no table: a bar inside one of several cells is `\\|`, as in Markdown."""
    return table_line([cell.replace("|", "\\|") for cell in cells] if len(cells) > 1 else cells)


def too_many_pages(limit: int) -> Unreadable:
    return Unreadable("invalid_file", f"has more than {limit:,} pages; split it")
