"""The numbers of a Word document's lists, which its text does not contain."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from memoranda.readers.archive import Archive
from memoranda.readers.office import value
from memoranda.readers.xml import Element, attribute, parse, whole_number

LEVELS = 9
_PLACE = re.compile(r"%([1-9])")
_ROMAN: tuple[tuple[int, str], ...] = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)


class Level(msgspec.Struct):
    """How one level of a list is numbered: where it starts, in which figures, and the text around them."""

    start: int = 1
    figures: str = "decimal"
    text: str = ""


class Numbering:
    """Counts list items as Word does. Lists that share a definition share its counters."""

    def __init__(self, archive: Archive, part: str) -> None:
        self._definition: dict[str, str] = {}
        self._levels: dict[str, dict[int, Level]] = {}
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
        levels = self._levels.get(definition, {})
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
            return _FIGURES.get(shown.figures, str)(counts.get(at, shown.start))

        shown = _PLACE.sub(figure, this.text).strip()
        return f"{shown} " if shown else ""

    def _list(self, element: Element) -> None:
        name = attribute(element, "numId")
        self._definition[name] = value(element.find("{*}abstractNumId"))
        for change in element.iter("{*}lvlOverride"):
            start = whole_number(value(change.find("{*}startOverride")), -1)
            level = whole_number(attribute(change, "ilvl"), -1)
            if start >= 0 and level >= 0:
                self._restarts.setdefault(name, {})[level] = start


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


def letters(number: int) -> str:
    """a, b, ..., z, aa, bb, ..., as Word counts."""
    if number < 1:
        return ""
    times, letter = divmod(number - 1, 26)
    return chr(ord("a") + letter) * min(times + 1, 9)


def roman(number: int) -> str:
    """i, ii, iii, iv, ..."""
    if not 0 < number < 4000:
        return str(number)
    figures = ""
    for size, figure in _ROMAN:
        times, number = divmod(number, size)
        figures += figure * times
    return figures


_FIGURES: dict[str, Callable[[int], str]] = {
    "lowerLetter": letters,
    "upperLetter": lambda number: letters(number).upper(),
    "lowerRoman": roman,
    "upperRoman": lambda number: roman(number).upper(),
    "decimalZero": lambda number: f"{number:02}",
}
