"""Reasoning that a model writes into its answer, as `<think>...</think>`, told apart from the answer. No I/O."""

from __future__ import annotations

from typing import Literal

from memoranda.providers.chat.base import Piece, ReasoningDelta, TextDelta

TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}
_BLANK = " \r\n\t"


class Thinking:
    """Splits an answer that begins with a tag of `TAGS`; a tag further on is text. Blanks around the reasoning are left
    out."""

    def __init__(self) -> None:
        self._held = ""
        self._state: Literal["start", "thought", "after", "text"] = "start"
        self._close = ""
        self._thought = False

    def feed(self, text: str) -> list[Piece]:
        """The pieces of more text; what may be part of a tag is held back."""
        if self._state == "text":
            return [TextDelta(text)]
        self._held += text
        if self._state == "start" and not self._begun():
            return []
        found = self._inside() if self._state == "thought" else []
        if self._state == "after":
            self._held = self._held.lstrip(_BLANK)
            self._state = "text" if self._held else "after"
        if self._state == "text" and self._held:
            found.append(TextDelta(self._held))
            self._held = ""
        return found

    def end(self) -> list[Piece]:
        """What was held back."""
        held, self._held = self._held, ""
        if not held:
            return []
        return [ReasoningDelta(held) if self._state == "thought" else TextDelta(held)]

    def before_calls(self) -> list[Piece]:
        """What was held back, now that tool calls follow; blank text before them says nothing."""
        return [piece for piece in self.end() if not (isinstance(piece, TextDelta) and piece.text.isspace())]

    def _begun(self) -> bool:
        """Whether it is decided how the answer begins."""
        begins = self._held.lstrip(_BLANK)
        for tag, close in TAGS.items():
            if begins.startswith(tag):
                self._state, self._close, self._held = "thought", close, begins[len(tag) :]
                return True
        if any(tag.startswith(begins) for tag in TAGS):
            return False
        self._state = "text"
        return True

    def _inside(self) -> list[Piece]:
        """The reasoning as far as it is known to be no tag."""
        ready, closed, after = self._held.partition(self._close)
        if closed:
            self._state, self._held = "after", after
        else:
            cut = len(self._held) - _overlap(self._held, self._close)
            ready, self._held = self._held[:cut], self._held[cut:]
        if not self._thought:
            ready = ready.lstrip(_BLANK)
            self._thought = bool(ready)
        return [ReasoningDelta(ready)] if ready else []


def _overlap(text: str, tag: str) -> int:
    """How many of the last characters of `text` may begin `tag`."""
    return next((size for size in range(min(len(tag), len(text)), 0, -1) if tag.startswith(text[-size:])), 0)
