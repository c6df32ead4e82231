"""The marks of an OpenDocument text's list items, which its text does not contain."""

from __future__ import annotations

import msgspec

from memoranda.readers.numerals import numeral
from memoranda.readers.xml import Element, attribute, local, whole_number


class Level(msgspec.Struct):
    """How one level of a list is marked: a bullet, or a number in the form of `form`, with the text around it. It may
    have the numbers of the `shown` - 1 levels above before its own."""

    bullet: bool = False
    form: str = ""
    before: str = ""
    after: str = ""
    start: int = 1
    shown: int = 1


class Open(msgspec.Struct):
    """A list that is being read: its style, and whether an item has begun that has no paragraph yet."""

    style: str
    begun: bool = False


class Lists:
    """Counts the items of lists. Only those with a paragraph count; others hold the rest of a list that goes on."""

    def __init__(self, styles: Element) -> None:
        self._styles: dict[str, dict[int, Level]] = {}
        self._counts: dict[tuple[str, int], int] = {}
        self._open: list[Open] = []
        for element in () if styles is None else styles.iter("{*}list-style"):
            self.define(element)

    @property
    def inside(self) -> bool:
        return bool(self._open)

    def define(self, element: Element) -> None:
        """Add a style of lists."""
        levels = {whole_number(attribute(level, "level"), 1): _level(level) for level in element}
        self._styles[attribute(element, "name")] = levels

    def begin(self, element: Element) -> None:
        """Begin a list, in another one or not. One without a style has that of the list around it."""
        style = attribute(element, "style-name") or (self._open[-1].style if self._open else "")
        self._open.append(Open(style))
        if attribute(element, "continue-numbering") != "true" and not attribute(element, "continue-list"):
            self._counts.pop((style, len(self._open)), None)

    def end(self) -> None:
        self._open.pop()

    def item(self, element: Element) -> None:
        """Begin an item."""
        if not self._open:
            return
        this = self._open[-1]
        this.begun = True
        first = whole_number(attribute(element, "start-value"), -1)
        if first >= 0:
            self._counts[this.style, len(self._open)] = first - 1

    def mark(self) -> str:
        """Return the mark of a paragraph that begins, followed by a space; empty if it begins no item of a list."""
        if not self._open or not self._open[-1].begun:
            return ""
        style, depth = self._open[-1].style, len(self._open)
        self._open[-1].begun = False
        levels = self._styles.get(style, {})
        level = levels.get(depth, Level())
        self._counts[style, depth] = self._counts.get((style, depth), level.start - 1) + 1
        if level.bullet:
            return "- "
        if not level.form:
            return ""
        numbers = []
        for at in range(max(1, depth - level.shown + 1), depth + 1):
            shown = levels.get(at, Level())
            if shown.form:
                numbers.append(numeral(self._counts.get((style, at), shown.start), shown.form))
        return f"{level.before}{'.'.join(numbers)}{level.after}".strip() + " "


def _level(element: Element) -> Level:
    if local(element) != "list-level-style-number":
        return Level(bullet=True)
    return Level(
        form=attribute(element, "num-format"),
        before=attribute(element, "num-prefix"),
        after=attribute(element, "num-suffix"),
        start=whole_number(attribute(element, "start-value"), 1),
        shown=whole_number(attribute(element, "display-levels"), 1),
    )
