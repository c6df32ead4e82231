"""Commands called in this process, in a folder of their own, with a model that costs nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import memoranda
from memoranda.cli.app import app
from memoranda.client import Client
from support.server_process import Process


class Calls:
    """`run("add", "text")` calls a command; `json` also reads its answer and fails when it failed."""

    def __call__(self, *words: str, given: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, list(words), input=given, prog_name="memoranda")

    def json(self, *words: str, given: str | bytes | None = None) -> Any:
        result = self(*words, "--json", given=given)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORANDA_EMBEDDER__URL", "hash:64")
    return Calls()


@pytest.fixture
def empty_folder(run: Calls, tmp_path: Path) -> Path:
    """An empty data folder, where commands look for one."""
    with memoranda.open(tmp_path / "memoranda-data"):
        return tmp_path / "memoranda-data"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A server for a module's tests: its URL, and its folder."""
    made = Process(tmp_path_factory.mktemp("served") / "data", {})
    yield made.url, made.folder
    assert made.end(signal.SIGINT) == 0, made.said()


@pytest.fixture
def served(run: Calls, server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Calls]:
    """Calls of commands that go through a server, which holds nothing before and after."""
    url, folder = server
    monkeypatch.setenv("MEMORANDA_DATA", str(folder))
    yield run
    with Client(url) as client:
        for store in client.knowledge.stores.list(limit=100).data:
            client.knowledge.stores.delete(store.id)
        for file in client.knowledge.files.list().data:
            client.knowledge.files.delete(file.id)
        client.forget(scopes=["all"])


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file below the folder that commands are called in."""

    def put(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return put
