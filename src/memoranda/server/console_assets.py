"""The console's static files, read once, under a version that changes with their content.

Its modules are served in bundles. The shell of a page names both that the page needs, so that a browser fetches them at
once, and not one after the other.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

from memoranda.server.console_bundles import bundles

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
MODULES = b"@modules"
"""Stands in the shell for the links to the modules of the page."""
MAIN = "app.js"
_PAGE = re.compile(r"views/(?!index\.)\w+\.js")


class Asset(msgspec.Struct, frozen=True):
    """One file: its bytes, the same compressed, its entity tag and media type."""

    body: bytes
    packed: bytes
    tag: str
    media: str


class Assets(msgspec.Struct, frozen=True):
    """The shells by the page that the address names, and the files by their path in the folder; `version` is a digest
    of them all."""

    version: str
    shells: Mapping[str, Asset]
    files: Mapping[str, Asset]

    def shell(self, path: str) -> Asset:
        """Return the shell of the page at a path; an address without a page has that of the main module."""
        return self.shells.get(path.partition("/")[0], self.shells[""])


@cache
def assets() -> Assets:
    """Return the console's files."""
    contents = {
        path: entry.read_bytes()
        for path, entry in sorted(_walk(files("memoranda.server").joinpath("console")))
    }
    shell = contents.pop(SHELL)
    scripts = {path: body.decode() for path, body in contents.items() if path.endswith(".js")}
    pages = {_name(path): path for path in scripts if _PAGE.fullmatch(path)}
    bundled = bundles(scripts, MAIN, list(pages.values()))
    served = {path: body for path, body in contents.items() if path not in scripts}
    served |= {path: text.encode() for path, text in bundled.items()}
    digest = sha256()
    for path, body in sorted(served.items()):
        digest.update(f"{path}\0{len(body)}\0".encode() + body)
    version = digest.hexdigest()[:16]
    shells = {name: [MAIN, path] for name, path in pages.items()} | {"": [MAIN]}
    return Assets(
        version,
        {name: _asset(_filled(shell, version, modules), MEDIA[".html"]) for name, modules in shells.items()},
        {path: _asset(body, MEDIA[path[path.rindex(".") :]]) for path, body in served.items()},
    )


def _name(path: str) -> str:
    return path.removeprefix("views/").removesuffix(".js")


def _filled(shell: bytes, version: str, modules: list[str]) -> bytes:
    links = [f'<link rel="modulepreload" href="/console/assets/{version}/{path}">' for path in modules]
    return shell.replace(MODULES, "\n".join(links).encode()).replace(VERSION, version.encode())


def _walk(folder: Traversable, before: str = "") -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{before}{entry.name}/")
        elif any(entry.name.endswith(end) for end in MEDIA):
            yield before + entry.name, entry


def _asset(body: bytes, media: str) -> Asset:
    return Asset(body, gzip.compress(body, mtime=0), f'"{sha256(body).hexdigest()[:32]}"', media)
