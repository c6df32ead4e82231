"""Excerpts: the parts of a long sentence, or of a long row of a table, that have a question's terms. No I/O.

What is left out is marked with "…". The mark at the end of an excerpt of `most` characters is not counted.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from memoranda.text.highlights import MAX_SCANNED, highlights, is_boundary
from memoranda.text.tables import Row
from memoranda.text.terms import term_set

GAP = "…"
PARTS = 3
"""The most parts of an excerpt of prose."""
LEAST = 60
"""Characters of a part, or of a cell that is cut, at least, and of the name of a column at most."""
LONG_CELL_DIVISOR = 4
"""A cell is long if it has more characters than those of an excerpt divided by this. Of the first cell of a row, its
name, at least as many are shown."""
MAX_CELLS = 500
"""Cells of a row that are searched for terms."""


def beginning(text: str, most: int) -> str:
    """Return a text, or the beginning of a longer one, up to the end of a word."""
    if len(text) <= most:
        return text
    at = text.rfind(" ", most // 2, most)
    at = at if at > 0 else most
    while not is_boundary(text, at):
        at -= 1
    return f"{text[:at]} {GAP}"


def excerpt(text: str, wanted: Collection[str], most: int) -> str:
    """Return a text, or of a longer one the beginning if it has all the wanted terms of the text, else as few parts as
    have most of them. Only the first 20 000 characters are searched."""
    start = beginning(text, most)
    if start == text:
        return text
    missing = term_set(text[:MAX_SCANNED]).intersection(wanted) - term_set(start)
    if not missing:
        return start
    numbers = [number for number in range(1, PARTS + 1) if number == 1 or most >= number * LEAST]
    excerpts = [_parts(text, wanted, most, number) for number in numbers]
    return max([start, *excerpts], key=lambda each: len(term_set(each).intersection(wanted)))


def _parts(text: str, wanted: Collection[str], most: int, number: int) -> str:
    """Return the part with most of the wanted terms, then those with most of the terms that are still missing."""
    width = (most - 2 - 3 * (number - 1)) // number
    missing = set(wanted)
    places: list[tuple[int, int]] = []
    while len(places) < number and (found := highlights(text, missing, 1, width)):
        places.append((found[0].start, found[0].end))
        missing -= term_set(found[0].text)
    spans: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if spans and start <= spans[-1][1] + 1:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((start, end))
    parts = f" {GAP} ".join(text[start:end] for start, end in spans)
    before = f"{GAP} " if spans and spans[0][0] else ""
    after = f" {GAP}" if spans and spans[-1][1] < len(text) else ""
    whole = f"{before}{parts}{after}"
    return whole if len(whole) <= most + 2 else beginning(whole, most)


def row_excerpt(row: Row, wanted: Collection[str], most: int) -> str:
    """Return a row of a table, or of a longer one the first cell, the cells with wanted terms in them or in the names
    of their columns, and others in order while they fit."""
    if len(row.text) <= most:
        return row.text
    cells = [(excerpt(name, wanted, LEAST), cell) for name, cell in row.cells]
    first = next((at for at, (_, cell) in enumerate(cells) if cell), 0)
    long = most // LONG_CELL_DIVISOR
    shown = {first: excerpt(cells[first][1], wanted, long)}
    shares = [len(term_set(f"{name} {cell}").intersection(wanted)) for name, cell in row.cells[:MAX_CELLS]]
    for at in sorted(
        range(len(shares)), key=lambda at: (not shares[at], len(cells[at][1]) > long, -shares[at], at)
    ):
        cell, others = cells[at][1], {key: text for key, text in shown.items() if key != at}
        left = most + 2 - len(_row(cells, others | {at: ""}, marked=row.marked))
        if len(cell) <= left:
            shown[at] = cell
        elif left >= LEAST:
            shown[at] = excerpt(cell, wanted, left - 2)
        elif not shares[at]:
            break
    return _row(cells, shown, marked=row.marked).strip()


def _row(cells: Sequence[tuple[str, str]], shown: Mapping[int, str], *, marked: bool) -> str:
    """Return a row with those of its cells that are shown."""
    gap = ("" if marked else GAP, GAP)
    kept: list[tuple[str, str]] = []
    for before, at in pairwise([-1, *sorted(shown), len(cells)]):
        if at > before + 1:
            kept.append(gap)
        if at in shown:
            kept.append((cells[at][0], shown[at]))
    if marked:
        return "; ".join(f"{name}: {cell}" if name else cell for name, cell in kept)
    named = any(cells[at][0] for at in shown)
    lines = zip(*kept, strict=True) if named else [[cell for _, cell in kept]]
    return "\n".join(" | ".join(line) for line in lines)
