"""A context is the same over HTTP, without a loop and on the command line."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from memoranda.cli.app import app
from memoranda.client import Client
from memoranda.contexts import ContextQuery
from memoranda.errors import InvalidInput
from memoranda.text.prompts import QUOTED

pytestmark = pytest.mark.rows_in("sqlite")
START = """
import sys
from memoranda.server.serve import serve
from memoranda.config import load
given = {"data": sys.argv[1], "embedder": {"url": "hash:256"}, "server": {"port": 0}}
serve(load(env={}, overrides=given), started=lambda url: print(url, flush=True))
"""


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with subprocess.Popen(
        [sys.executable, "-c", START, str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as server:
        assert server.stdout is not None
        with Client(server.stdout.readline().decode().strip()) as made:
            yield made
        server.terminate()


def test_over_http(client: Client, garden: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    texts = ["The old bridge has lanterns.", "Otto keeps a spade."]
    for memories in (client, garden.memories):
        for text in texts:
            memories.add(text, id=f"m{texts.index(text)}", session_id="s")
    fields: dict[str, Any] = {
        "session_id": "s", "recent": [{"role": "user", "content": "Hello"}], "budget": 100, "explain": True,
    }  # fmt: skip
    here, there = garden.context("Which bridge?", **fields), client.context("Which bridge?", **fields)
    for made in (here, there):
        made.query_time = 0.0
        for piece in made.pieces:
            if piece.citation is not None:
                piece.citation.started_at = piece.citation.ended_at = None
    assert there == here
    assert client.context(ContextQuery(query="x", limit=0)).text == "x"
    with pytest.raises(InvalidInput, match=r"budgets\.memory"):
        client.context("x", budgets={"memory": 1})
    monkeypatch.chdir(tmp_path)
    words = ["--scope", "session:s", "--limit", "1", "--system", "Be brief.", "--data", "data"]
    told = CliRunner().invoke(app, ["context", "Which bridge?", *words, "--set", "embedder.url=hash:256"])
    assert told.stdout == (
        f"Be brief.\n\n{QUOTED}\n\nPrevious context:\n- [1] The old bridge has lanterns.\n\nWhich bridge?\n"
    ), told.stderr
    printed = CliRunner().invoke(app, ["context", "x", "--json", "--data", "data", "--limit", "0"])
    assert msgspec.json.decode(printed.stdout)["tokens"] == 1
