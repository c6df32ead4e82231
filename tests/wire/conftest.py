"""Servers in processes of their own, for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support import chat_server
from support.server_process import Process, Stage, staged

from . import kitchen as scripts
from . import official as description


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


@pytest.fixture(scope="session")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """One such server for all tests that need no other."""
    with staged(tmp_path_factory.mktemp("staged") / "data") as made:
        yield made


@pytest.fixture(scope="module")
def kitchen(stage: Stage) -> Iterator[Any]:
    """The stage with what the scripts of every client find there."""
    with scripts.kitchen(stage, chat_server.running) as made:
        yield made


@pytest.fixture
def stages(tmp_path: Path) -> Callable[..., Any]:
    """Opens such servers, with the settings given."""
    return lambda **settings: staged(tmp_path / "data", **settings)


@pytest.fixture(scope="session")
def official() -> Any:
    """The validators of the official description; skips where there is none."""
    if not description.DESCRIPTION.is_file():
        pytest.skip("the folder shared/data/openai is not beside the checkout")
    return description
