"""Fenced blocks of code in Markdown. No I/O."""

from __future__ import annotations

import re
from itertools import zip_longest

from memoranda.text.regex import regex

_FENCE = regex(r"^[ \t]{0,3}(?:`{3,}|~{3,})[ \t]*([^\n`]*)$", re.MULTILINE)


def code_blocks(text: str) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each block, ascending, its fences included.

    A part of a document may begin or end inside a block. It begins inside one if its first fence names no language,
    and is its only one or is followed by one that does where it would be closed.
    """
    fences = list(_FENCE.finditer(text))
    named = [bool(fence[1].strip()) for fence in fences]
    inside = bool(fences) and not named[0] and (len(fences) == 1 or any(named[1::2]))
    starts = (
        [0, *(fence.start() for fence in fences[1::2])] if inside else [one.start() for one in fences[::2]]
    )
    stops = [fence.end() for fence in fences[not inside :: 2]]
    return list(zip_longest(starts, stops, fillvalue=len(text)))[: len(starts)]
