"""Test suites that frameworks publish in their source packages, run against what this project has in their place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).parent.parent
SOURCE = TESTS.parent / "src"


@dataclass(frozen=True)
class Ran:
    """What a suite came to: tests by outcome, and what pytest printed."""

    counts: Mapping[str, int]
    printed: str


def source_of(package: str, folder: Path) -> Path:
    """The unpacked source package of `name==version`, downloaded to `folder`."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-binary", ":all:", "--no-build-isolation", "--dest", str(folder), package]
    subprocess.run(command, check=True, capture_output=True, text=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def run(folder: Path, files: Sequence[str], replaced: str, by: str, left_out: Sequence[str]) -> Ran:
    """Runs test files of a source package, in which imports of the module `replaced`, and of those below it, are
    imports of the module `by`; without the tests `left_out`."""
    imports = re.compile(rf"^from {re.escape(replaced)}[.\w]* import", re.MULTILINE)
    for file in (folder / "tests").glob("test_*.py"):
        file.write_text(imports.sub(f"from {by} import", file.read_text("utf-8")), "utf-8")
    (folder / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nmarkers =\n    flaky: may be run again\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
    ]
    command += [word for name in left_out for word in ("--deselect", name)]
    paths = os.pathsep.join([str(SOURCE), str(TESTS)])
    ended = subprocess.run(
        [*command, *files],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    last = ended.stdout.strip().rsplit("\n", 1)[-1]
    counts = {name: int(number) for number, name in re.findall(r"(\d+) (\w+)", last)}
    return Ran(counts, ended.stdout + ended.stderr)
