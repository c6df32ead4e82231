"""A text in chunks of tokens, by exact character offsets. It is tokenized once, so that counting the tokens of any part
is cheap."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.errors import InvalidInput
from memoranda.text.tokens import DEFAULT_ENCODING, SLAB, Tokens, count, locate

_CRLF = re.compile("\r\n")
_SPACE = re.compile(r"\s*")


class Measured(msgspec.Struct, frozen=True):
    """A text, its tokens, and those (k,) that are `safe` to cut before: the tokens on either side do not change.
    CR LF counts as one character: no token that begins inside is `whole`."""

    text: str
    tokens: Tokens
    safe: NDArray[np.int64]
    encoding: str

    def cost(self, start: int, end: int) -> int:
        """Return the number of tokens of the characters [start, end) by themselves: tokens between the first and the
        last safe cut are reused, and only the rest is encoded again."""
        starts = self.tokens.starts
        if end - start <= 2 * SLAB:
            first = bisect_left(self.safe, start, key=starts.__getitem__)
            last = bisect_right(self.safe, end, key=starts.__getitem__) - 1
            if first < last:
                left, right = int(self.safe[first]), int(self.safe[last])
                head = count(self.text[start : int(starts[left])], self.encoding)
                return head + right - left + count(self.text[int(starts[right]) : end], self.encoding)
        return count(self.text[start:end], self.encoding)

    def token(self, at: int) -> int:
        """Return the first token that begins at or after character `at`."""
        return int(np.searchsorted(self.tokens.starts, at))

    def reach(self, start: int, budget: int, stop: int) -> int:
        """Return a place to cut about `budget` tokens after character `start`: after at least one character, at most
        `stop`. The text between may have a few more tokens; with a budget of 0 it is one character."""
        end = self.before(self.token(start) + budget) if budget > 0 else start
        return min(stop, max(end, self.next(start)))

    def before(self, token: int) -> int:
        """Return the last place to cut at or before the begin of this token; the text's end past the last token."""
        starts, whole = self.tokens.starts, self.tokens.whole
        if token >= len(starts):
            return len(self.text)
        token = max(0, token)
        while not whole[token]:
            token -= 1
        return int(starts[token])

    def next(self, at: int) -> int:
        """Return the next place to cut after character `at`."""
        return at + 2 if self.text.startswith("\r\n", at) else at + 1

    def visible(self, at: int) -> int:
        """Return the first character at or after `at` that is no whitespace; the text's length if there is none."""
        match = _SPACE.match(self.text, at)
        return match.end() if match else at


def measure(text: str, encoding: str = DEFAULT_ENCODING) -> Measured:
    """Tokenize a text.

    Raises:
        InvalidInput: the encoding is not one of `tokens.ENCODINGS`.
    """
    tokens = locate(text, encoding)
    safe = np.flatnonzero(tokens.safe)
    if "\r\n" in text:
        feeds = np.array([match.start() + 1 for match in _CRLF.finditer(text)])
        inside = np.searchsorted(tokens.starts, feeds)
        inside, feeds = inside[inside < len(tokens)], feeds[inside < len(tokens)]
        tokens.whole[inside[tokens.starts[inside] == feeds]] = False
    return Measured(text, tokens, safe, encoding)


class Chunk(msgspec.Struct, frozen=True):
    """Characters [start, end) of a text, which are `tokens` tokens when encoded by themselves."""

    start: int
    end: int
    tokens: int


def fixed(text: str, size: int = 512, overlap: int = 50, encoding: str = DEFAULT_ENCODING) -> list[Chunk]:
    """Return the text in chunks of at most `size` tokens, each beginning `overlap` tokens before the last one's end.

    Cuts fall on the boundaries of the text's tokens, moved back to a whole character (code point). Together
    the chunks contain every character; the last one ends at the text's end, and an empty text has none. As a
    cut can break a match of the encoding's pattern, a chunk that by itself encodes to more than `size` is
    shortened until it fits; only a single token or character that costs more stays over. The overlap grows
    to keep a character whole, and shrinks where a chunk would end no later than the one before it.

    Raises:
        InvalidInput: `size` is below 1, `overlap` is not in [0, size), or the encoding is unknown.
    """
    check(size, overlap)
    measured = measure(text, encoding)
    tokens = measured.tokens
    chunks: list[Chunk] = []
    first = 0
    while first < len(tokens):
        chunk, after = _cut(measured, first, size)
        if chunks and chunk.end <= chunks[-1].end:
            first = _whole_from(tokens, first + 1)
            continue
        chunks.append(chunk)
        if after == len(tokens):
            break
        first = max(_whole_from(tokens, first + 1), _whole_before(tokens, after - overlap))
    return chunks


def check(size: int, overlap: int) -> None:
    """
    Raises:
        InvalidInput: `size` is below 1, or `overlap` is not in [0, size).
    """
    if size < 1:
        raise InvalidInput("size", f"is {size}; a chunk has at least 1 token")
    if not 0 <= overlap < size:
        raise InvalidInput("overlap", f"is {overlap}; it must be at least 0 and below the size, {size}")


def _cut(measured: Measured, first: int, size: int) -> tuple[Chunk, int]:
    """Return the chunk that begins with token `first`, and the token after its last."""
    tokens = measured.tokens
    start = int(tokens.starts[first])
    shortest = _whole_from(tokens, first + 1)
    after = max(shortest, _whole_before(tokens, first + size))
    while True:
        end = int(tokens.starts[after]) if after < len(tokens) else len(measured.text)
        cost = measured.cost(start, end)
        if cost <= size or after == shortest:
            return Chunk(start, end, cost), after
        after = max(shortest, _whole_before(tokens, after - (cost - size)))


def _whole_before(tokens: Tokens, index: int) -> int:
    """Return the last token at or before `index` that begins with a character; `len(tokens)` is one past all."""
    if index >= len(tokens):
        return len(tokens)
    index = max(0, index)
    while not tokens.whole[index]:
        index -= 1
    return index


def _whole_from(tokens: Tokens, index: int) -> int:
    """Return the first token at or after `index` that begins with a character."""
    while index < len(tokens) and not tokens.whole[index]:
        index += 1
    return index
