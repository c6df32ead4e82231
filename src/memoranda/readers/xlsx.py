"""The parts of XLSX workbooks that calamine does not read: how their numbers are shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import IO

from memoranda.readers import office
from memoranda.readers.archive import Archive
from memoranda.readers.cells import NumberFormat, Sheet, number_format
from memoranda.readers.xml import attribute, parse, whole_number

BLOCK = 1 << 20
"""Bytes of a sheet that are searched at once."""
_LONGEST_ROW = 4 << 20
_CELL = re.compile(rb' r="([A-Z]{1,3})(\d{1,7})"(?:[^<>]*? s="(\d{1,5})")?')
_USUAL = {9: "0%", 10: "0.00%"}
"""Formats that a workbook uses without their code. Others depend on the language of the program, or add nothing."""


def sheets(archive: Archive) -> dict[str, Sheet]:
    """Return the sheets by name; empty for binary workbooks."""
    main = office.main_part(archive, "xl/workbook.xml")
    if not main.endswith(".xml"):
        return {}
    links = office.relations(archive, main)
    formats = _formats(archive, links)
    found = {}
    for element in parse(archive, main).iter("{*}sheet"):
        link = next((value for key, value in element.attrib.items() if key.endswith("}id")), "")
        if link in links and links[link][1] in archive:
            with archive.open(links[link][1]) as file:
                found[attribute(element, "name")] = _sheet(file, formats)
    return found


def _sheet(file: IO[bytes], formats: Mapping[bytes, NumberFormat]) -> Sheet:
    sheet, rows, columns = Sheet(), 0, 0
    for block in _blocks(file):
        seen = set()
        for letters, row, style in _CELL.findall(block):
            seen.add(letters)
            rows = max(rows, int(row))
            if style in formats:
                sheet.cells.add(int(row) - 1, _column(letters) - 1, formats[style])
        columns = max([columns, *map(_column, seen)])
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
