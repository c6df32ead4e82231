"""Run pytest, and run once more what failed, alone, in a new process: `run_tests.py [--in-memory] [ARGUMENTS]`.

A test that fails in the first run and passes in the second does not fail the run; the last lines name it as flaky.
Nothing is repeated after more than ten failures, an error of collection or an interruption.

With `--in-memory`, temporary files lie in memory where there is room for them: no test waits for a disk.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

MOST_FAILURES = 10
"""More failures than this are no chance."""
FAILED = 1
"""pytest's exit status when every test ran and some failed."""
MEMORY = Path("/dev/shm")
"""A file system in memory."""
ROOM = 4 * 2**30
"""Bytes that it must have free: the gate writes about half of them."""


def main(arguments: Sequence[str]) -> int:
    """pytest's exit status, or 0 when every test that failed passes in the second run."""
    if "--in-memory" in arguments:
        with folder_in_memory() as folder:
            os.environ["TMPDIR"] = tempfile.tempdir = folder
            return run([argument for argument in arguments if argument != "--in-memory"])
    return run(arguments)


@contextmanager
def folder_in_memory() -> Iterator[str]:
    """A new folder for temporary files; the usual one where memory has no room or runs no programs."""
    runs = MEMORY.is_dir() and not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if runs and shutil.disk_usage(MEMORY).free >= ROOM:
        with tempfile.TemporaryDirectory(prefix="memoranda-tests-", dir=MEMORY) as folder:
            yield folder
    else:
        yield tempfile.gettempdir()


def run(arguments: Sequence[str]) -> int:
    """As `main`, with the arguments of pytest."""
    with tempfile.TemporaryDirectory(prefix="pytest-cache-") as cache:
        status = pytest(*arguments, "-o", f"cache_dir={cache}")
        failed = failures(Path(cache))
        if (
            status != FAILED
            or not 0 < len(failed) <= MOST_FAILURES
            or not all("::" in test for test in failed)
        ):
            return status
        print(f"\n{len(failed)} failed; running them once more, alone, in a new process", flush=True)
        repeated = ("-n", "0", "--last-failed", "--last-failed-no-failures", "none")
        status = pytest(*arguments, "-o", f"cache_dir={cache}", *repeated)
        if status == 0:
            print(f"flaky: {len(failed)} failed at first and passed when repeated; each is a defect:")
            print(*(f"  flaky {test}" for test in sorted(failed)), sep="\n", flush=True)
        return status


def pytest(*arguments: str) -> int:
    """The exit status of pytest in a process of its own."""
    return subprocess.run([sys.executable, "-m", "pytest", *arguments], check=False).returncode


def failures(cache: Path) -> list[str]:
    """Ids of what failed in the last run: tests, and files that could not be collected."""
    try:
        return list(json.loads((cache / "v" / "cache" / "lastfailed").read_text()))
    except FileNotFoundError:
        return []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
