"""Joins hits that are neighbours in a file to one part of it. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memoranda.knowledge.text import joined

LONGEST = 512
"""The most tokens of chunks that are joined. A longer passage takes the place of better ones in a budget of text."""


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Chunks `first` to `last` of a file, `tokens` together, as one text. `file` names the file in its store. `heading`
    and `header` are those of the first chunk."""

    file: tuple[str, int]
    first: int
    last: int
    tokens: int
    text: str
    start: int
    end: int
    page: int | None
    last_page: int | None
    heading: str | None
    header: str | None


def neighbouring(parts: Sequence[Part]) -> list[list[int]]:
    """Return the places of ranked parts in groups, in their order. A part joins those right before it in the ranking
    if it continues or overlaps them in their file; so no part goes before one that ranks better."""
    groups: list[list[int]] = []
    last: Part | None = None
    for place, part in enumerate(parts):
        if last is not None and _neighbours(last, part):
            last = merged([last, part])
            groups[-1].append(place)
        else:
            last = part
            groups.append([place])
    return groups


def _neighbours(one: Part, other: Part) -> bool:
    if one.file != other.file or one.first > other.last + 1 or other.first > one.last + 1:
        return False
    inside = one.first <= other.first and other.last <= one.last
    return inside or one.tokens + other.tokens <= LONGEST


def merged(parts: Sequence[Part]) -> Part:
    """Return neighbouring parts of a file as one; what they overlap in appears once."""
    ordered = sorted(parts, key=lambda part: (part.first, -part.last))
    end = max(ordered, key=lambda part: part.last)
    return msgspec.structs.replace(
        ordered[0],
        last=end.last,
        tokens=sum(part.tokens for part in ordered),
        text=joined((part.start, part.text) for part in ordered),
        end=end.end,
        last_page=end.last_page,
    )
