"""The house itself: imports run downward, no circle, no import inside a function without a reason."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "memoranda"

FLOORS = [
    {"__main__"},
    {"cli"},
    {"__init__", "client", "evals", "server"},
    {"app"},
    {"document_qa", "responses"},
    {"contexts", "facts"},
    {"knowledge", "memories", "sessions"},
    {"store"},
    {"indexes"},
    {"providers", "readers", "storage"},
    {"concurrency", "config", "filters", "text", "validation"},
    {"clock", "errors", "types"},
]
"""Rooms by floor, the highest first. A room imports from its own floor or below, never from above."""

LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}


def room(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def modules() -> dict[str, ast.Module]:
    found = {}
    for path in SOURCE.rglob("*.py"):
        name = ".".join(("memoranda", *path.relative_to(SOURCE).with_suffix("").parts))
        found[name.removesuffix(".__init__")] = ast.parse(path.read_text("utf-8"))
    return found


def imports(tree: ast.Module, known: set[str]) -> set[str]:
    """Modules of ours that are imported anywhere in the file, inside functions too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "memoranda"}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "memoranda":
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in known else node.module)
    return found


TREES = modules()
GRAPH = {name: imports(tree, set(TREES)) for name, tree in TREES.items()}


def test_every_room_has_a_floor() -> None:
    assert {room(name) for name in TREES} <= LEVEL.keys()


def test_imports_run_downward() -> None:
    upward = [
        f"{name} -> {other}"
        for name, others in GRAPH.items()
        for other in others
        if room(other) != "__init__" and LEVEL[room(other)] < LEVEL[room(name)]
    ]
    assert upward == []


def test_no_circle_between_modules() -> None:
    state: dict[str, int] = defaultdict(int)
    trail: list[str] = []

    def walk(name: str) -> None:
        state[name] = 1
        trail.append(name)
        for other in GRAPH.get(name, ()):
            assert state[other] != 1 or other == name, f"circle: {' -> '.join([*trail, other])}"
            if state[other] == 0:
                walk(other)
        trail.pop()
        state[name] = 2

    for name in TREES:
        if state[name] == 0:
            walk(name)


def test_modules_stay_small() -> None:
    long = {
        path.relative_to(SOURCE).as_posix(): lines
        for path in SOURCE.rglob("*.py")
        if (lines := len(path.read_text("utf-8").splitlines())) > 620
    }
    assert long == {}
