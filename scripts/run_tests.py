"""Run pytest, and run once more what failed, alone, in a new process: `run_tests.py [PYTEST ARGUMENTS]`.

A test that fails in the first run and passes in the second does not fail the run; the last lines name it as flaky.
Nothing is repeated after more than ten failures, an error of collection or an interruption.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

MOST_FAILURES = 10
"""More failures than this are no chance."""
FAILED = 1
"""pytest's exit status when every test ran and some failed."""


def main(arguments: Sequence[str]) -> int:
    """pytest's exit status, or 0 when every test that failed passes in the second run."""
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
