"""Text of Word documents (.docx, .docm, .dotx), read as a stream.

Only paragraphs, rows, cells and text boxes reach Python as events; within a paragraph libxml2 finds the few
elements that hold text. So the cost depends on the text of a document, not on its formatting.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import msgspec

from memoranda.readers import office
from memoranda.readers.archive import Archive
from memoranda.readers.base import Document, Limits, Unreadable
from memoranda.readers.body import LINE, PARAGRAPH, Body, raised
from memoranda.readers.equations import linear
from memoranda.readers.grid import Cell, Grid
from memoranda.readers.numbering import Numbering
from memoranda.readers.xml import Element, attribute, forget, parse, walk

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
FLAT = "application/vnd.ms-word.xml"
BODY_TEXT = 9
"""The outline level of body text; 0 is the highest heading."""

_EVENTS = ("p", "tbl", "tr", "tc", "txbxContent", "Fallback", "moveFrom", "rt")
_NOTES = ("footnoteReference", "endnoteReference", "commentReference")
_UNSEEN = ("vanish", "webHidden", "strike", "dstrike", "sz")
_FIELDS = ("checkBox", "ddList")
_SAYING = tuple(
    f"{{*}}{name}"
    for name in (
        *("t", "vertAlign", "tab", "ptab", "br", "cr", "noBreakHyphen", "sym", "oMath"),
        *(*_UNSEEN, *_FIELDS, *_NOTES),
    )
)
_TINY = 4
"""Half points: smaller text is not to be seen."""
_BOXES = dict.fromkeys((82, 83, 84, 120, 253, 254), "[x]") | dict.fromkeys(
    (0x30, 0x6F, 0x71, 0x72, 0x75, 0xA3, 0xA8), "[ ]"
)
"""Boxes of the fonts Wingdings and Wingdings 2, by the last byte of their code: with a cross or a tick, and empty."""
_TICKS = {0xFC: "✓", 0xFB: "✗", 0x50: "✓", 0x4F: "✗"}
_FIXED = {"ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_HEADING = re.compile(r"heading ([1-9])", re.IGNORECASE)


class Block(msgspec.Struct):
    """A paragraph or a row of a table. `level` is a heading's, from 1."""

    text: str
    level: int | None = None
    line: bool = False
    is_title: bool = False


class Content(msgspec.Struct):
    """The text of a paragraph, the marks of its notes and comments, as `footnote:3`, and the number of runs that are
    left out, as they are not to be seen or struck out."""

    text: str
    marks: list[str]
    hidden: int


class Style(msgspec.Struct):
    """What a paragraph's style says: its outline level if any, whether it is the title, its list."""

    outline: int | None = None
    is_title: bool = False
    based_on: str = ""
    list_id: str = ""
    list_level: str = ""


def read(path: Path, limits: Limits) -> Document:
    """Return the body with notes and comments after their paragraphs; then headers, footers, and the text of charts and
    diagrams, each once."""
    with path.open("rb") as file:
        if file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
            return _flat(path, limits)
    with Archive(path, limits) as archive:
        main = office.main_part(archive, "word/document.xml")
        links = office.relations(archive, main)
        parts = _named(archive, links)
        styles = _styles(archive, parts.get("styles", ""))
        numbering = Numbering(archive, parts.get("numbering", ""))
        asides = _asides(archive, parts, limits.hidden_text)
        body = Body(limits)
        if any(kind == "aFChunk" for kind, _ in links.values()):
            body.notes.append("files that are embedded as a part of the text are left out")
        title = ""
        flow = Flow(body, styles, numbering, asides)
        with archive.open(main) as file:
            for block in flow.blocks(file, main):
                title = title or (block.text if block.is_title else "")
                _add(body, block)
        for text in _margins(body, archive, links, styles):
            body.add(text)
        body.add("\n".join(office.drawn(archive, links)))
        return body.document(MEDIA_TYPE, office.title(archive) or title)


def _flat(path: Path, limits: Limits) -> Document:
    """Return a document that Word saved as one XML file: its paragraphs and tables."""
    if path.stat().st_size > limits.unpacked_bytes:
        raise Unreadable("invalid_file", f"is larger than {limits.unpacked_bytes >> 20:,} MB")
    body = Body(limits)
    with path.open("rb") as file:
        for block in Flow(body, {}, None, {}).blocks(file, "the document"):
            _add(body, block)
    return body.document(FLAT)


def _add(body: Body, block: Block) -> None:
    if block.level:
        body.heading(block.text, block.level)
    else:
        body.add(block.text, LINE if block.line else PARAGRAPH)


class Flow:
    """The blocks of one part of the document `body`, in reading order."""

    def __init__(
        self, body: Body, styles: dict[str, Style], numbering: Numbering | None, asides: dict[str, str]
    ) -> None:
        self._body = body
        self._styles = styles
        self._numbering = numbering
        self._asides = asides
        self._done: list[Block] = []
        self._open: list[list[Block]] = []
        self._tables: list[Grid] = []
        self._rows: list[list[tuple[list[Block], Cell]]] = []
        self._boxed: list[Block] = []
        self._twice = 0

    def blocks(self, file: IO[bytes], name: str) -> Iterator[Block]:
        for event, kind, element in walk(file, name, _EVENTS):
            if kind == "Fallback":
                self._twice += 1 if event == "start" else -1
            if event == "start":
                if not self._twice:
                    self._start(kind)
            elif self._twice or kind in ("Fallback", "moveFrom", "rt"):
                element.clear()
            else:
                self._end(kind, element)
            if self._done:
                yield from self._done
                self._done.clear()

    def _start(self, kind: str) -> None:
        if kind == "tr":
            self._rows.append([])
        elif kind == "tbl":
            self._tables.append(Grid())
        elif kind in ("tc", "txbxContent"):
            self._open.append([])

    def _end(self, kind: str, element: Element) -> None:
        if kind == "p":
            self._paragraph(element)
        elif kind == "tc":
            blocks = self._open.pop()
            if self._rows:
                self._rows[-1].append((blocks, _cell(blocks, element.find("{*}tcPr"))))
        elif kind == "tbl":
            self._tables.pop()
        elif kind == "txbxContent":
            self._boxed.extend(self._open.pop())
        elif kind == "tr":
            self._row(self._rows.pop(), element)
            if self._open:
                element.clear()
            else:
                forget(element)

    def _row(self, row: list[tuple[list[Block], Cell]], element: Element) -> None:
        """Put a row as a line; a heading, or paragraphs that the table only places, unchanged."""
        before = _number(office.value(element.find("{*}trPr/{*}gridBefore")), 0)
        skipped = [Cell([], before)] if before else []
        grid = self._tables[-1] if self._tables else Grid()
        line = grid.line([*skipped, *(cell for _, cell in row)])
        blocks = [block for blocks, _ in row for block in blocks]
        if line is None or (len(blocks) == 1 and blocks[0].level):
            self._put(blocks)
        elif line:
            self._put([Block(line, line=True)])

    def _put(self, blocks: list[Block]) -> None:
        (self._open[-1] if self._open else self._done).extend(blocks)

    def _paragraph(self, element: Element) -> None:
        content = _content(element, self._body.limits.hidden_text)
        self._body.hidden += content.hidden
        properties = element.find("{*}pPr")
        block = self._styled(content.text, properties) if content.text.strip() else None
        after = [Block(self._asides[mark], line=True) for mark in content.marks if mark in self._asides]
        self._put([*([block] if block else []), *after, *self._boxed])
        self._boxed = []
        if self._open or self._rows:
            element.clear()
        else:
            forget(element)

    def _styled(self, text: str, properties: Element) -> Block:
        if properties is None:
            return Block(text)
        name = office.value(properties.find("{*}pStyle"))
        style = self._styles.get(name, Style())
        outline = properties.find("{*}outlineLvl")
        depth = _number(office.value(outline), BODY_TEXT) if outline is not None else style.outline
        mark = self._mark(properties, style)
        level = depth + 1 if depth is not None and depth < BODY_TEXT else None
        return Block(f"{mark}{text}", level, line=bool(mark) and level is None, is_title=style.is_title)

    def _mark(self, properties: Element, style: Style) -> str:
        """Return a list item's number or dash with a space, or nothing."""
        if self._numbering is None:
            return ""
        own = properties.find("{*}numPr")
        list_id, level = style.list_id, style.list_level
        if own is not None:
            list_id = office.value(own.find("{*}numId")) or list_id
            level = office.value(own.find("{*}ilvl")) or level
        return self._numbering.next(list_id, _number(level, 0)) if list_id else ""


def _cell(blocks: list[Block], properties: Element) -> Cell:
    paragraphs = [block.text for block in blocks]
    if properties is None:
        return Cell(paragraphs)
    merge = properties.find("{*}vMerge")
    rows = 1 if merge is None or office.value(merge) == "restart" else 0
    return Cell(paragraphs, _number(office.value(properties.find("{*}gridSpan")), 1), rows)


def _content(paragraph: Element, hidden_text: bool) -> Content:
    """Return the content of a paragraph; with `hidden_text` no run is left out."""
    parts: list[str] = []
    marks: list[str] = []
    run: Element = None
    unseen: Element = None
    hidden = 0
    was_raised = False
    for element in paragraph.iter(*_SAYING):
        kind = element.tag.rpartition("}")[2]
        if kind == "t" and element.tag.partition("}")[0].endswith("/math"):
            continue  # its equation has it
        if kind == "t" and unseen is not None and element.getparent() is unseen:
            hidden += bool(element.text)
        elif kind == "t":
            text, is_raised = element.text or "", run is not None and element.getparent() is run
            parts.append(raised(text, parts[-1]) if is_raised and not was_raised and parts else text)
            was_raised = is_raised
        elif kind == "vertAlign":
            run = element.getparent().getparent() if office.value(element) == "superscript" else run
        elif kind in _FIXED:
            parts.append(_FIXED[kind])
        elif kind == "tab":
            if element.getparent().tag.endswith("}r"):
                parts.append("\t")
        elif kind == "sym":
            parts.append(_symbol(attribute(element, "char"), attribute(element, "font")))
        elif kind == "oMath":
            parts.append(linear(element))
        elif kind in _UNSEEN:
            if not hidden_text and _hides(kind, element):
                unseen = element.getparent().getparent()
        elif kind in _FIELDS:
            parts.append(_field(kind, element))
        else:
            marks.append(f"{kind.removesuffix('Reference')}:{attribute(element, 'id')}")
    return Content("".join(parts), marks, hidden)


def _hides(kind: str, element: Element) -> bool:
    """Return True if a property of a run hides it, or strikes it out."""
    value = office.value(element)
    if kind == "sz":
        return 0 < _number(value, 0) <= _TINY
    return value.lower() not in ("0", "false", "off")


def _field(kind: str, element: Element) -> str:
    """Return the box of a form, `[x]` or `[ ]`, or the choice of a list."""
    if kind == "checkBox":
        checked = element.find("{*}checked")
        box = element.find("{*}default") if checked is None else checked
        return "[ ]" if box is None or office.value(box).lower() in ("0", "false", "off") else "[x]"
    entries = [office.value(entry) for entry in element.iter("{*}listEntry")]
    at = _number(
        office.value(element.find("{*}result")), _number(office.value(element.find("{*}default")), 0)
    )
    return entries[at] if 0 <= at < len(entries) else ""


def _symbol(code: str, font: str) -> str:
    """Return a character of a symbol font: boxes and ticks of Wingdings; others in the private area have no meaning
    outside it."""
    number = _number(code, 0, 16)
    if font.casefold().startswith("wingdings") and (named := number & 0xFF) in _BOXES | _TICKS:
        return (_BOXES | _TICKS)[named]
    return "" if 0xE000 <= number <= 0xF8FF or not 32 <= number < 0x110000 else chr(number)


def _number(text: str, default: int, base: int = 10) -> int:
    try:
        return int(text, base)
    except ValueError:
        return default


def _named(archive: Archive, links: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Return the parts of which a document has one, by kind."""
    return {kind: target for kind, target in links.values() if target in archive}


def _styles(archive: Archive, part: str) -> dict[str, Style]:
    """Return paragraph styles by id, each with what it inherits."""
    if not part:
        return {}
    styles: dict[str, Style] = {}
    for element in parse(archive, part).iter("{*}style"):
        if attribute(element, "type") not in ("paragraph", ""):
            continue
        styles[attribute(element, "styleId")] = _style(element)
    return {name: _inherited(name, styles) for name in styles}


def _style(element: Element) -> Style:
    name = office.value(element.find("{*}name"))
    outline = element.find("{*}pPr/{*}outlineLvl")
    heading = _HEADING.fullmatch(name)
    is_title = name.casefold() == "title"
    depth = 0 if is_title else int(heading[1]) - 1 if heading else None
    return Style(
        outline=depth if outline is None else _number(office.value(outline), BODY_TEXT),
        is_title=is_title,
        based_on=office.value(element.find("{*}basedOn")),
        list_id=office.value(element.find("{*}pPr/{*}numPr/{*}numId")),
        list_level=office.value(element.find("{*}pPr/{*}numPr/{*}ilvl")),
    )


def _inherited(name: str, styles: dict[str, Style]) -> Style:
    style = msgspec.structs.replace(styles[name])
    seen = {name}
    while style.based_on in styles and style.based_on not in seen:
        seen.add(style.based_on)
        base = styles[style.based_on]
        style.outline = base.outline if style.outline is None else style.outline
        style.list_id = style.list_id or base.list_id
        style.list_level = style.list_level or base.list_level
        style.based_on = base.based_on
    return style


def _asides(archive: Archive, parts: dict[str, str], hidden_text: bool) -> dict[str, str]:
    """Return the text of every footnote, endnote and comment, by its mark."""
    texts = {}
    for kind in ("footnote", "endnote", "comment"):
        part = parts.get(f"{kind}s")
        if not part:
            continue
        for note in parse(archive, part).iter(f"{{*}}{kind}"):
            paragraphs = (_content(paragraph, hidden_text).text.strip() for paragraph in note.iter("{*}p"))
            words = " ".join(filter(None, paragraphs))
            author = attribute(note, "author") if kind == "comment" else ""
            if words:
                texts[f"{kind}:{attribute(note, 'id')}"] = f"{author}: {words}" if author else words
    return texts


def _margins(
    body: Body, archive: Archive, links: dict[str, tuple[str, str]], styles: dict[str, Style]
) -> list[str]:
    """Return the texts of headers and footers, each once, without those of page numbers alone."""
    texts: list[str] = []
    for kind, target in links.values():
        if kind not in ("header", "footer") or target not in archive:
            continue
        with archive.open(target) as file:
            blocks = list(Flow(body, styles, None, {}).blocks(file, target))
        text = "\n".join(block.text for block in blocks)
        if text not in texts and any(character.isalpha() for character in text):
            texts.append(text)
    return texts
