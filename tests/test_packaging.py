"""What an installation brings: few packages, small files, and no package that only some use."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from memoranda.extras import EXTRAS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MOST_DEPENDENCIES = 12
MOST_BYTES = 1 << 20
"""Of a file of the code: models are data packages of their own."""
HIDDEN = "raise ModuleNotFoundError(f'No module named {__name__!r}', name=__name__)\n"
USED = """
import sys, time
import memoranda

with memoranda.open(sys.argv[1]) as r:
    r.memories.add("Mara is allergic to bees.", user_id="mara")
    r.observe([{"speaker": "Ana", "content": "I live in Munich."}], channel_id="garden")
    print(r.memories.search("What must she avoid?", limit=1).results[0].memory.content)
    store = r.knowledge.stores.create(name="house").id
    for name in sys.argv[2:]:
        file = r.knowledge.stores.attach(store, [r.knowledge.files.upload(name).id])[0]
        while file.status not in ("completed", "failed"):
            time.sleep(0.05)
            file = r.knowledge.stores.file(store, file.id)
        print(file.status, file.last_error and file.last_error.message)
    tools = [{"type": "file_search", "vector_store_ids": [store]}]
    print(r.responses.create(input="When is the meter read?", tools=tools).output[-1]["content"][0]["text"])
"""
FRAMEWORKS = (
    "agent-framework", "anthropic", "claude-agent-sdk", "crewai", "google-adk", "haystack", "langchain", "langgraph",
    "llama-index", "openai-agents", "pydantic-ai", "strands",
)  # fmt: skip


def test_the_library_needs_few_packages() -> None:
    wanted = [line for line in PROJECT["dependencies"] if "sys_platform" not in line]
    assert len(wanted) <= MOST_DEPENDENCIES
    brought = " ".join(line for lines in PROJECT["optional-dependencies"].values() for line in lines)
    assert set(EXTRAS.values()) <= PROJECT["optional-dependencies"].keys()
    assert not {re.split(r"[>=\[;]", line)[0] for line in wanted} & set(re.findall(r"[\w-]+", brought))


def test_files_of_the_code_are_small() -> None:
    files = [path for path in (ROOT / "src").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert [path.name for path in files if path.stat().st_size > MOST_BYTES] == []


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """The environment of a process in which no package of an extra can be imported."""
    hidden = tmp_path / "hidden"
    for package in (*EXTRAS, "opentelemetry", "uvloop", "websockets", "kreuzberg", "pdf_oxide"):
        (hidden / package).mkdir(parents=True)
        (hidden / package / "__init__.py").write_text(HIDDEN)
    return {"PYTHONPATH": f"{hidden}:{ROOT / 'src'}", "PATH": "/usr/bin:/bin"}


def test_the_library_works_without_any_extra(bare: dict[str, str], tmp_path: Path) -> None:
    note, page = tmp_path / "a.md", tmp_path / "b.html"
    note.write_text("The meter is read in June.\n")
    page.write_text("<html><body><p>The meter is in the cellar.</p></body></html>")
    command = [sys.executable, "-c", USED, str(tmp_path / "data"), str(note), str(page)]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Mara is allergic to bees."
    assert lines[1] == "completed None"
    assert lines[2] == "failed needs the package lxml: pip install 'memoranda[documents]'"
    assert lines[3].startswith("The meter is read in June.")


def test_the_command_line_says_what_it_needs(bare: dict[str, str]) -> None:
    command = [sys.executable, "-m", "memoranda", "search", "x"]
    done = subprocess.run(command, env=bare, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == (
        "memoranda: the command line needs the package typer: pip install 'memoranda[cli]'"
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_no_framework_is_held_back(name: str) -> None:
    """Resolved beside the library, a framework is as new as alone."""
    (wanted,) = PROJECT["optional-dependencies"][name]
    package = re.split(r"[>=]", wanted)[0]
    beside = [line for line in PROJECT["dependencies"] if not line.startswith("memoranda-")]
    assert resolved(package, [package]) == resolved(package, [package, *beside])


def resolved(package: str, wanted: list[str]) -> str:
    """The version of a package among the newest that fit together."""
    uv = ROOT / ".cache" / "uv" / "bin" / "uv"
    command = [str(uv) if uv.exists() else "uv", "pip", "compile", "-q", "--python-version", "3.11", "-"]
    done = subprocess.run(command, input="\n".join(wanted), capture_output=True, text=True, check=True)
    found = re.search(rf"^{re.escape(package)}==(\S+)", done.stdout, re.MULTILINE)
    assert found, done.stdout
    return found[1]
