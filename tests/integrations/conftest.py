"""Products for adapters: a folder, and a server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import memoranda
from memoranda.client import Client
from support.server_process import Process

QUICK = {"url": "hash:64"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server for a whole file of tests."""
    started = Process(tmp_path_factory.mktemp("served") / "data", {})
    yield started
    started.end()


@pytest.fixture
def folder() -> Iterator[Any]:
    """A product that keeps nothing."""
    with memoranda.open(":memory:", embedder=QUICK) as opened:
        yield opened


@pytest.fixture(params=["folder", pytest.param("server", marks=pytest.mark.slow)])
def product(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A product without memories: a folder, and a server."""
    if request.param == "folder":
        yield request.getfixturevalue("folder")
        return
    with Client(request.getfixturevalue("server").url) as client:
        yield client
        client.forget(scopes=["all"])
