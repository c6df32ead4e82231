"""Chunks put together again: overlaps once, gaps as a line."""

from __future__ import annotations

from collections.abc import Iterable


def joined(pieces: Iterable[tuple[int, str]]) -> str:
    """The text of chunks given as (start, content), in order of `start`: what two share stands once, and what none
    holds, which was white space, is one line break."""
    held: list[str] = []
    end: int | None = None
    for start, content in pieces:
        if end is None or start == end:
            held.append(content)
        elif start > end:
            held += ["\n", content]
        else:
            held.append(content[end - start :])
        end = max(end or 0, start + len(content))
    return "".join(held)
