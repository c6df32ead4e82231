"""Numbers as the cells of a sheet show them: percent signs, units, leading zeros. Their digits are never rounded."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from typing import TypeAlias

import msgspec

_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\]-]*)[^\]]*\]|(?P<condition>\[[<>=][^\]]*\])'
    r"|\[[^\]]*\]|[_*].|(?P<digits>General|[eE][+-]|[0#?.,/])|(?P<literal>.)",
    re.DOTALL | re.IGNORECASE,
)
_NO_LITERALS = re.compile(r"[a-zA-Z@\"\[]")
"""Signs of formats for dates and text, and of damaged ones."""
MOST_FORMULAS = 100_000
_ROWS, _COLUMNS, _FORMATS = 1 << 20, 1 << 14, 1 << 30


class Style(msgspec.Struct, frozen=True):
    """What stands around a number, what it is multiplied by, and how many digits its whole part has at least."""

    before: str = ""
    after: str = ""
    factor: float = 1
    digits: int = 0


class NumberFormat(msgspec.Struct, frozen=True):
    """A number format of a workbook."""

    positive: Style
    negative: Style

    def text(self, value: float) -> str:
        style = self.negative if value < 0 else self.positive
        whole, point, rest = number_words(abs(value) * style.factor).partition(".")
        padded = whole.zfill(style.digits) if whole.isdecimal() else whole
        return f"{'-' if value < 0 else ''}{style.before}{padded}{point}{rest}{style.after}"


Shown: TypeAlias = NumberFormat | str
"""How a number is shown: its format, or the text itself."""


class Cells:
    """How single cells are shown, added row by row. Eight bytes for each cell."""

    def __init__(self) -> None:
        self._cells = array("Q")
        self._numbers: dict[Shown, int] = {}
        self._shown: list[Shown] = []

    def add(self, row: int, column: int, shown: Shown) -> None:
        """Note a cell by its row and column, from 0; those outside of the largest sheet are ignored."""
        if 0 <= row < _ROWS and 0 <= column < _COLUMNS:
            known = self._numbers.setdefault(shown, len(self._shown))
            if known == len(self._shown):
                self._shown.append(shown)
            self._cells.append((row * _COLUMNS + column) * _FORMATS + known)

    def row(self, row: int) -> dict[int, Shown]:
        """Return how the cells of a row are shown, by column."""
        start, end = (bisect_left(self._cells, at * _COLUMNS * _FORMATS) for at in (row, row + 1))
        return {cell // _FORMATS % _COLUMNS: self._shown[cell % _FORMATS] for cell in self._cells[start:end]}


class Sheet(msgspec.Struct):
    """What calamine does not say of a sheet: how its cells are shown, comments and other text beside the cells, how
    many formulas have no stored result, how many places its rows and columns have up to the last cell, 0 if unknown,
    and which rows and columns, from 0, are hidden."""

    cells: Cells = msgspec.field(default_factory=Cells)
    lines: list[str] = []
    unsolved: int = 0
    places: int = 0
    hidden_rows: set[int] = msgspec.field(default_factory=set)
    hidden_columns: list[range] = []
    formulas: dict[int, dict[int, str]] = {}
    """Formulas without a stored result, by row and column from 0."""

    def add_formula(self, row: int, column: int, text: str) -> None:
        """Note a formula that has no stored result; of a hundred thousand its text."""
        self.unsolved += 1
        if text and self.unsolved <= MOST_FORMULAS and 0 <= row < _ROWS and 0 <= column < _COLUMNS:
            self.formulas.setdefault(row, {})[column] = f"={text}"


def comment(place: str, author: str, text: str) -> str:
    """Return a comment as a line; an author at its beginning is not repeated. Empty without text."""
    words = " ".join(text.split()).removeprefix(f"{author}:").strip()
    return f"{place} {author}".strip() + f": {words}" if words else ""


def place(row: int, column: int) -> str:
    """Return the name of a cell by its row and column, from 0: `B3`."""
    letters, column = "", column + 1
    while column:
        column, letter = divmod(column - 1, 26)
        letters = chr(65 + letter) + letters
    return f"{letters}{row + 1}"


def number_words(value: float) -> str:
    """Return a number in digits, whole numbers without a point."""
    if isinstance(value, int) or (value.is_integer() and abs(value) < 2**53):
        return str(int(value))
    return format(value, ".15g")


def number_format(code: str) -> NumberFormat | None:
    """Return what a format code adds to numbers; None if nothing, as for dates and text."""
    sections: list[list[re.Match[str]]] = [[]]
    for token in _TOKEN.finditer(code):
        if token["condition"]:
            return None
        if token["literal"] == ";":
            sections.append([])
        else:
            sections[-1].append(token)
    styles = [_style(section) for section in sections[:2]]
    positive, negative = styles[0], styles[-1]
    if positive is None or negative is None or positive == negative == Style():
        return None
    return NumberFormat(positive, negative)


def _style(section: list[re.Match[str]]) -> Style | None:
    """Return what a section adds to numbers; None if it is no number's, or has text between the digits."""
    before, after, digits, percents = "", "", "", 0
    for token in section:
        if token["digits"]:
            if after.strip():
                return None
            digits, after = digits + token["digits"], ""
            continue
        if token["literal"] and _NO_LITERALS.match(token["literal"]):
            return None
        words = token["quoted"] or token["escaped"] or token["currency"] or token["literal"] or ""
        percents += token["literal"] == "%"
        if words not in ("-", "(", ")"):
            before, after = (before, after + words) if digits else (before + words, after)
    if not digits:
        return Style()
    thousands = len(digits) - len(digits.rstrip(","))
    zeros = 0 if re.search("[eE/]", digits) else digits.partition(".")[0].count("0")
    return Style(
        before.lstrip(), after.rstrip(), 100.0**percents / 1000.0**thousands, zeros if zeros > 1 else 0
    )
