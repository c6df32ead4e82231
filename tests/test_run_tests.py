"""`scripts/run_tests.py`: what failed once is repeated alone, and named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
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


FOLDER = """
def test_where(tmp_path_factory):
    base = tmp_path_factory.getbasetemp()
    print("folder", base)
    print("device", base.stat().st_dev)
"""


def run(folder: Path, source: str, *options: str, workers: int = 0) -> subprocess.CompletedProcess[str]:
    """The script over one file of tests; without workers, its first run is one process."""
    (folder / "test_sample.py").write_text(source)
    command = [
        sys.executable,
        str(SCRIPT),
        "-p",
        "xdist",
        "-n",
        str(workers),
        "-q",
        *options,
        "test_sample.py",
    ]
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
        pytest.param("", 5, id="no test", marks=pytest.mark.slow),
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


def test_temporary_files_lie_in_memory_where_there_is_room_and_go_at_the_end(tmp_path: Path) -> None:
    found = dict(
        line.split(" ", 1) for line in run(tmp_path, FOLDER, "--in-memory", "-s").stdout.splitlines()[:2]
    )
    memory = Path("/dev/shm")
    roomy = memory.is_dir() and shutil.disk_usage(memory).free >= 4 * 2**30
    if roomy and not os.statvfs(memory).f_flag & os.ST_NOEXEC:
        assert found["device"] == str(memory.stat().st_dev)
        assert not Path(found["folder"]).exists()
    else:
        assert found["device"] == str(Path(tempfile.gettempdir()).stat().st_dev)
