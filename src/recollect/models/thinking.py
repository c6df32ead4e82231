"""Reasoning that a model writes into its answer, as `<think>...</think>`, told apart from the answer. No I/O."""

from __future__ import annotations

from recollect.models.base import Piece, ReasoningDelta, TextDelta

TAGS = {"<think>": "</think>", "<thinking>": "</thinking>"}


class Thinking:
    """Splits an answer that begins with a tag of `TAGS`. A tag further on is text."""

    def __init__(self) -> None:
        self._held = ""
        self._until: str | None = None
        self._text = False
        self._bare = False

    def feed(self, text: str) -> list[Piece]:
        """The pieces of more text; what may be part of a tag is held back."""
        if self._text:
            return [TextDelta(text)]
        self._held += text
        if self._until is None and not self._opened():
            return []
        return self._inside() if self._until else self._outside()

    def end(self) -> list[Piece]:
        """What was held back."""
        held, self._held = self._held, ""
        if not held:
            return []
        return [ReasoningDelta(held) if self._until else TextDelta(held)]

    def before_calls(self) -> list[Piece]:
        """What was held back, now that tool calls follow; blank text before them says nothing."""
        return [piece for piece in self.end() if not (isinstance(piece, TextDelta) and piece.text.isspace())]

    def _opened(self) -> bool:
        """Whether it is decided how the answer begins."""
        begins = self._held.lstrip()
        for tag, close in TAGS.items():
            if begins.startswith(tag):
                self._until, self._held = close, begins[len(tag) :].lstrip("\n")
                return True
        return not any(tag.startswith(begins) for tag in TAGS)

    def _inside(self) -> list[Piece]:
        assert self._until is not None
        before, closed, after = self._held.partition(self._until)
        if closed:
            self._until, self._bare, self._held = None, True, after
            return [*([ReasoningDelta(before)] if before else []), *self._outside()]
        kept = _overlap(self._held, self._until)
        self._held, ready = self._held[len(self._held) - kept :], self._held[: len(self._held) - kept]
        return [ReasoningDelta(ready)] if ready else []

    def _outside(self) -> list[Piece]:
        """The answer itself; the blank lines between reasoning and answer are left out."""
        text = self._held.lstrip("\n\r ") if self._bare else self._held
        self._held = ""
        self._text = bool(text)
        return [TextDelta(text)] if text else []


def _overlap(text: str, tag: str) -> int:
    """How many of the last characters of `text` may begin `tag`."""
    return next((size for size in range(min(len(tag), len(text)), 0, -1) if tag.startswith(text[-size:])), 0)
