"""The numbers of list items as letters and Roman numerals."""

from __future__ import annotations

from collections.abc import Callable

_ROMAN: tuple[tuple[int, str], ...] = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl")),
    *((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)


def numeral(number: int, form: str) -> str:
    """Return a number in the form of its first, which is 1, 01, a, A, i or I; any other form is 1."""
    return _FORMS.get(form, str)(number)


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


_FORMS: dict[str, Callable[[int], str]] = {
    "a": letters,
    "A": lambda number: letters(number).upper(),
    "i": roman,
    "I": lambda number: roman(number).upper(),
    "01": lambda number: f"{number:02}",
}
