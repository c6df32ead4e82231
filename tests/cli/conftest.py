"""Commands called in this process, in a folder of their own, with a model that costs nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from recollect.cli import app


class Calls:
    """`run("add", "text")` calls a command; `json` also reads its answer and fails when it failed."""

    def __call__(self, *words: str, given: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, list(words), input=given, prog_name="recollect")

    def json(self, *words: str, given: str | bytes | None = None) -> Any:
        result = self(*words, "--json", given=given)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RECOLLECT_EMBEDDER__URL", "hash:64")
    return Calls()


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str | bytes], Path]:
    """Writes a file below the folder that commands are called in."""

    def put(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return put
