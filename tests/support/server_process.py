"""A server as users run it: a process of its own, a real folder, real HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import chat_server

START = """
import gc, json, sys
gc.disable()  # as the command does while it imports
from memoranda.server import serve
from memoranda.config import load
gc.freeze()
gc.enable()
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
            env={**os.environ, "MEMORANDA_CONFIG": ""},
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


class Stage:
    """A server whose language model plays a script: where it is, and what the model is to say and was asked."""

    def __init__(self, process: Process, model: Any) -> None:
        self.process = process
        self.url = process.url
        self.model = model

    def says(self, *turns: Any) -> None:
        """What the model says from now on; a text is a turn that says it."""
        made = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
        self.model.play = chat_server.scripted_app(made).play

    @property
    def asked(self) -> dict[str, Any]:
        """The model's last request."""
        body: dict[str, Any] = self.model.received[-1].body
        return body


@contextmanager
def staged(folder: Path, **settings: Any) -> Iterator[Stage]:
    """A server with a scripted model behind it, for as long as this is open."""
    with chat_server.playing([]) as (url, model):
        behind = {"model": {"url": url, "name": "scripted", "timeout": 5.0, **settings.pop("model", {})}}
        rest = {"memory": False, "file_min_score": 0.0, "keepalive": 0.25, **settings.pop("responses", {})}
        process = Process(folder, {**behind, "responses": rest, **settings})
        try:
            yield Stage(process, model)
        finally:
            process.end()
