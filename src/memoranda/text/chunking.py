"""A text in chunks of tokens, by exact character offsets."""

from __future__ import annotations

import msgspec

from memoranda.errors import InvalidInput
from memoranda.text.measure import Measured, measure
from memoranda.text.tokens import DEFAULT_ENCODING, Tokens


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
