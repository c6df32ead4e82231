"""Ends what tests started when the test process ends, also when it is killed.

A guard process reads from a pipe whose other end only the test process holds: the end of the pipe is the end of the
test process, whatever the cause. Then the guard kills every process with the mark of the test process in its
environment, which all children inherit, and ends every process whose working directory is in a registered folder:
PostgreSQL, which runs as another user and overwrites its environment. It needs /proc, and does nothing without it.

Run as a program it is the guard: `python processes.py MARK`, with the folders on its standard input, one a line.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

NAME = "STARTED_BY_TESTS"
"""The environment variable that holds the mark."""
PROC = Path("/proc")
QUIT_SECONDS, KILL_SECONDS = 5.0, 10.0


class Guard:
    """The guard of this process. Whatever this process starts from here on has its mark."""

    def __init__(self) -> None:
        mark = f"{os.getpid()}-{secrets.token_hex(8)}"
        unmarked = {name: value for name, value in os.environ.items() if name != NAME}
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__, mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=unmarked,
            cwd="/",
            start_new_session=True,  # a signal to the group of the test process spares it
        )
        os.environ[NAME] = mark

    def watch(self, folder: Path) -> None:
        """Has processes that work in `folder` ended, and `folder` deleted, when this process is gone."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{folder}\n".encode())
        self._process.stdin.flush()


@cache
def guard() -> Guard:
    """The guard of this process, started by the first call."""
    return Guard()


def matching(check: Callable[[Path], bool]) -> list[int]:
    """The processes for whose folder in /proc `check` is true, without this one."""
    found = []
    for pid in filter(str.isdigit, os.listdir(PROC) if PROC.exists() else []):
        with suppress(OSError):  # it has ended, or is another user's
            if int(pid) != os.getpid() and check(PROC / pid):
                found.append(int(pid))
    return found


def end(check: Callable[[Path], bool], number: int, seconds: float) -> None:
    """Sends the signal to every process that matches, until there is none or the time is over."""
    until = time.monotonic() + seconds
    while (pids := matching(check)) and time.monotonic() < until:
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, number)
        time.sleep(0.05)


def main(mark: str) -> None:
    """Waits until the test process has ended, then ends what it left."""
    folders = [Path(line) for line in sys.stdin.read().splitlines()]
    line = f"{NAME}={mark}".encode()

    def marked(process: Path) -> bool:
        return line in (process / "environ").read_bytes().split(b"\0")

    def inside(process: Path) -> bool:
        where = (process / "cwd").readlink()
        return any(where.is_relative_to(folder) for folder in folders)

    end(marked, signal.SIGKILL, KILL_SECONDS)
    end(inside, signal.SIGQUIT, QUIT_SECONDS)  # PostgreSQL ends at once and frees its shared memory
    end(inside, signal.SIGKILL, KILL_SECONDS)
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1])
