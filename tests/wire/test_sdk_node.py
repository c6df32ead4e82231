"""The clients of Node against a server as users run it: each script of `sdks/` plays its cases, streamed and not."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

SDKS = Path(__file__).parent / "sdks"
SCRIPTS: dict[str, tuple[str, dict[str, str]]] = {
    "openai": ("openai.mjs", {"PACKAGE": "openai"}),
    "openai-6": ("openai.mjs", {"PACKAGE": "openai-6"}),
    "ai": ("vercel.mjs", {"AI": "ai", "PROVIDER": "@ai-sdk/openai"}),
    "open-responses": ("open_responses.mjs", {}),
    "ai-6": ("vercel.mjs", {"AI": "ai-6", "PROVIDER": "ai-6-openai"}),
}
"""By the name of the package: its script, and what that is told."""


def cases(script: str) -> list[str]:
    """The names of a script's cases."""
    return re.findall(r"^  async (\w+)\(\)", (SDKS / script).read_text(), re.MULTILINE)


def missing() -> str | None:
    """Why the scripts cannot run here."""
    if shutil.which("node") is None:
        return "node is not on the PATH"
    if not (SDKS / "node_modules" / ".installed").is_file():
        return "the packages of Node are not installed; scripts/node_packages does it"
    return None


pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@pytest.fixture(scope="module")
def played(kitchen: Any) -> Any:
    """What became of each case of a package's script: its error, or None. A script runs once, when it is asked for."""

    @cache
    def play(package: str) -> dict[str, str | None]:
        script, told = SCRIPTS[package]
        made = subprocess.run(
            ["node", script],
            cwd=SDKS,
            env={
                **os.environ,
                **told,
                "RECOLLECT_URL": kitchen.url,
                "RECOLLECT_STORE": kitchen.store,
                "RECOLLECT_MCP": kitchen.mcp,
            },
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        ended = [json.loads(line) for line in made.stdout.splitlines()]
        return {one["name"]: one["error"] for one in ended}

    return play


@pytest.mark.parametrize(
    ("package", "case"),
    [(package, case) for package, (script, _) in SCRIPTS.items() for case in cases(script)],
)
def test_node(played: Any, package: str, case: str) -> None:
    told = played(package)
    assert case in told, f"{case} did not end"
    assert told[case] is None, told[case]


TOLD = {
    "What is my name, chain?": ["My name is Ada, chain.", "Hello Ada."],
    "What is my name, conversation?": ["My name is Ada, conversation.", "Hello Ada."],
    "What is my name, replayed?": ["My name is Ada, replayed.", "Hello Ada."],
    "What is my name, reference?": ["Hello Ada."],
    "What is my name, messages?": ["My name is Ada, messages.", "Hello Ada."],
    "What is my name, not stored?": ["My name is Ada, not stored.", "Hello Ada."],
    "What is my name, open?": ["My name is Ada, open.", "Hello Ada."],
    "Where is the kettle, after thinking?": ["Forty-two."],
    "What is in the picture?[image_url]": [],
}
"""What the model has to be told before these questions."""


@pytest.mark.parametrize("question", TOLD)
def test_what_the_model_is_told(kitchen: Any, played: Any, question: str) -> None:
    for package in SCRIPTS:
        played(package)
    asked = kitchen.told(question)
    assert asked
    for told in asked:
        assert told == [*TOLD[question], question]


def test_the_example_of_openai(kitchen: Any, tmp_path: Path) -> None:
    file = tmp_path / "manual.txt"
    file.write_text("Fill the kettle with vinegar to clean it.")
    asked = "How is the kettle cleaned?"
    for name in ("openai_client.mjs", "openai_client.py"):
        printed = kitchen.example(name, str(file), asked).splitlines()
        assert printed[1:] == ["Fill it with vinegar [1].", "[1] manual.txt", "Vinegar does it."]


def test_the_example_of_the_ai_sdk(kitchen: Any) -> None:
    printed = kitchen.example("vercel_ai.mjs", kitchen.store, "How is the kettle cleaned?")
    assert printed.splitlines() == ["Fill it with vinegar [1].", "manual.txt"]
