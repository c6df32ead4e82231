"""The structure of the code is the one in docs/architecture.md: layers of packages, no cycle, few files at the top."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "memoranda"
LARGEST_FILE = 600
"""Lines."""
TOP_LEVEL_FILES = 8
"""Beside `__init__.py`."""
SHARED_LAYERS = 2
"""The layers that every package may use, which the picture leaves out."""
SHARED = {"core", "_core", "store", "_store", "jobs", "_jobs"}
"""The names under which features have the objects that they share."""
REGISTRIES = {"kinds", "cascades", "edits", "erasers", "derived", "writers", "caches"}
"""The attributes of these objects that have what features declare."""
FORMER_NAMES = {
    "Librarian", "Upkeep", "Ledger", "Telling", "Place", "Asked", "Said", "Found", "Known", "Gone",
    "following", "joining", "rolling", "closing", "keeping", "gathering", "rereading", "telling",
}  # fmt: skip
"""Names of classes and modules that say little: several had the same one, or they were verbs."""
CHANGES = {"append", "extend", "insert", "add", "update", "setdefault", "listen"}


def layers() -> dict[str, int]:
    """The layer of each package and top-level module, from the table in docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", text, re.MULTILINE)
    return {package: int(layer) for layer, packages in rows for package in re.findall(r"`(\w+)`", packages)}


def arrows() -> set[tuple[str, str]]:
    """The imports between packages that the picture in docs/architecture.md draws."""
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    return set(re.findall(r"^ +(\w+) --> (\w+)$", text, re.MULTILINE))


def package_of(module: str) -> str:
    """The package of a module, or a top-level module itself: `store` for `memoranda.store.rows`."""
    return ".".join(module.split(".")[1:2]) or "__init__"


@cache
def modules() -> dict[str, ast.Module]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = ".".join(("memoranda", *path.relative_to(SOURCE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = ast.parse(path.read_text("utf-8"))
    return found


def imports(tree: ast.Module, known: set[str]) -> set[str]:
    """The product's modules that a file imports anywhere, also inside functions and for annotations."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "memoranda"}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "memoranda":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else node.module)
    return found


@cache
def graph() -> dict[str, set[str]]:
    """The modules that each module imports."""
    trees = modules()
    return {name: imports(tree, set(trees)) for name, tree in trees.items()}


LAYERS = layers()


def test_every_package_has_a_layer() -> None:
    assert {package_of(name) for name in modules()} == LAYERS.keys()
    assert sorted(set(LAYERS.values())) == list(range(1, 13))


def test_a_package_imports_lower_layers_only() -> None:
    """Which also means that packages form no cycle. `memoranda` itself is a facade that any layer above it may use."""
    wrong = [
        f"{name} -> {other}"
        for name, others in graph().items()
        for other in others
        if package_of(other) not in ("__init__", package_of(name))
        and LAYERS[package_of(other)] >= LAYERS[package_of(name)]
    ]
    assert wrong == []


def test_the_picture_shows_the_imports_between_packages() -> None:
    """Every arrow is an import, every import can be reached over arrows, and no arrow repeats a longer way."""
    pairs = {(package_of(name), package_of(other)) for name, others in graph().items() for other in others}
    drawn = {(a, b) for a, b in pairs if a != b and LAYERS[b] > SHARED_LAYERS and b != "__init__"}
    below: dict[str, set[str]] = {}
    for package in sorted(LAYERS, key=lambda name: LAYERS[name]):
        direct = {b for a, b in arrows() if a == package}
        below[package] = direct.union(*(below[other] for other in direct))
        repeated = {other for other in direct if any(other in below[between] for between in direct)}
        assert not repeated, f"{package} --> {repeated} is already reached over another arrow"
    assert {(a, b) for a, b in arrows() if b != "__init__"} <= drawn
    assert {(a, b) for a, b in drawn if b not in below[a]} == set()


def test_no_cycle_between_modules() -> None:
    state: dict[str, int] = defaultdict(int)
    trail: list[str] = []

    def walk(name: str) -> None:
        state[name] = 1
        trail.append(name)
        for other in graph().get(name, ()):
            assert state[other] != 1 or other == name, f"cycle: {' -> '.join([*trail, other])}"
            if state[other] == 0:
                walk(other)
        trail.pop()
        state[name] = 2

    for name in modules():
        if state[name] == 0:
            walk(name)


def names_of(node: ast.expr) -> list[str]:
    """The names of an attribute and of what it is an attribute of, the last one first."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return [*names, node.id] if isinstance(node, ast.Name) else names


def assigned(node: ast.AST) -> Iterator[ast.expr]:
    """What a statement assigns to, in it or as a whole."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        for part in target.elts if isinstance(target, ast.Tuple) else [target]:
            yield part.value if isinstance(part, ast.Subscript) else part


def added_to(node: ast.AST) -> Iterator[ast.expr]:
    """What a call such as `core.erasers.append` adds to."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
        yield node.func.value


def test_features_declare_what_they_add() -> None:
    """Outside of the store, nobody assigns to attributes of the core, the store or the jobs, or adds to what features
    declare; within it, only `install` registers. Counters are counted anywhere, and a measurement may change the
    library that it opens."""
    hooks, registering = [], set()
    for module, tree in modules().items():
        for node in ast.walk(tree):
            targets = [names_of(target) for target in assigned(node)]
            targets = [names for names in targets if SHARED & {*names[1:]} and names[0] != "tally"]
            added = [names_of(target) for target in added_to(node)]
            added = [names for names in added if SHARED & {*names[1:]} and names[0] in REGISTRIES]
            if added:
                registering.add(module)
            if package_of(module) != "store" and not module.startswith("memoranda.app.evals."):
                hooks += [f"{module}: {'.'.join(reversed(names))}" for names in (*targets, *added)]
    assert hooks == []
    assert registering == {"memoranda.store.feature"}


def test_few_files_at_the_top() -> None:
    names = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py"}
    assert len(names) <= TOP_LEVEL_FILES, names


def test_files_stay_small() -> None:
    lines = {path.relative_to(SOURCE): path.read_text("utf-8").count("\n") for path in SOURCE.rglob("*.py")}
    assert {path: count for path, count in lines.items() if count > LARGEST_FILE} == {}


def test_names_say_what_is_in_them() -> None:
    back = {name for name in modules() if name.rsplit(".", 1)[1:] and name.rsplit(".", 1)[1] in FORMER_NAMES}
    for module, tree in modules().items():
        for node in ast.walk(tree):
            named = [node.name] if isinstance(node, ast.ClassDef) else []
            named += [target.id for target in assigned(node) if isinstance(target, ast.Name)]
            back |= {f"{module}.{name}" for name in named if name[0].isupper() and name in FORMER_NAMES}
    assert back == set()


def test_the_earlier_name_is_in_the_changelog_only() -> None:
    earlier = "recol" + "lect"
    command = ["git", "grep", "--ignore-case", "--name-only", earlier]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.stdout.split() == ["CHANGELOG.md"], found.stderr


def test_no_link_is_kept_in_the_repository() -> None:
    """A link names a place of the machine on which it was made."""
    listed = subprocess.run(
        ["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [line for line in listed.stdout.splitlines() if line.startswith("120000")] == []
