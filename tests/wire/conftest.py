"""A server as users run it: a process of its own, a real folder, real HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

START = """
import json, sys
from recollect.api import serve
from recollect.config import load
serve(load(env={}, overrides=json.loads(sys.argv[1])), started=lambda url: print(url, flush=True))
"""


class Process:
    """`serve` in a process: its URL, and the way it ended."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        given = {"data": str(folder), "embedder": {"url": "hash:64"}, **settings}
        given["server"] = {"port": 0, **given.get("server", {})}
        self.log = (folder.parent / f"{folder.name}.log").open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=self.log,
            env={**os.environ, "RECOLLECT_CONFIG": ""},
        )
        assert self.process.stdout is not None
        self.url = self.process.stdout.readline().decode().strip()

    def end(self, how: int = signal.SIGTERM) -> int:
        """Its exit status after the signal."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(30)
        self.log.close()
        if self.process.stdout is not None:
            self.process.stdout.close()
        return status

    def said(self) -> str:
        """What it wrote to its log so far."""
        return Path(self.log.name).read_text("utf-8")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Starts servers with the settings given; `folder` names the data folder."""
    started: list[Process] = []

    def start(folder: str = "data", **settings: Any) -> Process:
        started.append(Process(tmp_path / folder, settings))
        return started[-1]

    yield start
    for one in started:
        one.end()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """One server for a whole file of tests."""
    made = Process(tmp_path_factory.mktemp("served") / "data", {})
    yield made
    made.end()
