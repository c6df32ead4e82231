"""Separate reasoning that a model writes into its answer, as `<think>...</think>`, from the answer. No I/O."""

from __future__ import annotations

from typing import Literal

from memoranda.providers.chat.base import Piece, ReasoningDelta, TextDelta

TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}
_BLANK = " \r\n\t"


class Thinking:
    """Splits an answer that begins with a tag of `TAGS`; a later tag is text. White space around the reasoning is left
    out."""

    def __init__(self) -> None:
        self._buffer = ""
        self._state: Literal["start", "thought", "after", "text"] = "start"
        self._close = ""
        self._thought = False

    def feed(self, text: str) -> list[Piece]:
        """Return the pieces of more text; what may be part of a tag is buffered."""
        if self._state == "text":
            return [TextDelta(text)]
        self._buffer += text
        if self._state == "start" and not self._begun():
            return []
        pieces = self._inside() if self._state == "thought" else []
        if self._state == "after":
            self._buffer = self._buffer.lstrip(_BLANK)
            self._state = "text" if self._buffer else "after"
        if self._state == "text" and self._buffer:
            pieces.append(TextDelta(self._buffer))
            self._buffer = ""
        return pieces

    def end(self) -> list[Piece]:
        """Return the buffered text."""
        rest, self._buffer = self._buffer, ""
        if not rest:
            return []
        return [ReasoningDelta(rest) if self._state == "thought" else TextDelta(rest)]

    def before_calls(self) -> list[Piece]:
        """Return the buffered text before tool calls, without blank text."""
        return [piece for piece in self.end() if not (isinstance(piece, TextDelta) and piece.text.isspace())]

    def _begun(self) -> bool:
        """Return True if the beginning of the answer is decided."""
        begins = self._buffer.lstrip(_BLANK)
        for tag, close in TAGS.items():
            if begins.startswith(tag):
                self._state, self._close, self._buffer = "thought", close, begins[len(tag) :]
                return True
        if any(tag.startswith(begins) for tag in TAGS):
            return False
        self._state = "text"
        return True

    def _inside(self) -> list[Piece]:
        """Return the reasoning that is certainly no part of a tag."""
        ready, closed, after = self._buffer.partition(self._close)
        if closed:
            self._state, self._buffer = "after", after
        else:
            cut = len(self._buffer) - _overlap(self._buffer, self._close)
            ready, self._buffer = self._buffer[:cut], self._buffer[cut:]
        if not self._thought:
            ready = ready.lstrip(_BLANK)
            self._thought = bool(ready)
        return [ReasoningDelta(ready)] if ready else []


def _overlap(text: str, tag: str) -> int:
    """Return how many of the last characters of `text` may begin `tag`."""
    return next((size for size in range(min(len(tag), len(text)), 0, -1) if tag.startswith(text[-size:])), 0)
