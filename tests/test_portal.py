"""Blocking calls of async code, while the loop that runs them ends."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from traceback import walk_stack

import pytest

from memoranda.concurrency.portal import Portal
from memoranda.errors import StorageError


def test_no_call_is_taken_once_closing_has_begun() -> None:
    """A call taken then might be put on the loop after its last round, and never end."""
    portal = Portal()
    begun = threading.Event()

    async def cancelled_by_closing() -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            with pytest.raises(StorageError, match="closed"):
                await asyncio.to_thread(portal.call, asyncio.sleep(0))

    with ThreadPoolExecutor(1) as callers:
        caller = callers.submit(portal.call, cancelled_by_closing())
        assert begun.wait(20)
        portal.close()
        with pytest.raises(StorageError, match="before this had ended"):
            caller.result(20)
    assert not portal.alive
    portal.close()


def test_errors_of_the_work_itself_reach_the_caller() -> None:
    async def fails() -> None:
        raise RuntimeError("of the work")

    portal = Portal()
    try:
        with pytest.raises(RuntimeError, match="of the work"):
            portal.call(fails())
    finally:
        portal.close()


def test_ctrl_c_cancels_the_work() -> None:
    cancelled = threading.Event()

    async def interrupted() -> None:
        caller = threading.main_thread().ident or 0
        while "result" not in {
            frame.f_code.co_name for frame, _ in walk_stack(sys._current_frames()[caller])
        }:
            await asyncio.sleep(0.01)  # it does not wait for the result yet
        signal.pthread_kill(caller, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    portal = Portal()
    try:
        with pytest.raises(KeyboardInterrupt):
            portal.call(interrupted())
        assert cancelled.wait(20)
    finally:
        portal.close()


FORKS = """
import os, sys
import memoranda
from memoranda.errors import StorageError
with memoranda.open(sys.argv[1], embedder={"url": "hash:32"}) as rc:
    rc.memories.add("a kettle")
    child = os.fork()
    if child == 0:
        try:
            rc.memories.search("kettle")
        except StorageError as exc:
            print(exc, flush=True)
        rc.close()
        os._exit(0)
    os.waitpid(child, 0)
    print(rc.memories.count(), flush=True)
"""


def test_a_fork_is_told_to_open_the_folder_itself(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FORKS, str(tmp_path / "data")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [
        "the folder was opened before a fork; open it in the process that uses it", "1",
    ]  # fmt: skip
