"""Which files a command means, and which it leaves out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from recollect.cli.show import plain, short_path
from recollect.errors import InvalidInput
from recollect.reading import Skipped, walk

NAMED = 3


def found(
    roots: list[Path], exclude: list[str], hidden: bool, missing: bool
) -> tuple[list[Path], list[Skipped]]:
    """The files to read, each once, in order, and what is left out.

    Raises:
        InvalidInput: a path is not there, and `missing` ones are not expected.
    """
    files: dict[Path, None] = {}
    skipped: dict[Path, Skipped] = {}
    for root in roots:
        if not root.exists() and not missing:
            raise InvalidInput("PATH", f"{root} is not there; with --prune its chunks are deleted")
        for one in walk(root, exclude=exclude, hidden=hidden):
            if isinstance(one, Skipped):
                skipped[one.path] = one
            else:
                files[one] = None
    return list(files), list(skipped.values())


def left_out(skipped: Sequence[Skipped]) -> Iterator[str]:
    """A line for each reason, most frequent first, with some of the names."""
    for reason, count in Counter(one.reason for one in skipped).most_common():
        names = [plain(short_path(str(one.path))) for one in skipped if one.reason == reason]
        yield f"  left out, {reason}: {count} ({', '.join(names[:NAMED])}{', ...' if count > NAMED else ''})"
