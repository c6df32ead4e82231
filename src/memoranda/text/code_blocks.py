"""Fenced blocks of code in Markdown. No I/O."""

from __future__ import annotations

import re
from itertools import zip_longest

from memoranda.text.regex import regex

_FENCE = regex(r"^[ \t]{0,3}`{3,}+[ \t]*+([^\n`]*+)$", re.MULTILINE)


def code_blocks(text: str) -> list[tuple[int, int]]:
    """Return the characters [start, end) of each block, ascending, its fences of backquotes included.

    A part of a document may start or end inside a block. A start inside is assumed if the first fence names no language
    and either is the only fence and below a line of text, or a fence with a language stands where it would be closed.
    """
    fences = list(_FENCE.finditer(text))
    named = [bool(fence[1].strip()) for fence in fences]
    inside = (
        bool(fences) and not named[0] and (any(named[1::2]) if fences[1:] else _is_below(text, fences[0]))
    )
    starts = (
        [0, *(fence.start() for fence in fences[1::2])] if inside else [one.start() for one in fences[::2]]
    )
    stops = [fence.end() for fence in fences[not inside :: 2]]
    return list(zip_longest(starts, stops, fillvalue=len(text)))[: len(starts)]


def _is_below(text: str, fence: re.Match[str]) -> bool:
    """Return True if the line before a fence is not blank."""
    return bool(text[: fence.start()].removesuffix("\n").rpartition("\n")[2].strip())
