"""The documentation: the site is made without a warning, and the reference is that of the code."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
LONGEST = 400
"""Characters of a line."""


@pytest.mark.long
def test_the_site(tmp_path: Path) -> None:
    """A link that leads nowhere, or a page that no list of the index names, is a warning."""
    command = (
        "sphinx",
        "--fail-on-warning",
        "--keep-going",
        "--quiet",
        "--doctree-dir",
        str(tmp_path / "trees"),
    )
    made = subprocess.run(
        [sys.executable, "-m", *command, str(DOCS), str(tmp_path / "site")], capture_output=True, text=True
    )
    assert (made.returncode, made.stderr) == (0, "")
    fetched = r"""(?:<script[^>]*src|<link[^>]*rel="stylesheet"[^>]*href|<img[^>]*src)="(?:https?:)?//"""
    for page in PAGES:
        text = (tmp_path / "site" / page.relative_to(DOCS).with_suffix(".html")).read_text("utf-8")
        assert not re.search(fetched, text), f"{page} needs a network"


def test_the_reference_is_that_of_the_code() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "reference.py"))
    for path, text in script["pages"]().items():
        assert path.read_text("utf-8") == text, f"{path.name}: run scripts/reference.py"


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", ROOT / "CHANGELOG.md", *PAGES], ids=lambda page: page.name
)
def test_no_line_is_a_paragraph_of_pages(page: Path) -> None:
    long = [
        number for number, line in enumerate(page.read_text("utf-8").splitlines(), 1) if len(line) > LONGEST
    ]
    assert not long, f"lines of more than {LONGEST} characters: {long}"
