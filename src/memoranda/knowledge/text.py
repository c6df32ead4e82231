"""Chunks put together again: overlaps once, gaps as white space."""

from __future__ import annotations

from collections.abc import Iterable


def joined(pieces: Iterable[tuple[int, str]]) -> str:
    """The text of chunks given as (start, content), in order of `start`: what two share stands once, and what none
    holds, which was white space, is as much of it. So a character stands where it did, counted from the first start."""
    held: list[str] = []
    end: int | None = None
    for start, content in pieces:
        if end is not None and start > end:
            held += ["\n" * min(2, start - end), " " * (start - end - 2)]
        held.append(content[max(0, (start if end is None else end) - start) :])
        end = max(end or 0, start + len(content))
    return "".join(held)
