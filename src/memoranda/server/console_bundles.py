"""The modules of the console in a few files: one of what its pages share, and one of each page, so that a browser makes
two requests for them and not thirty. The files in the package stay what they are; nothing is made before a start.

A module becomes a function that is called once, after those that it imports, and returns what it exports.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

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
