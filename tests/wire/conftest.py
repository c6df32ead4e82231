"""A server as users run it: a process of its own, a real folder, real HTTP."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest


def beside(name: str) -> Any:
    """A module of the tests, by its path from here."""
    path = Path(__file__).parent / name
    spec = spec_from_file_location(f"memoranda_tests_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    made = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


models = beside("../models/server.py")

START = """
import json, sys
from memoranda.server import serve
from memoranda.config import load
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


class Stage:
    """A server whose language model plays a script: where it is, and what the model is to say and was asked."""

    def __init__(self, process: Process, model: Any) -> None:
        self.process = process
        self.url = process.url
        self.model = model

    def says(self, *turns: Any) -> None:
        """What the model says from now on; a text is a turn that says it."""
        made = [{"text": turn} if isinstance(turn, str) else turn for turn in turns]
        self.model.play = models.scripted_app(made).play

    @property
    def asked(self) -> dict[str, Any]:
        """The model's last request."""
        body: dict[str, Any] = self.model.received[-1].body
        return body


@contextmanager
def staged(folder: Path, **settings: Any) -> Iterator[Stage]:
    """A server with a scripted model behind it, for as long as this is open."""
    with models.playing([]) as (url, model):
        behind = {"model": {"url": url, "name": "scripted", "timeout": 5.0, **settings.pop("model", {})}}
        rest = {"memory": False, "file_min_score": 0.0, "keepalive": 0.25, **settings.pop("responses", {})}
        process = Process(folder, {**behind, "responses": rest, **settings})
        try:
            yield Stage(process, model)
        finally:
            process.end()


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One such server for all tests that need no other."""
    with staged(tmp_path_factory.mktemp("staged") / "data") as made:
        yield made


@pytest.fixture(scope="module")
def kitchen(stage: Stage) -> Iterator[Any]:
    """The stage with what the scripts of every client find there."""
    with beside("kitchen.py").kitchen(stage, models.running) as made:
        yield made


@pytest.fixture
def stages(tmp_path: Path) -> Callable[..., Any]:
    """Opens such servers, with the settings given."""
    return lambda **settings: staged(tmp_path / "data", **settings)


@pytest.fixture(scope="session")
def official() -> Any:
    """The validators of the official description; skips where there is none."""
    made = beside("official.py")
    if not made.DESCRIPTION.is_file():
        pytest.skip("the folder shared/data/openai is not beside the checkout")
    return made
