"""The console's static files, read once, under a version that changes with their content.

The shell of a page names all modules that the page imports, so that a browser fetches them at once, and not one level
of imports after the other.
"""

from __future__ import annotations

import gzip
import posixpath
import re
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
MODULES = b"@modules"
"""Stands in the shell for the links to the modules of the page."""
MAIN = "app.js"
_PAGE = re.compile(r"views/(?!index\.)\w+\.js")
_IMPORT = re.compile(r'^(?:import|export)\b[^;]*?"(\.{1,2}/[^"]+)";', re.MULTILINE)


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
    digest = sha256()
    for path, body in contents.items():
        digest.update(f"{path}\0{len(body)}\0".encode() + body)
    version = digest.hexdigest()[:16]
    media = {path: MEDIA[path[path.rindex(".") :]] for path in contents}
    imports = {path: _imports(path, body) for path, body in contents.items() if path.endswith(".js")}
    pages = {
        path: path.removeprefix("views/").removesuffix(".js") for path in imports if _PAGE.fullmatch(path)
    }
    shells = {name: _closure(imports, MAIN, view) for view, name in pages.items()}
    shells[""] = _closure(imports, MAIN)
    return Assets(
        version,
        {name: _asset(_filled(shell, version, modules), MEDIA[".html"]) for name, modules in shells.items()},
        {path: _asset(body, media[path]) for path, body in contents.items()},
    )


def _imports(path: str, body: bytes) -> list[str]:
    """Return the paths of the modules that a module imports when it is loaded."""
    folder = posixpath.dirname(path)
    return [posixpath.normpath(posixpath.join(folder, named)) for named in _IMPORT.findall(body.decode())]


def _closure(imports: Mapping[str, list[str]], *modules: str) -> list[str]:
    """Return modules and all that they import, each once."""
    found: dict[str, None] = {}
    left = [*modules]
    while left:
        path = left.pop(0)
        if path not in found:
            found[path] = None
            left += imports[path]
    return [*found]


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
