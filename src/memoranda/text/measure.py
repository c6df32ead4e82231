"""A text that is tokenized once, so that counting the tokens of any part of it is cheap."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

import msgspec
import numpy as np
from numpy.typing import NDArray

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
