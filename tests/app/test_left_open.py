"""Scripts that never close what they opened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import memoranda

OPEN = """
import multiprocessing, sys
import memoranda

r = memoranda.open(sys.argv[1], embedder={"url": "hash:16"})
r.memories.add("a note that stays")
"""
BUSY = """
store = r.knowledge.stores.create(name="s")
files = [r.knowledge.files.upload(f"text {i} ".encode() * 9000, f"{i}.txt") for i in range(5)]
r.knowledge.stores.attach(store.id, [file.id for file in files])
r.observe([f"message {i}" for i in range(200)], channel_id="c")
r.responses.create("what?", background=True)
"""
FORKED = """
child = multiprocessing.get_context("fork").Process(target=print)
child.start()
child.join()
assert child.exitcode == 0
"""
COROUTINE = """
import asyncio, sys
import memoranda

async def main():
    r = await memoranda.Memoranda.open(sys.argv[1], embedder={"url": "hash:16"})
    await r.memories.add("a note that stays")
"""
COROUTINE_BUSY = """
    store = await r.knowledge.stores.create(name="s")
    files = [await r.knowledge.files.upload(f"text {i} ".encode() * 9000, f"{i}.txt") for i in range(5)]
    await r.knowledge.stores.attach(store.id, [file.id for file in files])
    await r.observe([f"message {i}" for i in range(200)], channel_id="c")
    await r.responses.create("what?", background=True)
"""
RUN = "\nasyncio.run(main())\n"
FAILING = 'raise ValueError("of the script alone")\n'


@pytest.mark.parametrize("kept", [True, False], ids=["folder", "memory"])
@pytest.mark.parametrize(
    "after", ["", BUSY, FORKED, BUSY + FAILING], ids=["idle", "busy", "forked", "failing"]
)
def test_a_script_that_does_not_close_ends_by_itself(tmp_path: Path, kept: bool, after: str) -> None:
    data, temporary = tmp_path / "data", tmp_path / "temporary"
    temporary.mkdir()
    ended(OPEN + after, tmp_path, str(data) if kept else ":memory:", TMPDIR=str(temporary))
    assert [*temporary.iterdir()] == []
    if kept:
        holds_the_note(data)


@pytest.mark.parametrize(
    "after",
    ["", COROUTINE_BUSY, f"{COROUTINE_BUSY}    {FAILING}"],
    ids=["idle", "busy", "failing"],
)
def test_coroutines_that_do_not_close_end_by_themselves(tmp_path: Path, after: str) -> None:
    data = tmp_path / "data"
    ended(COROUTINE + after + RUN, tmp_path, str(data))
    holds_the_note(data)


def ended(script: str, folder: Path, *words: str, **environment: str) -> None:
    """Run a script to its end: it prints no error but its own."""
    path = folder / "script.py"
    path.write_text(script)
    done = subprocess.run(
        [sys.executable, str(path), *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if FAILING in script:
        assert done.returncode == 1
        assert done.stderr.count("Traceback") == 1
        assert done.stderr.endswith("ValueError: of the script alone\n")
    else:
        assert (done.returncode, done.stderr) == (0, "")


def holds_the_note(data: Path) -> None:
    """Check that the folder has what the script wrote."""
    with memoranda.open(data, embedder={"url": "hash:16"}) as product:
        assert product.memories.search("a note that stays").results[0].memory.content == "a note that stays"
