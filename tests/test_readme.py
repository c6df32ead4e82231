"""Every line of code in the README runs as it stands, from a fresh folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.chat_server import serving
from support.commands import served

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
PORT = "8377"
MODEL = "http://localhost:11434/v1"


def test_every_block_is_of_a_kind_that_this_file_runs() -> None:
    assert [kind for kind, _ in BLOCKS] == ["sh", "python", "text", "sh", "sh"]


def test_it_is_a_page() -> None:
    assert len(README.splitlines()) <= 100


@pytest.mark.parametrize("name", re.findall(r"\]\(([^)#]+)\)", README))
def test_every_link_leads_somewhere(name: str) -> None:
    assert (ROOT / name).exists()


@pytest.mark.slow
def test_the_two_commands_are_commands(tmp_path: Path) -> None:
    commands = [line.split("#")[0].split() for line in BLOCKS[0][1].splitlines()]
    assert commands == [["./run"], ["./run", "demo"]]
    script = (ROOT / "run").read_text("utf-8")
    assert "set -- serve" in script
    assert os.access(ROOT / "run", os.X_OK)
    assert os.access(ROOT / "test", os.X_OK)
    told = program("demo", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "score" in told.stdout


def test_the_library_block(tmp_path: Path) -> None:
    with serving([{"text": "In Berlin."}]) as (url, _):
        program = BLOCKS[1][1].replace(MODEL, url)
        told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert told.stdout == BLOCKS[2][1]


@pytest.mark.slow
def test_the_command_line_block(tmp_path: Path) -> None:
    shutil.copy(ROOT / "LICENSE", tmp_path)
    told = shell(BLOCKS[3][1], tmp_path)
    assert told.returncode == 0, told.stderr
    assert "The spare key is under the blue pot." in told.stdout
    assert "You must cause any modified files to carry prominent notices" in told.stdout
    assert "OK" in told.stdout
    assert (tmp_path / "memories.jsonl").exists()


def test_the_http_block(tmp_path: Path) -> None:
    with served(tmp_path) as url:
        script = BLOCKS[4][1].replace(f"http://127.0.0.1:{PORT}", url).replace("curl -s", "curl -sf")
        told = shell(script, tmp_path)
    assert told.returncode == 0, told.stderr
    (answer,) = [line for line in told.stdout.replace("}{", "}\n{").splitlines() if '"results"' in line]
    assert json.loads(answer)["results"][0]["memory"]["content"] == "The meter is read in June."


def program(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "memoranda", *words], cwd=cwd, capture_output=True, text=True
    )


def shell(script: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Runs the lines with this Python's `memoranda` first on the path, and stops at the first that fails."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path}
    return subprocess.run(["sh", "-e", "-c", script], cwd=cwd, env=env, capture_output=True, text=True)
