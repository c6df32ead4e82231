"""The parts of XLSX workbooks that calamine does not read: how numbers are shown, comments, charts, text boxes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import unescape
from typing import IO

from memoranda.readers import office
from memoranda.readers.archive import Archive
from memoranda.readers.cells import NumberFormat, Sheet, comment, number_format
from memoranda.readers.xml import Element, attribute, local, parse, whole_number

BLOCK = 1 << 20
"""Bytes of a sheet that are searched at once."""
_LONGEST_ROW = 4 << 20
_DIGITS = 20
"""So many digits of a row's number are read. Longer ones overflow in calamine."""
_CELL = re.compile(rb' r="([A-Za-z]{1,9})(\d+)"(?:[^<>]*? s="(\d{1,5})")?')
_PLACE = re.compile(rb' r="([A-Za-z]{1,3})(\d{1,9})"')
_UNSOLVED = re.compile(
    rb'<(?:\w+:)?c\b(?![^<>]* t="str")(?P<cell>[^<>]*)>\s*<(?:\w+:)?f(?:\s[^<>]*)?'
    rb"(?:/>|>(?P<formula>[^<]*)</(?:\w+:)?f>)\s*"
    rb"(?:<(?:\w+:)?v\s*(?:/>|>\s*</(?:\w+:)?v>)\s*)?</(?:\w+:)?c>"
)
"""Cells of a formula without a result; an empty text is one."""
_HIDDEN_ROW = re.compile(rb'<(?:\w+:)?row\b(?=[^<>]* hidden="(?:1|true)")[^<>]*? r="(\d+)"')
_HIDDEN_COLUMN = re.compile(rb'<(?:\w+:)?col\b(?=[^<>]* hidden="(?:1|true)")[^<>]*>')
_EXTRAS = re.compile(r"xl/(?:comments[^/]*|charts/chart[^/]*|diagrams/data[^/]*|drawings/drawing[^/]*)\.xml")
_LINKED = ("comments", "threadedComment", "drawing", "chart", "chartEx", "chartUserShapes", "diagramData")
"""Parts with text, by the names of files and by the kinds of relations to them."""
_COPY = "tc={"
"""The author of a comment that is a copy of a thread, for programs without threads, begins like this."""
_USUAL = {9: "0%", 10: "0.00%"}
"""Formats that a workbook uses without their code. Others depend on the language of the program, or add nothing."""


def sheets(archive: Archive) -> tuple[dict[str, Sheet], list[str]]:
    """Return the sheets by name, none for binary workbooks, and the text of parts that belong to no sheet."""
    found: dict[str, Sheet] = {}
    texts = Texts(archive)
    main = office.main_part(archive, "xl/workbook.xml")
    if main.endswith(".xml"):
        links = office.relations(archive, main)
        formats = _formats(archive, links)
        texts.people = _people(archive, links)
        for element in parse(archive, main).iter("{*}sheet"):
            link = next((value for key, value in element.attrib.items() if key.endswith("}id")), "")
            part = links.get(link, ("", ""))[1]
            if part in archive:
                sheet = found[attribute(element, "name")] = _sheet(archive, part, formats)
                sheet.lines = _each_once(texts.linked(part))
    return found, _each_once(texts.others())


class Texts:
    """The text beside the cells of a workbook, each part once. `people` are names by the ids that threads have."""

    def __init__(self, archive: Archive) -> None:
        self.people: dict[str, str] = {}
        self._archive = archive
        self._read: set[str] = set()
        self._threads = any("threadedcomment" in name.casefold() for name in archive.names)

    def linked(self, part: str) -> Iterator[str]:
        """Yield the text of the comments and drawings of a sheet, and of the parts that they lead to."""
        parts = [part]
        for source in parts:
            for kind, target in office.relations(self._archive, source).values():
                if kind in _LINKED and target in self._archive and target.casefold() not in self._read:
                    parts.append(target)
                    yield from self._lines(target)

    def others(self) -> Iterator[str]:
        """Yield the text of the parts that no sheet leads to."""
        for name in self._archive.names:
            if _EXTRAS.fullmatch(name) and name.casefold() not in self._read:
                yield from self._lines(name)

    def _lines(self, name: str) -> Iterator[str]:
        self._read.add(name.casefold())
        part = parse(self._archive, name)
        kind = local(part)
        if kind == "comments":
            yield from _comments(part, self._threads)
        elif kind == "ThreadedComments":
            for element in part.iterfind("{*}threadedComment"):
                author = self.people.get(attribute(element, "personId"), "")
                yield comment(attribute(element, "ref"), author, "".join(element.itertext("{*}text")))
        else:
            yield from _drawn(part)


def _comments(part: Element, threads: bool) -> Iterator[str]:
    """Yield the comments of a part. `threads` says that the workbook has the threads, some of which are copied here."""
    authors = ["".join(author.itertext()) for author in part.iterfind("{*}authors/{*}author")]
    for element in part.iterfind("{*}commentList/{*}comment"):
        number = whole_number(attribute(element, "authorId"), len(authors))
        author = authors[number] if number < len(authors) else ""
        if not author.startswith(_COPY):
            yield comment(attribute(element, "ref"), author, _text(element))
        elif not threads:
            yield comment(attribute(element, "ref"), "", _text(element))


def _drawn(part: Element) -> Iterator[str]:
    """Yield the paragraphs of a drawing and the labels of a chart."""
    for element in part.iter("{*}p", "{*}strCache"):
        if local(element) == "p":
            yield _text(element)
        else:
            yield ", ".join(value.text or "" for value in element.iter("{*}v"))


def _people(archive: Archive, links: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the names of those who commented, by id."""
    parts = [target for kind, target in links.values() if kind == "person" and target in archive]
    people = (person for part in parts for person in parse(archive, part).iterfind("{*}person"))
    return {attribute(person, "id"): attribute(person, "displayName") for person in people}


def _text(element: Element) -> str:
    return "".join(part.text or "" for part in element.iter("{*}t")).strip()


def _each_once(lines: Iterable[str]) -> list[str]:
    return [line for line in dict.fromkeys(lines) if line]


def _sheet(archive: Archive, part: str, formats: Mapping[bytes, NumberFormat]) -> Sheet:
    sheet, rows, columns = Sheet(), 0, 0
    with archive.open(part) as file:
        for block in _blocks(file):
            seen = set()
            for letters, digits, style in _CELL.findall(block):
                seen.add(letters)
                row = int(digits[:_DIGITS])
                rows = max(rows, row)
                if style in formats:
                    sheet.cells.add(row - 1, _column(letters) - 1, formats[style])
            columns = max([columns, *map(_column, seen)])
            sheet.hidden_rows.update(int(digits[:_DIGITS]) - 1 for digits in _HIDDEN_ROW.findall(block))
            sheet.hidden_columns.extend(_columns(tag) for tag in _HIDDEN_COLUMN.findall(block))
            for unsolved in _UNSOLVED.finditer(block):
                place = _PLACE.search(unsolved["cell"])
                row, column = (int(place[2]) - 1, _column(place[1]) - 1) if place else (-1, -1)
                sheet.add_formula(
                    row, column, unescape((unsolved["formula"] or b"").decode("utf-8", "replace"))
                )
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


def _columns(tag: bytes) -> range:
    """Return the columns that an element is about, from 0."""
    first, last = (
        int(match[1]) if (match := re.search(rb' %s="(\d{1,9})"' % name, tag)) else 0
        for name in (b"min", b"max")
    )
    return range(first - 1, last)


def _column(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = number * 26 + letter - 64
    return number
