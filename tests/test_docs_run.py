"""Programs of the documentation run as they are printed, from a fresh folder."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.chat_server import serving
from support.commands import served
from support.pdf_files import page as content
from support.pdf_files import pdf_of

DOCS = Path(__file__).parents[1] / "docs"
ADDRESS = "http://127.0.0.1:8377"
BY_HAND = ("python3 -m venv", "memoranda console")
"""Beginnings of blocks that a user runs, and no test."""


MODEL = "http://localhost:11434/v1"
BERLIN = {"text": "Ada lives in Berlin.", "messages": [1], "op": "replaces F1", "quote": "moved to Berlin"}
MUNICH = {"text": "Ada lives in Munich.", "messages": [1], "op": "add", "quote": "live in Munich"}
"""Facts of the assistant's user, as a model writes them."""
SCRIPTS: dict[str, list[Any]] = {
    "quickstart.md": [{"text": "Better not: lavender attracts bees."}],
    "tutorials/assistant.md": [
        {"when": "Conversation:[^$]*Munich", "text": json.dumps({"facts": [MUNICH]})},
        {"when": "Conversation:[^$]*Berlin", "text": json.dumps({"facts": [BERLIN]})},
        {"when": "Munich", "text": "Munich, noted."},
        {"when": "Berlin", "text": "Welcome to Berlin."},
    ],
    "tutorials/group-chat.md": [{"text": "Ben wants it red, Ana does not."}],
    "tutorials/documents.md": [],
    "tutorials/tenants.md": [],
    "tutorials/coding-agent.md": [],
}
"""What a language model answers to the programs of each page that runs as a whole."""
SAID = {"quickstart.md": "May I sit beside the lavender?\n\n"}
"""What a user of the page's programs types."""


@pytest.mark.parametrize("page", SCRIPTS)
def test_a_page_runs_from_its_beginning_to_its_end(page: str, tmp_path: Path) -> None:
    """Each block runs in one folder, one after the other, and prints at least the block of text that follows it."""
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    shutil.copy(DOCS.parent / "LICENSE", tmp_path)
    with ExitStack() as stack:
        model, _ = stack.enter_context(serving(SCRIPTS[page]))
        env = {
            **os.environ,
            "HOME": str(tmp_path),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        url, printed = "", ""
        for kind, text in blocks:
            if kind == "yaml":
                (tmp_path / "memoranda.yaml").write_text(text)
            elif kind == "text":
                assert page_has(printed, text), printed
            elif kind in ("sh", "python"):
                if ADDRESS in text and not url:
                    url = stack.enter_context(served(tmp_path))
                command = ["sh", "-e", "-c"] if kind == "sh" else [sys.executable, "-c"]
                command.append(text.replace(MODEL, model).replace(ADDRESS, url))
                ended = subprocess.run(
                    command, cwd=tmp_path, env=env, input=SAID.get(page), capture_output=True, text=True
                )
                assert ended.returncode == 0, ended.stderr
                printed = ended.stdout


def page_has(printed: str, text: str) -> bool:
    """True if a block of text is printed, the day of today in place of `TODAY`."""
    return text.replace("TODAY", datetime.now(UTC).strftime("%d %B %Y")) in printed or text.startswith(
        BY_HAND
    )


def program_of(page: str, has: str) -> str:
    """The one Python program of a page that has these words."""
    blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if has in block]
    return str(block)


def output_of(program: str, folder: Path) -> str:
    ended = subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    ("page", "has", "prints"),
    [
        ("concepts/context.md", "r.context(", "bees"),
        ("concepts/facts.md", "replaces=[munich]", "Berlin"),
        ("concepts/sessions.md", "r.observe(", ""),
        ("guides/upload-ask.md", "as_subject", "14 bar"),
    ],
)
def test_a_program_of_the_library(page: str, has: str, prints: str, tmp_path: Path) -> None:
    assert prints in output_of(program_of(page, has), tmp_path)


def test_the_program_of_an_mcp_client(tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    with served(tmp_path) as url:
        told = output_of(program_of("guides/mcp.md", "ClientSession").replace(ADDRESS, url), tmp_path)
    assert told == "The spare key is under the blue pot.\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("has", "needs", "turns", "prints"),
    [
        (
            "responses.create(\n",
            "openai",
            [
                {
                    "offered": "file_search",
                    "calls": [{"name": "file_search", "arguments": {"query": "filter"}}],
                },
                {"after": "six months", "text": "Every six months [1]."},
                {"text": "Every year."},
            ],
            r"^Every six months \[1\]\.\n.*manual\.pdf.*file_citation.*start_index=17, end_index=20",
        ),
        (
            "ChatOpenAI",
            "langchain_openai",
            [{"text": "I see."}, {"when": "cake", "text": "No walnuts: Vera is allergic to them."}],
            r"^No walnuts: Vera is allergic to them\.\n",
        ),
        (
            "chat.completions",
            "openai",
            [{"text": "I see."}, {"when": "Where", "text": "In Lisbon."}],
            r"^I see\.\nIn Lisbon\.\n\[\{.*'kind': 'message'.*'used': True",
        ),
    ],
)
def test_a_program_of_a_client_of_openai(
    has: str, needs: str, turns: list[Any], prints: str, tmp_path: Path
) -> None:
    pytest.importorskip(needs)
    (tmp_path / "manual.pdf").write_bytes(pdf_of([content(["Change the filter every six months."])]))
    (tmp_path / "script.json").write_text(json.dumps({"models": ["qwen3-8b"], "turns": turns}))
    with served(tmp_path, "--set", f"model.url=scripted:{tmp_path}/script.json") as url:
        told = output_of(program_of("concepts/responses.md", has).replace(ADDRESS, url), tmp_path)
    assert re.search(prints, told, re.DOTALL), told
