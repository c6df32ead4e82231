"""Named SQL: `queries/*.sql` holds blocks that begin with `-- name: ...`."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)[^\n]*\n", re.MULTILINE)


@cache
def statements() -> dict[str, str]:
    """Every named statement of the house, by name.

    Raises:
        ValueError: two blocks share a name.
    """
    found: dict[str, str] = {}
    for entry in sorted(files("recollect.db").joinpath("queries").iterdir(), key=lambda path: path.name):
        if not entry.name.endswith(".sql"):
            continue
        parts = _NAME.split(entry.read_text("utf-8"))
        for name, body in zip(parts[1::2], parts[2::2], strict=True):
            if name in found:
                raise ValueError(f"{entry.name}: the statement {name} is named twice")
            found[name] = body.strip().rstrip(";")
    return found


def migrations(dialect: str) -> list[tuple[int, str]]:
    """The schema's history for one dialect: (version, script), ascending."""
    folder = files("recollect.db").joinpath("migrations").joinpath(dialect)
    scripts = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name.split("_", 1)[0]), entry.read_text("utf-8")) for entry in scripts)
