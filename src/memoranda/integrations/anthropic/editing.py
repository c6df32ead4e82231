"""How the memory tool shows and edits text files: functions on strings.

Lines end with a line feed, and are counted from 1.
"""

from __future__ import annotations

from collections.abc import Sequence

MAX_LINES = 999_999
NUMBER_WIDTH = len(str(MAX_LINES))
UNITS = "BKMG"


class EditError(Exception):
    """An edit that cannot be done; the message is for the model."""


def numbered(lines: Sequence[str], first: int) -> str:
    """Lines with their numbers, from the number `first` on."""
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def lines_of(text: str, view_range: Sequence[int] | None, path: str) -> str:
    """The numbered lines of a text; of `view_range`, its first and last line, where -1 is the end.

    Raises:
        EditError: the text has too many lines.
    """
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise EditError(f"File {path} exceeds maximum line limit of {MAX_LINES:,} lines.")
    if not view_range or len(view_range) != 2:
        return numbered(lines, 1)
    start = max(1, view_range[0]) - 1
    end = len(lines) if view_range[1] == -1 else view_range[1]
    return numbered(lines[start:end], start + 1)


def replaced(text: str, old: str, new: str, path: str) -> tuple[str, str]:
    """The text with `new` for its one `old`, and a view of the lines around it.

    Raises:
        EditError: `old` is not in the text, or more than once.
    """
    count = text.count(old)
    if count == 0:
        raise EditError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
    if count > 1:
        places = ", ".join(str(text.count("\n", 0, at) + 1) for at in _places(text, old))
        raise EditError(
            f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {places}. "
            "Please ensure it is unique"
        )
    changed = text.replace(old, new)
    line = text.count("\n", 0, text.find(old))
    start = max(0, line - 2)
    return changed, numbered(changed.split("\n")[start : line + 3], start + 1)


def inserted(text: str, line: int, added: str) -> str:
    """The text with `added` after a line; 0 is its beginning.

    Raises:
        EditError: there is no such line.
    """
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    if not 0 <= line <= len(lines):
        raise EditError(
            f"Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
        )
    lines.insert(line, added.rstrip("\n"))
    joined = "\n".join(lines)
    return joined if joined.endswith("\n") else f"{joined}\n"


def size(count: int) -> str:
    """A number of bytes for readers: `0B`, `1.5K`."""
    power = min(max(count.bit_length() - 1, 0) // 10, len(UNITS) - 1)
    value = count / 1024**power
    return f"{int(value)}{UNITS[power]}" if value == int(value) else f"{value:.1f}{UNITS[power]}"


def _places(text: str, part: str) -> list[int]:
    """The positions of `part` in the text, overlapping ones too."""
    positions, at = [], text.find(part)
    while at != -1:
        positions.append(at)
        at = text.find(part, at + 1)
    return positions
