"""A text in overlapping windows of tokens, cut between words."""

from __future__ import annotations

from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from memoranda.providers.embeddings.base import Span

_JOINER = "\u200d"


def windows(text: str, starts: NDArray[np.int64], limit: int, overlap: int) -> list[Span]:
    """Return windows of at most `limit` tokens, each beginning about `overlap` tokens before the last one's end.

    `starts` (n,) are the characters the tokens begin at, ascending. Windows cover every character, what
    lies between tokens included. A cut falls between words where the last quarter of the window has such
    a place, so that a window has the same tokens by itself. Needs 0 < 2 * overlap < limit / 2.
    """
    spans: list[Span] = []
    begin = first = 0
    while len(starts) - first > limit:
        last = _cut(text, starts, first + limit, first + limit - limit // 4)
        spans.append(Span(begin, int(starts[last])))
        first = _cut(text, starts, last - overlap, last - 2 * overlap)
        begin = int(starts[first])
    spans.append(Span(begin, len(text)))
    return spans


def _cut(text: str, starts: NDArray[np.int64], index: int, least: int) -> int:
    """The last token in (least, index] that begins a word, else a character, else `index`."""
    character = 0
    for i in range(index, least, -1):
        at = int(starts[i])
        if at == starts[i - 1] or _continues(text, at):
            continue
        if not (text[at].isalnum() and (text[at - 1].isalnum() or _is_mark(text[at - 1]))):
            return i
        character = character or i
    return character or index


def _continues(text: str, at: int) -> bool:
    """Return True if a sign belongs to the character before it: a vowel or tone sign, an accent, a skin tone, or one
    of joined emoji."""
    sign = text[at]
    return (
        _is_mark(sign) or sign == _JOINER or text[at - 1] == _JOINER or "\U0001f3fb" <= sign <= "\U0001f3ff"
    )


def _is_mark(sign: str) -> bool:
    return not sign.isascii() and category(sign)[0] == "M"
