"""Highlights and excerpts: the snippets of a text, and the parts of a long sentence or row of a table, that have a
question's terms. No I/O.

What is left out of an excerpt is marked with "…". The mark at the end of one of `most` characters is not counted.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from itertools import islice, pairwise

import msgspec

from memoranda.text.analysis import Wanted, occurrences, wanted_by
from memoranda.text.tables import Row
from memoranda.text.terms import term_set
from memoranda.types import Highlight

MAX_SCANNED = 20_000
MAX_OCCURRENCES = 1_000
_JOINER = "\u200d"


class Occurrence(msgspec.Struct, frozen=True):
    """A query term at characters [start, end)."""

    start: int
    end: int
    term: str


def highlights(
    text: str, query: str | Wanted | Collection[str], limit: int = 3, width: int = 160
) -> list[Highlight]:
    """Return up to `limit` snippets of about `width` characters with most of the query's terms, in text order.
    `query` is the query, or, when many texts are shown for one, its `analysis.wanted_by`, or terms.

    Terms match as in the keyword index, in the language of the query and in English. `text[h.start:h.end] ==
    h.text` for each; snippets do not overlap, begin and end at words where a word ends in reach, and never inside a
    grapheme. Only the first 20 000 characters are searched. Empty if nothing matches.
    """
    if isinstance(query, str):
        query = wanted_by(query)
    wanted = query if isinstance(query, Wanted) else Wanted(frozenset(query))
    if not wanted.terms or limit <= 0 or width <= 0:
        return []
    occurrences = _occurrences(text[:MAX_SCANNED], wanted)
    snippets: list[Highlight] = []
    while occurrences and len(snippets) < limit:
        first, last = _best_window(occurrences, width)
        start, end = _bounds(text, occurrences[first].start, occurrences[last].end, width, snippets)
        snippets.append(Highlight(text=text[start:end], start=start, end=end))
        occurrences = [hit for hit in occurrences if hit.end <= start or hit.start >= end]
    return sorted(snippets, key=lambda snippet: snippet.start)


def _occurrences(text: str, wanted: Wanted) -> list[Occurrence]:
    found = islice(occurrences(text, wanted), MAX_OCCURRENCES)
    return [Occurrence(start, end, term) for start, end, term in found]


def _best_window(occurrences: list[Occurrence], width: int) -> tuple[int, int]:
    """First and last occurrence of the window with most distinct terms, then most occurrences, then first."""
    best, best_score = (0, 0), (0, 0)
    counts: dict[str, int] = {}
    last = -1
    for first, hit in enumerate(occurrences):
        last = max(last, first - 1)
        while last + 1 < len(occurrences) and (
            occurrences[last + 1].end - hit.start <= width or last < first
        ):
            last += 1
            counts[occurrences[last].term] = counts.get(occurrences[last].term, 0) + 1
        score = (len(counts), last - first)
        if score > best_score:
            best, best_score = (first, last), score
        counts[hit.term] -= 1
        if not counts[hit.term]:
            del counts[hit.term]
    return best


def _bounds(text: str, start: int, end: int, width: int, taken: list[Highlight]) -> tuple[int, int]:
    """Return the window grown evenly to `width`, without overlap with other snippets, with edges at words."""
    floor = max((other.end for other in taken if other.end <= start), default=0)
    ceiling = min((other.start for other in taken if other.start >= end), default=len(text))
    spare = max(0, width - (end - start))
    low = max(floor, start - spare // 2)
    high = min(ceiling, low + max(width, end - low))
    low = max(floor, min(low, high - width))
    return _left_edge(text, low, start), _right_edge(text, end, high)


def _left_edge(text: str, low: int, start: int) -> int:
    """The first place in [low, start] where a word begins; failing that, where a grapheme does."""
    at = low
    if at and not text[at - 1].isspace():
        while at < start and not text[at - 1].isspace():
            at += 1
        if at == start:
            at = low
    while at < start and (text[at].isspace() or not is_boundary(text, at)):
        at += 1
    while not is_boundary(text, at):
        at -= 1
    return at


def _right_edge(text: str, end: int, high: int) -> int:
    """The last place in [end, high] where a word ends; failing that, where a grapheme does."""
    at = high
    if at < len(text) and not text[at].isspace():
        while at > end and not text[at].isspace():
            at -= 1
        if at == end:
            at = high
    while at > end and (text[at - 1].isspace() or not is_boundary(text, at)):
        at -= 1
    while not is_boundary(text, at):
        at += 1
    return at


def is_boundary(text: str, at: int) -> bool:
    """Return True if a cut before character `at` splits no grapheme: marks, joiners, skin tones, flags, CRLF."""
    if at <= 0 or at >= len(text):
        return True
    before, after = text[at - 1], text[at]
    if after < "\u0300":
        return not (before == "\r" and after == "\n")
    if after == _JOINER or before == _JOINER or "\U0001f3fb" <= after <= "\U0001f3ff":
        return False
    if _is_flag(after) and _is_flag(before):
        return _flags_before(text, at) % 2 == 0
    if "\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff":
        return False
    return not unicodedata.category(after).startswith("M") and not "\U000e0020" <= after <= "\U000e007f"


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, at: int) -> int:
    count = 0
    while at > count and _is_flag(text[at - count - 1]):
        count += 1
    return count


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
