"""What goes in steps is completed by the next process when one is killed between two of them."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import memoranda
from support.waiting import until

BEGIN = """
import os, signal, sys
from datetime import UTC, datetime, timedelta
import memoranda
from memoranda.facts import provenance
from memoranda.sessions import joining, log
from memoranda.store.jobs import Run
from memoranda.types import NewMemory, Subject

provenance.ROWS = joining.ROWS = log.ROWS = 3

async def report(run, *args, **fields):
    if run.kind in ("sessions.join", "memories.release"):
        os.kill(os.getpid(), signal.SIGKILL)

Run.report = report
rc = memoranda.open(sys.argv[1], embedder={"url": "hash:64"})
"""
JOIN = """
def say(texts, at):
    noon = datetime(2024, 5, 6, 12, tzinfo=UTC)
    rc.sessions.observe(
        [{"content": text, "occurred_at": noon + timedelta(minutes=at + i)} for i, text in enumerate(texts)],
        channel_id="c",
    )

say([f"early message number {i}" for i in range(8)], 0)
say([f"late message number {i}" for i in range(8)], 50)
say(["what was said between them"], 29)
"""
RELEASE = """
said = rc.memories.add("I own many books.", kind="message").memory.id
core = rc.inner.core
facts = [NewMemory(content=f"owns book {i}", kind="fact", source_refs=[said]) for i in range(10)]
rc.portal.call(core.ingest.write("default", core.ingest.drafts(Subject(), facts)))
rc.memories.delete(said)
"""
WAIT = "\nimport threading; threading.Event().wait(60)\n"


def killed(script: str, folder: Path) -> None:
    """Runs a process that is killed after the first step of its job."""
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script + WAIT, str(folder)], check=False, timeout=120
    )
    assert done.returncode == -signal.SIGKILL


def rows(rc: Any, sql: str) -> Any:
    return rc.inner.core.store.db.read(lambda c: c.select(sql))


def test_joining_goes_on(tmp_path: Path) -> None:
    killed(JOIN, tmp_path)
    with memoranda.open(tmp_path, embedder={"url": "hash:64"}) as rc:
        until(
            lambda: rows(
                rc, "SELECT count(*) FROM jobs WHERE kind = 'sessions.join' AND state = 'completed'"
            ),
            "the sessions are joined",
            accept=lambda found: found[0][0] == 1,
        )
        [(done,)] = rows(rc, "SELECT result FROM jobs WHERE kind = 'sessions.join'")
        assert done == '{"messages":5}'  # three had moved before
        [held] = rc.sessions.list().data
        told = [one.content for one in rc.sessions.messages(held.id, limit=100).data]
        assert (held.message_count, len(told), len(set(told))) == (17, 17, 17)
        assert told[8] == "what was said between them"
        assert rc.memories.count(scopes=[f"session:{held.id}"], kinds=["message"]) == 17


def test_releasing_goes_on(tmp_path: Path) -> None:
    killed(RELEASE, tmp_path)
    with memoranda.open(tmp_path, embedder={"url": "hash:64"}) as rc:
        until(
            lambda: rows(
                rc, "SELECT count(*) FROM jobs WHERE kind = 'memories.release' AND state = 'completed'"
            ),
            "the facts are released",
            accept=lambda found: found[0][0] == 1,
        )
        [(done,)] = rows(rc, "SELECT result FROM jobs WHERE kind = 'memories.release'")
        assert done == '{"memories":4,"vectors":4}'  # three went with the message, three in the first step
        assert rc.memories.count(scopes=["all"]) == 0
        assert rows(rc, "SELECT count(*) FROM memory_sources") == [(0,)]
