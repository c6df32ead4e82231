"""A server that is asked to end while it indexes, and readers that are ended from outside: nothing is lost, nothing
counts against the file, nothing is left running."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

import memoranda
from support.waiting import until

from . import indexer

FILES = 16


def settings(folder: Path, **more: Any) -> str:
    """What the server is told."""
    given = {**indexer.SETTINGS, "data": str(folder), "server": {"port": 0}, "jobs": {}, **more}
    return json.dumps(given)


def text(number: int) -> str:
    """A file of some hundred chunks."""
    rng = random.Random(number)
    return " ".join(f"w{rng.randrange(5_000)}" for _ in range(2_000))


def filled(url: str) -> str:
    """The id of a new store with files that are being indexed."""
    with httpx.Client(base_url=url, timeout=20) as http:
        ids = [
            http.post("/v1/files", files={"file": (f"{n}.txt", text(n).encode())}, data={"purpose": "assistants"})
            for n in range(FILES)
        ]  # fmt: skip
        made = http.post("/v1/vector_stores", json={"file_ids": [one.json()["id"] for one in ids]})
        return str(made.json()["id"])


def counts(url: str, store: str) -> dict[str, int]:
    """How many of its files are in which state."""
    found: dict[str, int] = httpx.get(f"{url}/v1/vector_stores/{store}", timeout=20).json()["file_counts"]
    return found


def ask_to_end(life: Any, everybody: bool) -> None:
    """Sends SIGTERM, to its readers too as a service's supervisor may, and waits for the end of all."""
    for pid in life.readers() if everybody else []:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    assert life.end(signal.SIGTERM) == 0, life.log.read_text()
    life.gone()


@pytest.mark.slow
def test_ends_before_its_work_is_done_and_goes_on_after(tmp_path: Path) -> None:
    """More often than a job has attempts."""
    folder, store = tmp_path / "data", ""
    for everybody in (False, True, False):
        with indexer.living(
            tmp_path / "said.log", "serve", settings(folder, jobs={"max_attempts": 2})
        ) as life:
            url = life.ready()
            store = store or filled(url)
            before = counts(url, store)
            assert before["in_progress"]
            until(life.readers, "a reader", every=0.01)
            time.sleep(0.2)
            ask_to_end(life, everybody)
        with indexer.connected(folder) as rows:
            states = dict(rows.execute("SELECT state, count(*) FROM jobs GROUP BY state").fetchall())
            assert "running" not in states
            assert states["queued"]
            tried = rows.execute("SELECT max(attempts) FROM jobs WHERE state = 'queued'").fetchone()[0]
            assert tried == 0 or everybody  # a reader may be ended before it knows that this is not for it
    with memoranda.open(folder, **indexer.SETTINGS) as opened:
        held = opened.knowledge.stores.wait(store)
        assert held.file_counts.completed == FILES
        indexer.settle(opened)
        indexer.check_nothing_else(opened, store)


def test_a_reader_that_is_killed_reads_again(tmp_path: Path) -> None:
    """An administrator, or a machine without memory, is no fault of the file."""
    with indexer.living(tmp_path / "said.log", "serve", settings(tmp_path / "data")) as life:
        url = life.ready()
        store, killed = filled(url), 0
        while counts(url, store)["in_progress"]:
            for pid in life.readers() if killed < 4 else []:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
            time.sleep(0.05)
        assert killed
        assert counts(url, store)["completed"] == FILES


def test_a_reader_ends_with_its_server(tmp_path: Path) -> None:
    """Though it is deep in a file, and would be for a minute more."""
    odd = tmp_path / "a.odd"
    odd.write_text("spin")
    source = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from memoranda.readers import Limits, Readers\n"
        "async def main():\n"
        "    readers = Readers(1, Limits(seconds=60), extra={'.odd': 'hostile:read'})\n"
        "    print('ready', flush=True)\n"
        "    await readers.read(Path(sys.argv[1]), 'a.odd')\n"
        "asyncio.run(main())\n"
    )
    program = tmp_path / "program.py"
    program.write_text(source)
    hostile = str(Path(__file__).parents[1] / "readers")
    with indexer.living(tmp_path / "said.log", str(odd), program=program, PYTHONPATH=hostile) as life:
        life.ready()
        until(lambda: any(busy(pid) for pid in life.readers()), "a busy reader")
        life.end(signal.SIGKILL)
        life.gone()


def busy(pid: int) -> bool:
    """Whether the process has used the processor for a second: long after it began to read."""
    with suppress(OSError):
        used = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return sum(map(int, used)) >= 1.5 * os.sysconf("SC_CLK_TCK")
    return False
