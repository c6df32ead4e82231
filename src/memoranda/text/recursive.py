"""A text in chunks that end at headings, paragraphs, sentences, words, and only then anywhere."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec

from memoranda.text.chunking import Chunk, check
from memoranda.text.measure import Measured, measure
from memoranda.text.regex import regex
from memoranda.text.sentences import ends, is_ended

_PARAGRAPH = regex(r"(?>\r\n|[\r\n])[^\S\r\n]*+[\r\n]\s*+|[\f\u2029]\s*+")
_WORD = regex(r"(?<=\s)\S")
LONGEST_ROW = 2_000
"""Characters before and behind a place in which a row is looked for."""


class _Rules(msgspec.Struct, frozen=True):
    """Tokens of a chunk and of the overlap, and characters where headings and pages begin, ascending."""

    size: int
    overlap: int
    headings: Sequence[int] = ()
    pages: Sequence[int] = ()


def recursive(
    text: str, size: int = 512, overlap: int = 50, headings: Sequence[int] = (), pages: Sequence[int] = ()
) -> list[Chunk]:
    """Return the text in chunks of at most `size` tokens of `o200k_base`, without the whitespace around them.

    A chunk ends at the first heading that has more than a third of the size before it. Otherwise it ends as late as it
    can, and past a third of its size, at the best there is of: a page that begins with a sentence, a paragraph, a line
    that ends a sentence, a sentence, any line, a word. Only text without spaces is cut anywhere, between characters.
    The next chunk repeats the last whole sentences that fit in `overlap` tokens, or words where a sentence is longer,
    but nothing from before a heading, and of rows of a table only whole ones, unless one is cut. Together the chunks
    contain every visible character. `headings` and `pages` are the characters where they begin, ascending.

    Raises:
        InvalidInput: `size` is below 1, or `overlap` is not in [0, size).
    """
    check(size, overlap)
    return list(_chunks(measure(text), 0, len(text), _Rules(size, overlap, headings, pages)))


def pieces(text: str, size: int = 512, least: int = 40, headings: Sequence[int] = ()) -> list[Chunk]:
    """Return the text's sentences, joined until a piece has about `least` tokens, and cut where one is over `size`.
    No piece continues past a heading's start. `semantic.group` joins the pieces by meaning.

    Raises:
        InvalidInput: `size` is below 1.
    """
    check(size, 0)
    measured, rules = measure(text), _Rules(size, 0)
    heads = {measured.visible(heading) for heading in headings}
    stops = sorted({*ends(text, 0, len(text)), *heads, len(text)})
    tokens = [*measured.tokens.starts.searchsorted(stops).tolist(), len(measured.tokens)]
    least = min(least, size // 2)
    chunks: list[Chunk] = []
    start = begun = 0
    for stop, token, ahead in zip(stops, tokens, tokens[1:], strict=False):
        if token - begun >= least or ahead - begun > size or stop in heads or stop == len(text):
            chunks.extend(_chunks(measured, start, stop, rules))
            start, begun = stop, token
    return chunks


def _chunks(measured: Measured, start: int, stop: int, rules: _Rules) -> Iterator[Chunk]:
    """The chunks of the characters [start, stop)."""
    start = done = measured.visible(start)
    while start < stop:
        chunk, cut, fresh = _next(measured, start, stop, done, rules)
        if cut <= done:
            start = done
            continue
        yield chunk
        done = measured.visible(cut)
        again = rules.overlap and not fresh and done < stop
        start = _again(measured, chunk, rules.overlap) if again else done


def _next(measured: Measured, start: int, stop: int, done: int, rules: _Rules) -> tuple[Chunk, int, bool]:
    """Return the chunk that begins at `start`, where it was cut, and True if a heading begins there. `done` is the end
    of the chunks before it; a cut at or before `done` means that nothing new fits."""
    text, budget = measured.text, rules.size
    while True:
        reach = measured.reach(start, budget, stop)
        cut, fresh = _cut(measured, start, reach, stop, done, rules)
        end = start + len(text[start:cut].rstrip())
        cost = measured.cost(start, end)
        if cost <= rules.size or end <= measured.next(start):
            return Chunk(start, end, cost), cut, fresh
        budget = max(0, min(budget, measured.token(end) - measured.token(start)) - (cost - rules.size))


def _cut(measured: Measured, start: int, reach: int, stop: int, done: int, rules: _Rules) -> tuple[int, bool]:
    """Return where the chunk [start, reach) should end, and True if a heading begins there."""
    text = measured.text
    high = min(stop, measured.visible(reach))
    low = max(done, min(reach, measured.before(measured.token(start) + rules.size // 3)))
    first = bisect_right(rules.headings, low)
    if first < len(rules.headings) and rules.headings[first] <= high and rules.headings[first] < stop:
        return rules.headings[first], True
    if reach >= stop:
        return stop, False
    for find in (partial(_page, rules.pages), _paragraph, _sentence, _line):
        if (at := find(text, low, high)) is not None:
            return at, False
    return _word(text, max(start, done), reach), False


def _page(pages: Sequence[int], text: str, low: int, high: int) -> int | None:
    """The last page in (low, high] that begins after the end of a sentence."""
    for at in pages[bisect_right(pages, low) : bisect_right(pages, high)][::-1]:
        if is_ended(text[max(0, at - 40) : at]):
            return at
    return None


def _paragraph(text: str, low: int, high: int) -> int | None:
    """The last paragraph in (low, high]."""
    return max((match.end() for match in _PARAGRAPH.finditer(text, low, high)), default=None)


def _sentence(text: str, low: int, high: int) -> int | None:
    """The last sentence in (low, high] that begins a line, or else the last."""
    starts = [at for at in ends(text, low, high) if low < at <= high]
    lines = (at for at in reversed(starts) if "\n" in _gap(text, low, at))
    return next(lines, starts[-1] if starts else None)


def _gap(text: str, low: int, at: int) -> str:
    """The whitespace before `at`."""
    before = text[low:at]
    return before[len(before.rstrip()) :]


def _line(text: str, low: int, high: int) -> int | None:
    """The last line in (low, high]."""
    at = text.rfind("\n", low, high) + 1
    return at if at > low else None


def _word(text: str, low: int, reach: int) -> int:
    """The last word in (low, reach]; `reach` itself where there is none."""
    if text[reach].isspace() or text[reach - 1].isspace():
        return reach
    at = reach - len(text[low:reach].rsplit(None, 1)[-1]) if low < reach else reach
    return at if at > low else reach


def _in_row(text: str, at: int) -> bool:
    """Return True inside a row of a table, but not where it begins."""
    least = max(0, at - LONGEST_ROW)
    start = max(least, text.rfind("\n", least, at) + 1)
    end = text.find("\n", at, at + LONGEST_ROW)
    return bool(text[start:at].strip()) and " | " in text[start : end if end >= 0 else at]


def _again(measured: Measured, chunk: Chunk, overlap: int) -> int:
    """Return where the next chunk begins: with the last sentences of this one of at most `overlap` tokens, or words if
    a sentence is longer; behind this one if its last row of a table is longer."""
    text, token = measured.text, measured.token(chunk.end)
    floor = max(measured.next(chunk.start), measured.before(token - overlap))
    for at in ends(text, max(chunk.start, floor - 40), chunk.end):
        if floor <= at < chunk.end and measured.cost(at, chunk.end) <= overlap and not _in_row(text, at):
            return at
    if _in_row(text, floor) and text[chunk.end : chunk.end + 1] == "\n":
        return measured.visible(chunk.end)
    if not text[floor - 1].isspace() and (match := _WORD.search(text, floor, chunk.end)):
        floor = match.start()
    while floor < chunk.end and measured.cost(floor, chunk.end) > overlap:
        floor = measured.next(floor)
    return measured.visible(floor)
