"""Text of PowerPoint presentations (.pptx, .pptm, .ppsx): a page for each slide, its title as a heading, its notes."""

from __future__ import annotations

from pathlib import Path

from memoranda.readers import office
from memoranda.readers.archive import Archive
from memoranda.readers.base import Document, Limits
from memoranda.readers.body import LINE, Body, too_many_pages
from memoranda.readers.grid import Cell, Grid
from memoranda.readers.xml import Element, attribute, local, parse

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"

UNTITLED = "PowerPoint Presentation"
"""The placeholder that the program writes as the title."""

_TITLES = {"title", "ctrTitle"}
_MARGINS = {"dt", "ftr", "hdr", "sldNum", "sldImg"}


def read(path: Path, limits: Limits) -> Document:
    """Return the slides in the order of the presentation, each with its tables, charts, notes and comments."""
    with Archive(path, limits) as archive:
        slides = _slides(archive)
        if len(slides) > limits.pages:
            raise too_many_pages(limits.pages)
        body = Body(limits)
        for number, slide in enumerate(slides, 1):
            body.page(number)
            _slide(archive, slide, body)
        first = body.headings[0].text if body.headings and body.headings[0].start == 0 else ""
        title = office.title(archive)
        return body.document(MEDIA_TYPE, first if title in ("", UNTITLED) else title)


def _slides(archive: Archive) -> list[str]:
    """Return the names of the slides' parts, in order."""
    main = office.main_part(archive, "ppt/presentation.xml")
    links = office.relations(archive, main)
    ids = [_link(element) for element in parse(archive, main).iter("{*}sldId")]
    parts = [links[name][1] for name in ids if name in links]
    return [part for part in parts if part in archive]


def _link(element: Element) -> str:
    """Return the id of an element's relation; its `id` without a namespace is something else."""
    return next((str(value) for key, value in element.attrib.items() if key.endswith("}id")), "")


def _slide(archive: Archive, part: str, body: Body) -> None:
    root = parse(archive, part)
    for twice in list(root.iter("{*}Fallback")):
        twice.getparent().remove(twice)
    shapes = list(root.iter("{*}sp", "{*}tbl"))
    shapes.sort(key=lambda shape: _place(shape) not in _TITLES)
    for shape in shapes:
        if local(shape) == "tbl":
            grid = Grid()
            body.rows([grid.row(_cells(row)) for row in shape.iter("{*}tr")])
        elif (place := _place(shape)) in _TITLES:
            body.heading(_text(shape), 1)
        elif place not in _MARGINS:
            body.add(_text(shape))
    links = office.relations(archive, part)
    body.add("\n".join(office.drawn(archive, links)))
    for kind, target in links.values():
        if target not in archive:
            continue
        if kind == "notesSlide":
            body.add(_notes(parse(archive, target)))
        elif kind == "comments":
            for comment in parse(archive, target).iter("{*}cm"):
                body.add(_comment(comment), LINE)


def _place(shape: Element) -> str:
    """Return the kind of placeholder that a shape fills; empty for any other shape."""
    placeholder = shape.find("{*}nvSpPr/{*}nvPr/{*}ph")
    return "" if placeholder is None else attribute(placeholder, "type")


def _cells(row: Element) -> list[Cell]:
    """Return the cells of a row: there is one for each column, also of merged ones."""
    return [
        Cell([_text(cell)], rows=0 if cell.get("vMerge") in ("1", "true") else 1)
        for cell in row.iter("{*}tc")
    ]


def _text(shape: Element) -> str:
    """Return the paragraphs of a shape, each on a line."""
    return "\n".join(_paragraph(paragraph) for paragraph in shape.iter("{*}p"))


def _paragraph(paragraph: Element) -> str:
    parts = []
    for element in paragraph.iter("{*}t", "{*}br"):
        parts.append(element.text or "" if local(element) == "t" else "\n")
    return "".join(parts).strip()


def _notes(root: Element) -> str:
    shapes = (shape for shape in root.iter("{*}sp", "{*}tbl") if _place(shape) not in _MARGINS)
    return "\n".join(_text(shape) for shape in shapes)


def _comment(element: Element) -> str:
    """Return the text of a comment, in either of its two notations."""
    words = [part.text or "" for part in element.iter("{*}text", "{*}t")]
    return " ".join(words).strip()
