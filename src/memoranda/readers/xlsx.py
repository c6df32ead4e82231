"""The parts of XLSX workbooks that calamine does not read: how numbers are shown, comments, charts, text boxes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO

from memoranda.readers import office
from memoranda.readers.archive import Archive
from memoranda.readers.cells import NumberFormat, Sheet, comment, number_format
from memoranda.readers.xml import Element, attribute, local, parse, whole_number

BLOCK = 1 << 20
"""Bytes of a sheet that are searched at once."""
_LONGEST_ROW = 4 << 20
_CELL = re.compile(rb' r="([A-Z]{1,3})(\d{1,7})"(?:[^<>]*? s="(\d{1,5})")?')
_UNSOLVED = re.compile(
    rb'<(?:\w+:)?c\b(?![^<>]* t="str")[^<>]*>\s*<(?:\w+:)?f(?:\s[^<>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)\s*'
    rb"(?:<(?:\w+:)?v\s*(?:/>|>\s*</(?:\w+:)?v>)\s*)?</(?:\w+:)?c>"
)
"""Cells of a formula without a result; an empty text is one."""
_EXTRAS = re.compile(r"xl/(?:comments[^/]*|charts/chart[^/]*|diagrams/data[^/]*|drawings/drawing[^/]*)\.xml")
_LINKED = ("comments", "drawing", "chart", "chartEx", "chartUserShapes", "diagramData")
"""Parts with text, by the names of files and by the kinds of relations to them."""
_USUAL = {9: "0%", 10: "0.00%"}
"""Formats that a workbook uses without their code. Others depend on the language of the program, or add nothing."""


def sheets(archive: Archive) -> tuple[dict[str, Sheet], list[str]]:
    """Return the sheets by name, none for binary workbooks, and the text of parts that belong to no sheet."""
    found: dict[str, Sheet] = {}
    read: set[str] = set()
    main = office.main_part(archive, "xl/workbook.xml")
    if main.endswith(".xml"):
        links = office.relations(archive, main)
        formats = _formats(archive, links)
        for element in parse(archive, main).iter("{*}sheet"):
            link = next((value for key, value in element.attrib.items() if key.endswith("}id")), "")
            part = links.get(link, ("", ""))[1]
            if part in archive:
                sheet = found[attribute(element, "name")] = _sheet(archive, part, formats)
                sheet.lines = _each_once(_linked(archive, part, read))
    others = [name for name in archive.names if _EXTRAS.fullmatch(name) and name.casefold() not in read]
    return found, _each_once(line for name in others for line in _lines(parse(archive, name)))


def _linked(archive: Archive, part: str, read: set[str]) -> Iterator[str]:
    """Yield the text of the comments and drawings of a part, and of theirs, unless they are `read`."""
    parts = [part]
    for source in parts:
        for kind, target in office.relations(archive, source).values():
            if kind in _LINKED and target in archive and target.casefold() not in read:
                read.add(target.casefold())
                parts.append(target)
                yield from _lines(parse(archive, target))


def _lines(part: Element) -> Iterator[str]:
    """Yield the comments of a part, or its paragraphs and the labels of its charts."""
    if local(part) == "comments":
        authors = ["".join(author.itertext()) for author in part.iterfind("{*}authors/{*}author")]
        for element in part.iterfind("{*}commentList/{*}comment"):
            number = whole_number(attribute(element, "authorId"), len(authors))
            author = authors[number] if number < len(authors) else ""
            yield comment(attribute(element, "ref"), author, _text(element))
        return
    for element in part.iter("{*}p", "{*}strCache"):
        if local(element) == "p":
            yield _text(element)
        else:
            yield ", ".join(value.text or "" for value in element.iter("{*}v"))


def _text(element: Element) -> str:
    return "".join(part.text or "" for part in element.iter("{*}t")).strip()


def _each_once(lines: Iterable[str]) -> list[str]:
    return [line for line in dict.fromkeys(lines) if line]


def _sheet(archive: Archive, part: str, formats: Mapping[bytes, NumberFormat]) -> Sheet:
    sheet, rows, columns = Sheet(), 0, 0
    with archive.open(part) as file:
        for block in _blocks(file):
            seen = set()
            for letters, row, style in _CELL.findall(block):
                seen.add(letters)
                rows = max(rows, int(row))
                if style in formats:
                    sheet.cells.add(int(row) - 1, _column(letters) - 1, formats[style])
            columns = max([columns, *map(_column, seen)])
            sheet.unsolved += len(_UNSOLVED.findall(block))
    sheet.places = rows * columns
    return sheet


def _blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Yield a sheet in pieces of whole rows; longer ones than `_LONGEST_ROW` are cut."""
    rest = b""
    while block := file.read(BLOCK):
        rest += block
        end = rest.rfind(b"row>") + 1 or len(rest) * (len(rest) > _LONGEST_ROW)
        yield rest[:end]
        rest = rest[end:]
    yield rest


def _formats(archive: Archive, links: Mapping[str, tuple[str, str]]) -> dict[bytes, NumberFormat]:
    """Return the formats that change how a number reads, by the number of their style."""
    part = next((target for kind, target in links.values() if kind == "styles"), "")
    if part not in archive:
        return {}
    styles = parse(archive, part)
    codes = dict(_USUAL)
    for element in styles.iterfind("{*}numFmts/{*}numFmt"):
        codes[whole_number(attribute(element, "numFmtId"), -1)] = attribute(element, "formatCode")
    formats = {key: number_format(code) for key, code in codes.items()}
    used = (
        formats.get(whole_number(attribute(element, "numFmtId"), -1))
        for element in styles.iterfind("{*}cellXfs/{*}xf")
    )
    return {b"%d" % place: shown for place, shown in enumerate(used) if shown}


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + letter - 64
    return number
