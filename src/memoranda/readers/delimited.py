"""CSV and TSV: tables whose cells are separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from memoranda.readers import plain
from memoranda.readers.base import Document, Limits
from memoranda.readers.body import record_line

_DELIMITERS = "\t;|,"
"""A comma is last, as it is also a decimal point and in prose."""
_EVEN = 0.9
"""The share of the rows that must have as many cells as the first."""


class _Format(NamedTuple):
    delimiter: str
    quoting: Literal[0, 3]


def read(path: Path, limits: Limits) -> Document:
    """Return a line for each row that is not empty, ` | ` between cells; the text unchanged if it is no table."""
    document = plain.read(path, limits)
    form = _format(document.text)
    if form is not None:
        text = "\n".join(filter(None, map(record_line, _rows(document.text, form))))
        if len(text) <= limits.characters:
            document.text = text
    return document


def _format(text: str) -> _Format | None:
    """Return the first format in which nearly all rows have as many cells as the first, at least two; else None.

    Quotes count as characters where they do not enclose whole cells, as in TSV.
    """
    forms = (
        _Format(mark, quoting) for mark in _DELIMITERS for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONE)
    )
    return next((form for form in forms if _is_even(text, form)), None)


def _is_even(text: str, form: _Format) -> bool:
    try:
        rows = _rows(text, form)
        width = len(next(rows, ()))
        if width < 2:
            return False
        widths = [len(row) == width for row in rows]
    except csv.Error:
        return False
    return bool(widths) and 1 + sum(widths) >= _EVEN * (1 + len(widths))


def _rows(text: str, form: _Format) -> Iterator[list[str]]:
    """Yield the rows that are not empty.

    Raises:
        csv.Error: a quote is not closed or encloses a part of a cell, or a cell is very long.
    """
    lines = io.StringIO(text)
    rows = csv.reader(
        lines, delimiter=form.delimiter, quoting=form.quoting, skipinitialspace=True, strict=True
    )
    return (row for row in rows if any(map(str.strip, row)))
