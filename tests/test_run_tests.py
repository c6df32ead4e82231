"""`scripts/run_tests.py`: what failed once is repeated alone, and named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "scripts" / "run_tests.py"
PASSES = "def test_passes():\n    pass\n"
FAILS = "def test_fails():\n    assert False\n"
ONCE = """
import os, pathlib, signal

def first_time(name):
    marker = pathlib.Path(__file__).with_name(name)
    seen = marker.exists()
    marker.touch()
    return not seen

def test_fails_once():
    assert not first_time("failed")

def test_kills_its_worker_once():
    if first_time("killed"):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def run(folder: Path, source: str, workers: int = 0) -> subprocess.CompletedProcess[str]:
    """The script over one file of tests; without workers, its first run is one process."""
    (folder / "test_sample.py").write_text(source)
    command = [sys.executable, str(SCRIPT), "-p", "xdist", "-n", str(workers), "-q", "test_sample.py"]
    plain = {
        **os.environ,
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }  # plugins that it does not need cost seconds
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env=plain, timeout=300, check=False
    )


def test_a_failure_by_chance_is_named_and_does_not_fail_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, PASSES + ONCE, workers=2)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-2:] == [
        "  flaky test_sample.py::test_fails_once",
        "  flaky test_sample.py::test_kills_its_worker_once",
    ]


def test_a_failure_that_repeats_fails_the_run(tmp_path: Path) -> None:
    done = run(tmp_path, PASSES + ONCE + FAILS, workers=2)
    assert done.returncode == 1
    assert "running them once more" in done.stdout
    assert "flaky" not in done.stdout


@pytest.mark.parametrize(
    ("source", "status"),
    [
        pytest.param("import nothing_of_that_name\n" + PASSES, 1, id="not collected"),
        pytest.param(
            "import pytest\n@pytest.mark.parametrize('n', range(11))\ndef test_fails(n): assert 0",
            1,
            id="eleven",
        ),
        pytest.param("", 5, id="no test"),
    ],
)
def test_what_is_no_chance_is_not_repeated(tmp_path: Path, source: str, status: int) -> None:
    done = run(tmp_path, source, workers=2)
    assert done.returncode == status, done.stdout
    assert "running them once more" not in done.stdout


def test_a_run_without_failures_is_one_run(tmp_path: Path) -> None:
    done = run(tmp_path, PASSES)
    assert done.returncode == 0
    assert done.stdout.count("1 passed") == 1
