"""Joins chunks to a text: overlaps once, gaps as white space."""

from __future__ import annotations

from collections.abc import Iterable


def joined(pieces: Iterable[tuple[int, str]]) -> str:
    """Return the text of chunks given as (start, content), in order of `start`: overlaps appear once, and gaps, which
    were white space, keep their length. So every character keeps its offset from the first start."""
    parts: list[str] = []
    end: int | None = None
    for start, content in pieces:
        if end is not None and start > end:
            parts += ["\n" * min(2, start - end), " " * (start - end - 2)]
        parts.append(content[max(0, (start if end is None else end) - start) :])
        end = max(end or 0, start + len(content))
    return "".join(parts)
