"""Chunking of a document's text: the strategy as a value, and the split.

The reader's process does this, so nothing heavier than the tokenizer is loaded here.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from memoranda.text.chunking import Chunk, fixed
from memoranda.text.recursive import pieces, recursive
from memoranda.text.tables import columns_at

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
