"""Chunking of a document's text: the strategy as a value, and the split; if recursive, at headings, paragraphs,
sentences, words, and only then anywhere.

The reader's process does this, so nothing heavier than the tokenizer is loaded here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal, Protocol

import msgspec

from memoranda.text.chunking import Chunk, Measured, check, fixed, measure
from memoranda.text.regex import regex
from memoranda.text.sentences import ends, is_ended
from memoranda.text.tables import columns_at

_PARAGRAPH = regex(r"(?>\r\n|[\r\n])[^\S\r\n]*+[\r\n]\s*+|[\f\u2029]\s*+")
_WORD_START = regex(r"(?<=\s)\S")
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
    if not text[floor - 1].isspace() and (match := _WORD_START.search(text, floor, chunk.end)):
        floor = match.start()
    while floor < chunk.end and measured.cost(floor, chunk.end) > overlap:
        floor = measured.next(floor)
    return measured.visible(floor)


Strategy = Literal["fixed", "recursive", "semantic"]
MAX_HEADING = 200


class Chunking(msgspec.Struct, frozen=True, kw_only=True):
    """`size` and `overlap` are tokens of `o200k_base`, overlap at most half of size. `fixed` cuts every `size` tokens;
    `recursive` at paragraphs, sentences and words; `semantic` where the meaning turns. `header` embeds every chunk
    under the document's title and the headings above it."""

    strategy: Strategy = "fixed"
    size: int = 200
    overlap: int = 50
    header: bool = False


class ChunkPlace(msgspec.Struct, frozen=True):
    """Characters [start, end) of a document's text, which are `tokens` tokens by themselves. `page` is the one that the
    chunk begins on, `last_page` the one that it ends on. `heading` is the path of headings in
    force where it begins, or else the first heading inside. `columns` is the row that names the columns of the table
    that it begins in."""

    start: int
    end: int
    tokens: int
    page: int | None = None
    last_page: int | None = None
    heading: str | None = None
    columns: str | None = None


class PageStart(Protocol):
    """The position where page `number` begins, in characters."""

    @property
    def start(self) -> int: ...
    @property
    def number(self) -> int: ...


class HeadingStart(Protocol):
    """The position of a heading, in characters; level 1 is the highest."""

    @property
    def start(self) -> int: ...
    @property
    def level(self) -> int: ...
    @property
    def text(self) -> str: ...


def split(
    text: str, pages: Sequence[PageStart], headings: Sequence[HeadingStart], chunking: Chunking
) -> list[ChunkPlace]:
    """Return the chunks of a document's text, ascending; `pages` and `headings` are in order of `start`.

    Each has at most `size` tokens, except a single character that costs more. Every visible character is in a chunk,
    and every chunk has one. For `semantic` these are the sentences, to be embedded and joined by `semantic.group`.

    Raises:
        InvalidInput: `size` is below 1 or `overlap` not in [0, size).
    """
    size, overlap = chunking.size, chunking.overlap
    heads = [_line_start(text, heading.start) for heading in headings]
    if chunking.strategy == "fixed":
        chunks = fixed(text, size, overlap)
    elif chunking.strategy == "recursive":
        chunks = recursive(text, size, overlap, heads, [page.start for page in pages])
    else:
        chunks = pieces(text, size, headings=heads)
    return _placed(text, chunks, pages, headings, heads)


def _line_start(text: str, heading: int) -> int:
    """Return where the line of a heading begins, if only marks (`## `) are before it, else the heading."""
    start = text.rfind("\n", 0, heading) + 1
    return heading if any(letter.isalnum() for letter in text[start:heading]) else start


def _placed(
    text: str,
    chunks: Sequence[Chunk],
    pages: Sequence[PageStart],
    headings: Sequence[HeadingStart],
    heading_starts: Sequence[int],
) -> list[ChunkPlace]:
    """Return the chunks with visible text, with their page and headings; headings begin at `heading_starts`, marks
    included."""
    page_starts = [page.start for page in pages]
    paths = heading_paths(headings)
    places: list[ChunkPlace] = []
    chunks = [chunk for chunk in chunks if text[chunk.start : chunk.end].strip()]
    firsts = [chunk.start + _indent(text[chunk.start : chunk.end]) for chunk in chunks]
    for chunk, first, columns in zip(chunks, firsts, columns_at(text, firsts), strict=True):
        content = text[chunk.start : chunk.end]
        page = bisect_right(page_starts, first) - 1
        last_page = bisect_right(page_starts, chunk.start + len(content.rstrip()) - 1) - 1
        above = bisect_right(heading_starts, first) - 1
        if above < 0 and headings and heading_starts[0] < chunk.end:
            above = 0
        places.append(
            ChunkPlace(
                chunk.start,
                chunk.end,
                chunk.tokens,
                pages[page].number if page >= 0 else None,
                pages[last_page].number if last_page >= 0 else None,
                paths[above] if above >= 0 else None,
                columns,
            )
        )
    return places


def _indent(text: str) -> int:
    """Return the length of the white space that a text begins with."""
    return len(text) - len(text.lstrip())


def heading_paths(headings: Sequence[HeadingStart]) -> list[str | None]:
    """Return for each heading its parents and itself, joined by " > ", without the outermost ones if that is over 200
    characters; None if none has words."""
    paths: list[str | None] = []
    above: list[tuple[int, str]] = []
    for heading in headings:
        while above and above[-1][0] >= heading.level:
            above.pop()
        if words := " ".join(heading.text.split()):
            above.append((heading.level, words))
        paths.append(_joined([words for _, words in above]))
    return paths


def _joined(parts: Sequence[str]) -> str | None:
    while len(parts) > 1 and sum(map(len, parts)) + 3 * (len(parts) - 1) > MAX_HEADING:
        parts = parts[1:]
    return shortened(" > ".join(parts), MAX_HEADING) or None


def shortened(text: str, limit: int) -> str:
    """Return the text, or its first `limit` - 1 characters and an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


def chunk_header(above: str, columns: str | None) -> str | None:
    """Return what is searched with a chunk before its text: a line for its file and headings, and one for the row that
    names its columns."""
    if columns:
        return f"{above}\n{columns}\n"
    return f"{above}\n" if above else None


def columns_of(header: str | None) -> str | None:
    """Return the row that names the columns, in a `chunk_header`; None without."""
    _, _, columns = (header or "").partition("\n")
    return columns.rstrip("\n") or None


_WORD = re.compile(r"[^\W_]+")
_NO_NAMES = frozenset(
    """
    copy data doc document download draft file final image img index new page scan test text untitled upload
    """.split()  # noqa: SIM905 - prose reads better than many quoted words
)
"""Words of file names that do not describe the file."""


def file_header(title: str | None, filename: str, above: str) -> str:
    """Return the header of the first chunk of a file: title, `above`, and the name of the file, so that all are
    searchable.

    Each occurs once; a name without meaning (`scan 3.pdf`) is left out. One line of at most 300 characters.
    """
    named, name, known = " ".join((title or "").split()), " ".join(filename.split()), above.casefold()
    words = _WORD.findall(name.rpartition(".")[0] or name)
    if not any(len(word) > 2 and word.casefold() not in _NO_NAMES for word in words):
        name = ""
    if named.casefold() in known or named.casefold() in name.casefold():
        named = ""
    if name.casefold() in known:
        name = ""
    return shortened(" | ".join(filter(None, (shortened(named, 120), above, shortened(name, 120)))), 300)


def context_header(title: str | None, heading: str | None, filename: str) -> str:
    """Return the header of a chunk for embedding and indexing: `Title > Heading path`, at most 300 characters.

    Empty when neither is known: a file's name alone says little and would be put before every chunk. A title that only
    repeats the file's name is left out, and so is one that the path begins with.
    """
    names = {filename.casefold(), filename.rsplit(".", 1)[0].casefold()}
    named = " ".join((title or "").split())
    path = " ".join((heading or "").split())
    if named.casefold() in names or path.casefold().split(" > ")[0] == named.casefold():
        named = ""
    if not named or not path:
        return shortened(named or path, 300)
    return f"{shortened(named, 300 - 3 - len(path))} > {path}" if len(path) < 250 else shortened(path, 300)
