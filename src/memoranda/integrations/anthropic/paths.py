"""Paths below /memories, as the memory tool names them."""

from __future__ import annotations

from collections.abc import Iterator

ROOT = "/memories"
MAX_CHARS = 256
"""Characters of a path."""


class PathError(Exception):
    """A path that names nothing below /memories; the message is for the model."""


def resolved(path: str) -> str:
    """The path without `.`, `..`, doubled and last slashes.

    Raises:
        PathError: it does not begin with /memories, leaves it on its way, or is no name.
    """
    if not path.startswith(ROOT):
        raise PathError(f"Path must start with {ROOT}, got: {path}")
    parts: list[str] = []
    for part in path[len(ROOT) :].split("/"):
        if part == ".." and not parts:
            raise PathError(f"Path {path} would escape {ROOT} directory")
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    clean = "/".join((ROOT, *parts))
    if len(clean) > MAX_CHARS:
        raise PathError(f"Path is longer than {MAX_CHARS} characters: {path[:80]}...")
    if "\x00" in clean:
        raise PathError("Path holds a NUL character; remove it")
    return clean


def folder_of(path: str) -> str:
    """The folder that a resolved path lies in."""
    return path.rpartition("/")[0]


def folders_above(path: str) -> Iterator[str]:
    """The folders that a resolved path lies in, from the one below /memories downwards."""
    parts = path.split("/")
    for end in range(3, len(parts)):
        yield "/".join(parts[:end])
