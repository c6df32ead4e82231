"""The console's static files, read once, under a version that changes with their content.

Its modules are served in bundles. The shell of a page names both that the page needs, so that a browser fetches them at
once, and not one after the other.
"""

from __future__ import annotations

import gzip
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import NamedTuple

import msgspec

REGISTRY = "modules$"
"""What the modules are called in a bundle: an object of what each exports, by path."""
_PATH = r'"(\.{1,2}/[^"]+)"'
_IMPORT = re.compile(rf"^import \{{([^}}]*)\}} from {_PATH};$", re.MULTILINE)
_EXPORT_FROM = re.compile(rf"^export \{{([^}}]*)\}} from {_PATH};$", re.MULTILINE)
_EXPORT_LIST = re.compile(r"(?:^|(?<=[;}]))export\s*\{([^}]*)\}\s*;?", re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|const|class) ([\w$]+)", re.MULTILINE)
_LAZY = re.compile(rf"\bimport\({_PATH}\)")
_LEFT = re.compile(r"^[ \t]*(?:import\b(?!\()|export\b).*", re.MULTILINE)


class Module(NamedTuple):
    """A module: what it imports when it is loaded, names by path, its body, and its exports as JavaScript, by name."""

    path: str
    imports: Mapping[str, Sequence[str]]
    body: str
    exports: Mapping[str, str]
    lazy: Sequence[str]
    """The pages that it imports later."""


def bundles(sources: Mapping[str, str], main: str, pages: Sequence[str]) -> dict[str, str]:
    """Return a bundle of the main module and of all that several pages need, and one of each page, by path.

    Raises:
        ValueError: an import or export has a form that is not known here, names what is not there, or closes a circle.
    """
    modules = {path: parsed(path, text, frozenset(pages)) for path, text in sources.items()}
    needed = {page: closure(modules, page) for page in pages}
    times = Counter(path for paths in needed.values() for path in paths)
    shared = closure(modules, *(path for path, number in times.items() if number > 1), main)
    for module in modules.values():
        if module.lazy and module.path not in shared:
            raise ValueError(f"{module.path} imports a page later; only what pages share may do that")
    bundled = {main: f"export const {REGISTRY} = {{}};\n{_code(modules, shared)}"}
    for page in pages:
        own = [path for path in needed[page] if path not in shared]
        names = ", ".join(modules[page].exports)
        to_main = posixpath.relpath(main, posixpath.dirname(page))
        bundled[page] = (
            f'import {{ {REGISTRY} }} from "{to_main}";\n{_code(modules, own)}'
            f'export const {{ {names} }} = {REGISTRY}["{page}"];\n'
        )
    return bundled


def closure(modules: Mapping[str, Module], *paths: str) -> list[str]:
    """Return modules and all that they import, each once, after those that it imports itself.

    Raises:
        ValueError: something imported is not there, or a module imports itself by way of others.
    """
    found: dict[str, None] = {}

    def visit(path: str, trail: tuple[str, ...]) -> None:
        if path in trail:
            raise ValueError(f"{' imports '.join((*trail, path))}: take out what both need")
        if path not in modules:
            raise ValueError(f"{path} is imported, and is not there")
        if path not in found:
            for other, names in modules[path].imports.items():
                visit(other, (*trail, path))
                if missing := set(names) - modules[other].exports.keys():
                    raise ValueError(f"{path} imports {min(missing)} of {other}, which does not export it")
            found[path] = None

    for path in paths:
        visit(path, ())
    return [*found]


def parsed(path: str, text: str, pages: frozenset[str]) -> Module:
    """Return the module of a file; imports of `pages` at run time are of their bundles.

    Raises:
        ValueError: an import or export has a form that is not known here.
    """
    imports: dict[str, list[str]] = {}
    exports: dict[str, str] = {}
    later: list[str] = []

    def at(reference: str) -> str:
        return posixpath.normpath(posixpath.join(posixpath.dirname(path), reference))

    def imported(match: re.Match[str]) -> str:
        wanted = _names(match[1])
        imports.setdefault(at(match[2]), []).extend(name for name, _ in wanted)
        names = ", ".join(name if name == own else f"{name}: {own}" for name, own in wanted)
        return f'const {{ {names} }} = {REGISTRY}["{at(match[2])}"];'

    def passed_on(match: re.Match[str]) -> str:
        wanted = _names(match[1])
        imports.setdefault(at(match[2]), []).extend(name for name, _ in wanted)
        exports.update({own: f'{REGISTRY}["{at(match[2])}"].{name}' for name, own in wanted})
        return ""

    def listed(match: re.Match[str]) -> str:
        exports.update({own: name for name, own in _names(match[1])})
        return ""

    def declared(match: re.Match[str]) -> str:
        exports[match[2]] = match[2]
        return f"{match[1]} {match[2]}"

    def lazy(match: re.Match[str]) -> str:
        if at(match[1]) not in pages:  # a type in a comment
            return match[0]
        later.append(at(match[1]))
        return f'import("./{at(match[1])}")'

    body = _IMPORT.sub(imported, text)
    body = _EXPORT_FROM.sub(passed_on, body)
    body = _EXPORT_LIST.sub(listed, body)
    body = _LAZY.sub(lazy, _EXPORT.sub(declared, body))
    if left := _LEFT.search(body):
        raise ValueError(f"{path}: `{left[0].strip()}` is no import or export as the console writes them")
    return Module(path, imports, body, exports, later)


def _names(listed: str) -> list[tuple[str, str]]:
    """Return the names of `a, b as c`: what each is called there, and here."""
    parts = [part.partition(" as ") for part in listed.split(",") if part.strip()]
    return [(name.strip(), (own or name).strip()) for name, _, own in parts]


def _code(modules: Mapping[str, Module], paths: Iterable[str]) -> str:
    def wrapped(module: Module) -> str:
        returned = ", ".join(name if name == js else f"{name}: {js}" for name, js in module.exports.items())
        return f'{REGISTRY}["{module.path}"] = (() => {{\n{module.body}\nreturn {{ {returned} }};\n}})();\n'

    return "".join(wrapped(modules[path]) for path in paths)


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
