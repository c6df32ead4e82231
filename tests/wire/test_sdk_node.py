"""The clients of Node against a server as users run it: each script of `sdks/` plays its cases, streamed and not."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
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
EARLIER = {"openai-6", "ai-6"}
"""The major versions before the current ones."""


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


TOLD = {
    "What is my name, chain?": ["My name is Ada, chain.", "Hello Ada."],
    "What is my name, conversation?": ["My name is Ada, conversation.", "Hello Ada."],
    "What is my name, replayed?": ["My name is Ada, replayed.", "Hello Ada."],
    "What is my name, reference?": ["Hello Ada."],
    "What is my name, messages?": ["My name is Ada, messages.", "Hello Ada."],
    "What is my name, chatting?": ["My name is Ada, chatting.", "Hello Ada."],
    "What is my name, not stored?": ["My name is Ada, not stored.", "Hello Ada."],
    "What is my name, open?": ["My name is Ada, open.", "Hello Ada."],
    "Where is the kettle, after thinking?": ["Forty-two."],
    "What is in the picture?[image_url]": [],
}
"""What the model has to be told before these questions."""


def played(kitchen: Any, package: str) -> dict[str, str | None]:
    """What became of each case of a package's script: its error, or None."""
    script, told = SCRIPTS[package]
    places = {
        "MEMORANDA_URL": kitchen.url,
        "MEMORANDA_STORE": kitchen.store,
        "MEMORANDA_MCP": kitchen.mcp,
    }
    made = subprocess.run(
        ["node", script],
        cwd=SDKS,
        env={**os.environ, **told, **places},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    ended = [json.loads(line) for line in made.stdout.splitlines()]
    return {one["name"]: one["error"] for one in ended}


@pytest.mark.parametrize(
    "package",
    [pytest.param(name, marks=[pytest.mark.slow] if name in EARLIER else []) for name in SCRIPTS],
)
def test_node(kitchen: Any, package: str) -> None:
    # One test for all cases: however the tests are shared out, each script runs once.
    script, _ = SCRIPTS[package]
    ended = played(kitchen, package)
    failed = {name: error for name, error in ended.items() if error is not None}
    assert not failed, "\n\n".join(f"{name}: {error}" for name, error in failed.items())
    assert sorted(ended) == sorted(cases(script)), "not every case came to an end"
    text = (SDKS / script).read_text()
    asked = {question: kitchen.told(question) for question in TOLD if question.partition("[")[0] in text}
    assert asked
    for question, times in asked.items():
        assert times
        assert all(told == [*TOLD[question], question] for told in times), (question, times)


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
