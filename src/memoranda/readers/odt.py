"""Text of OpenDocument texts and presentations (.odt, .ott, .odp), read as a stream."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from memoranda.readers import office
from memoranda.readers.archive import Archive
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import LINE, PARAGRAPH, Body, raised
from memoranda.readers.grid import MOST_COLUMNS, Cell, Grid
from memoranda.readers.lists import Lists
from memoranda.readers.xml import Element, attribute, forget, local, parse, walk, whole_number

TEXT = "application/vnd.oasis.opendocument.text"
CONTENT = "content.xml"

_ASIDES = ("note", "annotation", "text-box")
_UNSEEN = ("tracked-changes", "frame", "ruby-text", "forms", "variable-decls")
_EVENTS = (
    *(
        "p",
        "h",
        "style",
        "page",
        "list-style",
        "list",
        "list-item",
        "table",
        "table-row",
        "table-cell",
        "covered-table-cell",
    ),
    *_ASIDES,
    *_UNSEEN,
)
_MARGINS = {"header", "footer", "date-time", "page-number"}
"""Frames of a slide that are no content of it."""
_SPANS = ("columns-spanned", "rows-spanned", "columns-repeated")
_MOST_SPACES = 100


class Block(msgspec.Struct):
    """A paragraph, or a row of a table. `level` is a heading's, from 1; `page` says that a slide begins."""

    text: str
    level: int | None = None
    line: bool = False
    is_title: bool = False
    page: bool = False


def read(path: Path, limits: Limits) -> Document:
    """Return the body, with notes, comments and text boxes after their paragraphs; then headers and footers, each once.

    A slide is a page: its title as a heading, its boxes and tables, its notes.
    """
    with Archive(path, limits) as archive:
        media_type = _media_type(archive)
        body = Body(limits)
        title, slides = "", 0
        styles = parse(archive, "styles.xml") if "styles.xml" in archive else None
        for block in Flow(Lists(styles)).blocks(archive):
            title = title or (block.text if block.is_title else "")
            if block.page:
                slides += 1
                body.page(slides)
            elif block.level:
                body.heading(block.text, block.level)
            else:
                body.add(block.text, LINE if block.line else PARAGRAPH)
        for text in _margins(styles):
            body.add(text)
        return body.document(media_type, office.property_of(archive, "meta.xml", "title") or title)


class Flow:
    """The blocks of `content.xml`, in reading order."""

    def __init__(self, lists: Lists) -> None:
        self._lists = lists
        self._done: list[Block] = []
        self._open: list[list[Block]] = []
        self._tables: list[Grid] = []
        self._rows: list[list[tuple[list[Block], Cell]]] = []
        self._after: list[Block] = []
        self._parents: dict[str, str] = {}
        self._raised: set[str] = set()
        self._marks: list[str] = []
        self._unseen = 0

    def blocks(self, archive: Archive) -> Iterator[Block]:
        with archive.open(CONTENT) as file:
            for event, kind, element in walk(file, CONTENT, _EVENTS):
                if _is_hidden(kind, element):
                    self._unseen += 1 if event == "start" else -1
                if event == "start":
                    if not self._unseen:
                        self._start(kind, element)
                elif self._unseen or kind in _UNSEEN:
                    element.clear(keep_tail=True)
                else:
                    self._end(kind, element)
                if self._done:
                    yield from self._done
                    self._done.clear()

    def _start(self, kind: str, element: Element) -> None:
        if kind == "table-row":
            self._rows.append([])
        elif kind == "table":
            self._tables.append(Grid())
        elif kind in ("page", *_ASIDES, "table-cell", "covered-table-cell"):
            self._open.append([])
        elif kind == "list":
            self._lists.begin(element)
        elif kind == "list-item":
            self._lists.item(element)
        elif kind in ("p", "h"):
            self._marks.append(self._lists.mark())

    def _end(self, kind: str, element: Element) -> None:
        if kind in ("p", "h"):
            self._paragraph(kind, element, self._marks.pop())
        elif kind in _ASIDES:
            self._aside(element)
        elif kind == "page":
            blocks = sorted(self._open.pop(), key=lambda block: not block.is_title)
            self._put([Block("", page=True), *blocks])
            self._leave(element)
        elif kind == "table-cell":
            self._cell(self._open.pop(), element)
        elif kind == "covered-table-cell":
            self._open.pop()
        elif kind == "table":
            self._tables.pop()
        elif kind == "table-row":
            self._row(self._rows.pop())
            self._leave(element)
        elif kind == "list":
            self._lists.end()
        elif kind == "list-style":
            self._lists.define(element)
        elif kind == "style":
            name = attribute(element, "name")
            self._parents[name] = attribute(element, "parent-style-name")
            position = element.find("{*}text-properties")
            if position is not None and attribute(position, "text-position").startswith("super"):
                self._raised.add(name)

    def _put(self, blocks: list[Block]) -> None:
        (self._open[-1] if self._open else self._done).extend(blocks)

    def _leave(self, element: Element) -> None:
        if self._open or self._rows:
            element.clear(keep_tail=True)
        else:
            forget(element)

    def _cell(self, blocks: list[Block], element: Element) -> None:
        columns, rows, times = (whole_number(attribute(element, f"number-{kind}"), 1) for kind in _SPANS)
        if self._rows:
            cell = Cell([block.text for block in blocks], columns, max(1, rows))
            self._rows[-1] += [(blocks, cell)] * min(times, MOST_COLUMNS)

    def _row(self, row: list[tuple[list[Block], Cell]]) -> None:
        """Put a row as a line; a heading, or paragraphs that the table only places, unchanged."""
        grid = self._tables[-1] if self._tables else Grid()
        line = grid.line([cell for _, cell in row])
        blocks = [block for blocks, _ in row for block in blocks]
        if line is None or (len(blocks) == 1 and blocks[0].level):
            self._put(blocks)
        elif line:
            self._put([Block(line, line=True)])

    def _aside(self, element: Element) -> None:
        """Process a note, comment or box. One in a paragraph follows it; one in the frame of a title is a heading."""
        blocks = self._open.pop()
        if attribute(element.getparent(), "class") == "title":
            words = " ".join(block.text for block in blocks)
            blocks = [Block(words, level=1, is_title=True)] if words else []
        if self._marks:
            self._after.extend(blocks)
        else:
            self._put(blocks)
        element.clear(keep_tail=True)

    def _paragraph(self, kind: str, element: Element, mark: str) -> None:
        text = _text(element, self._raised)
        if text.strip():
            style = attribute(element, "style-name")
            is_title = "Title" in (style, self._parents.get(style))
            level = 1 if is_title else None
            if kind == "h":
                level = whole_number(attribute(element, "outline-level"), 1)
            line = self._lists.inside and level is None
            self._put([Block(f"{mark}{text}", level, line=line, is_title=is_title)])
        if self._after:
            after, self._after = self._after, []
            self._put(after)
        self._leave(element)


def _is_hidden(kind: str, element: Element) -> bool:
    return kind in ("tracked-changes", "ruby-text") or (
        kind == "frame" and attribute(element, "class") in _MARGINS
    )


def _text(element: Element, superscripts: Collection[str] = ()) -> str:
    """Return the text of a paragraph, without notes and frames beside it. `superscripts` are styles of its spans."""
    parts = [element.text or ""]
    was_raised = False
    for child in element:
        kind = local(child)
        text = _words(child, kind, superscripts)
        is_raised = kind == "span" and attribute(child, "style-name") in superscripts
        parts.append(raised(text, parts[-1]) if is_raised and not was_raised else text)
        was_raised = is_raised and not child.tail
        if child.tail:
            parts.append(child.tail)
    return "".join(parts)


def _words(child: Element, kind: str, superscripts: Collection[str]) -> str:
    """Return what an element in a paragraph says."""
    if kind == "s":
        return " " * min(whole_number(attribute(child, "c"), 1), _MOST_SPACES)
    if kind == "tab":
        return "\t"
    if kind == "line-break":
        return "\n"
    return "" if kind in _ASIDES or kind in _UNSEEN else _text(child, superscripts)


def _media_type(archive: Archive) -> str:
    if "META-INF/manifest.xml" in archive:
        manifest = parse(archive, "META-INF/manifest.xml")
        if next(manifest.iter("{*}encryption-data"), None) is not None:
            raise Unreadable("invalid_file", "is locked with a password; save it without one")
    if CONTENT not in archive:
        raise Unreadable("invalid_file", "is damaged, or no OpenDocument file: it has no content.xml")
    return archive.read("mimetype").decode("ascii", "replace").strip() if "mimetype" in archive else TEXT


def _margins(styles: Element) -> list[str]:
    """Return the texts of headers and footers, each once."""
    texts: list[str] = []
    for margin in () if styles is None else styles.iter("{*}header", "{*}footer"):
        text = "\n".join(_text(paragraph) for paragraph in margin.iter("{*}p")).strip()
        if text not in texts and any(character.isalpha() for character in text):
            texts.append(text)
    return texts
