"""The console's static files, read once, under a version that changes with their content."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

MEDIA = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
"""The files that are served, by the end of their name."""
SHELL = "index.html"
VERSION = b"@version"
"""Stands in the shell for the version of the files, which is part of their addresses."""


class Asset(msgspec.Struct, frozen=True):
    """One file: its bytes, the same compressed, its entity tag and media type."""

    body: bytes
    packed: bytes
    tag: str
    media: str


class Assets(msgspec.Struct, frozen=True):
    """The shell, and the files by their path in the folder; `version` is a digest of them all."""

    version: str
    shell: Asset
    files: Mapping[str, Asset]


@cache
def assets() -> Assets:
    """Return the console's files."""
    contents = {
        path: entry.read_bytes()
        for path, entry in sorted(_walk(files("memoranda.server").joinpath("console")))
    }
    shell = contents.pop(SHELL)
    digest = sha256()
    for path, body in contents.items():
        digest.update(f"{path}\0{len(body)}\0".encode() + body)
    version = digest.hexdigest()[:16]
    media = {path: MEDIA[path[path.rindex(".") :]] for path in contents}
    return Assets(
        version,
        _asset(shell.replace(VERSION, version.encode()), MEDIA[".html"]),
        {path: _asset(body, media[path]) for path, body in contents.items()},
    )


def _walk(folder: Traversable, before: str = "") -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{before}{entry.name}/")
        elif any(entry.name.endswith(end) for end in MEDIA):
            yield before + entry.name, entry


def _asset(body: bytes, media: str) -> Asset:
    return Asset(body, gzip.compress(body, mtime=0), f'"{sha256(body).hexdigest()[:32]}"', media)
