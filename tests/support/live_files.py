"""Read the files of a data folder that this process has open, from another process, which lasts as long as this one.

Closing any descriptor of a file drops all POSIX locks that the process holds on that file
(https://www.sqlite.org/howtocorrupt.html, section 2.2). A test that reads a live database with `read_bytes`, copies it,
or opens it with another SQLite library than the product's takes the product's locks away: the second library then
takes itself for the last connection, resets the log and truncates shared memory that the first has mapped.
"""

from __future__ import annotations

import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

Rows = list[tuple[Any, ...]]
COPIES = 200
"""Attempts to copy a folder while its files come and go."""


def holding(folder: Path, *needles: bytes) -> set[tuple[str, bytes]]:
    """The files below `folder`, as relative paths, each with the needles that its bytes hold."""
    found: set[tuple[str, bytes]] = _elsewhere("holding", folder, needles)
    return found


def select(database: Path, *statements: str) -> list[Rows]:
    """The rows of each statement. The database is opened read-only."""
    rows: list[Rows] = _elsewhere("select", database, statements)
    return rows


def copy(folder: Path, target: Path) -> None:
    """Copy a folder, as a kill would leave it, to `target`, which must not exist.

    Files may come, go and change meanwhile: a copy that was made of several moments shows a folder that never was, and
    is made again.

    Raises:
        shutil.Error: no attempt was undisturbed.
    """
    _elsewhere("copy", folder, target.absolute())


# --- the other process -----------------------------------------------------------------------------


def _holding(folder: Path, needles: tuple[bytes, ...]) -> set[tuple[str, bytes]]:
    found = set()
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            with suppress(FileNotFoundError):  # an index replaced the file meanwhile
                data = path.read_bytes()
                name = path.relative_to(folder).as_posix()
                found |= {(name, needle) for needle in needles if needle in data}
    return found


def _select(database: Path, statements: tuple[str, ...]) -> list[Rows]:
    with closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True, timeout=30)) as raw:
        return [raw.execute(statement).fetchall() for statement in statements]


def _copy(folder: Path, target: Path) -> None:
    for left in reversed(range(COPIES)):
        before = _state(folder)
        try:
            shutil.copytree(folder, target)
            if _state(folder) == before:
                return
            error = shutil.Error(f"{folder} changed during each copy")
        except shutil.Error as exc:
            error = exc
        if not left:
            raise error
        shutil.rmtree(target)
        time.sleep(0.05)


def _state(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Inode, size and time of change of each file."""
    found = {}
    for parent, _, names in os.walk(folder):
        for path in (os.path.join(parent, name) for name in names):
            with suppress(FileNotFoundError):
                stat = os.stat(path)
                found[path] = (stat.st_ino, stat.st_size, stat.st_mtime_ns)
    return found


CALLS = {"holding": _holding, "select": _select, "copy": _copy}


_asking = Lock()


@cache
def _other() -> subprocess.Popen[bytes]:
    """The other process. It ends with this one, as its input does."""
    command = [sys.executable, "-I", __file__]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/")


def _elsewhere(name: str, path: Path, *arguments: Any) -> Any:
    call = (name, path.absolute(), *arguments)
    with _asking:
        other = _other()
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write(pickle.dumps(call))
        other.stdin.flush()
        error, answer = pickle.load(other.stdout)
    if error is not None:
        raise error
    return answer


def main() -> None:
    """Answer the calls on standard input, as long as there are any."""
    while True:
        try:
            name, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        error = answer = None
        try:
            answer = CALLS[name](*arguments)
        except Exception as exc:
            error = exc
        sys.stdout.buffer.write(pickle.dumps((error, answer)))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
