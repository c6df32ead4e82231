"""Programs of the documentation run as they are printed, from a fresh folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.commands import served
from support.pdf_files import page as content
from support.pdf_files import pdf_of

DOCS = Path(__file__).parents[1] / "docs"
ADDRESS = "http://127.0.0.1:8377"


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
