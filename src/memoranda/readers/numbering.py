"""The numbers of a Word document's lists, which its text does not contain."""

from __future__ import annotations

import re

import msgspec

from memoranda.readers.archive import Archive
from memoranda.readers.numerals import numeral
from memoranda.readers.office import value
from memoranda.readers.xml import Element, attribute, parse, whole_number

LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_FORMS = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I", "decimalZero": "01"}


class Level(msgspec.Struct):
    """How one level of a list is numbered: where it starts, in which figures, and the text around them."""

    start: int = 1
    figures: str = "decimal"
    text: str = ""


class Numbering:
    """Counts list items as Word does. Lists that share a definition share its counters; a level that a list defines
    for itself begins anew."""

    def __init__(self, archive: Archive, part: str) -> None:
        self._definition: dict[str, str] = {}
        self._levels: dict[str, dict[int, Level]] = {}
        self._own: dict[str, dict[int, Level]] = {}
        self._counts: dict[str, dict[int, int]] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        if part:
            root = parse(archive, part)
            for element in root.iter("{*}abstractNum"):
                self._levels[attribute(element, "abstractNumId")] = _levels(element)
            for element in root.iter("{*}num"):
                self._list(element)

    def next(self, list_id: str, level: int) -> str:
        """Return the mark of the next item of a list, followed by a space; empty for a list without marks."""
        definition = self._definition.get(list_id)
        if definition is None or not 0 <= level < LEVELS:
            return ""
        levels = self._levels.get(definition, {}) | self._own.get(list_id, {})
        counts = self._counts.setdefault(definition, {})
        for at, start in self._restarts.pop(list_id, {}).items():
            counts[at] = start - 1
        this = levels.get(level, Level())
        counts[level] = counts.get(level, this.start - 1) + 1
        for deeper in range(level + 1, LEVELS):
            counts.pop(deeper, None)
        if this.figures == "bullet":
            return "- "
        if this.figures == "none":
            return ""

        def figure(place: re.Match[str]) -> str:
            at = int(place[1]) - 1
            shown = levels.get(at, Level())
            return numeral(counts.get(at, shown.start), _FORMS.get(shown.figures, "1"))

        shown = _PLACE.sub(figure, this.text).strip()
        return f"{shown} " if shown else ""

    def _list(self, element: Element) -> None:
        name = attribute(element, "numId")
        self._definition[name] = value(element.find("{*}abstractNumId"))
        self._own[name] = _levels(element)
        for at, level in self._own[name].items():
            self._restarts.setdefault(name, {})[at] = level.start
        for change in element.iter("{*}lvlOverride"):
            start = whole_number(value(change.find("{*}startOverride")), -1)
            at = whole_number(attribute(change, "ilvl"), -1)
            if start >= 0 and at >= 0:
                self._restarts.setdefault(name, {})[at] = start


def _levels(element: Element) -> dict[int, Level]:
    levels = {}
    for level in element.iter("{*}lvl"):
        at = whole_number(attribute(level, "ilvl"), -1)
        if at >= 0:
            levels[at] = Level(
                start=whole_number(value(level.find("{*}start")), 1),
                figures=value(level.find("{*}numFmt")) or "decimal",
                text=value(level.find("{*}lvlText")),
            )
    return levels
