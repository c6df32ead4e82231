"""A server in a process of its own, over a real folder and real HTTP. Other tests start it as a command."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from memoranda.config import load
from memoranda.server.serve import serve
from support import chat_server
from support.processes import guard


@cache
def context() -> ForkServerContext:
    """Starts processes as copies of one that has imported the server, which takes most of a server's start."""
    guard()  # its mark is in the environment of whatever is started after it
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["support.preloaded"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        forkserver.ensure_running()
    return made


def run(given: dict[str, Any], environment: dict[str, str], log: Path, started: Connection) -> None:
    """Serves in a process of its own, until a signal ends it; sends the URL when it accepts connections."""
    gc.freeze()
    os.environ.clear()
    os.environ.update(environment)
    with log.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    serve(load(env={}, overrides=given), started=started.send)


class Process:
    """`serve` in a process: its URL, which is empty if it ended before it accepted connections, and how it ended."""

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder = folder
        given = {"data": str(folder), "embedder": {"url": "hash:64"}, **settings}
        given["server"] = {"port": 0, **given.get("server", {})}
        self.log = folder.parent / f"{folder.name}.log"
        url, started = context().Pipe(duplex=False)
        environment = {**os.environ, "MEMORANDA_CONFIG": ""}
        self.process = context().Process(target=run, args=(given, environment, self.log, started))
        self.process.start()
        started.close()
        try:
            self.url: str = url.recv()
        except EOFError:
            self.url = ""
        url.close()

    def end(self, how: int = signal.SIGTERM) -> int:
        """Its exit status after the signal, which is negative if a signal ended it."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, how)
        self.process.join(30)
        assert self.process.exitcode is not None, "the server does not end"
        return self.process.exitcode

    def said(self) -> str:
        """What it wrote to its log so far."""
        return self.log.read_text("utf-8")


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
