"""`memoranda export --output x.zip` and `memoranda import x.zip`: a folder, and through a server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memoranda.client import Client


def test_everything_goes_out_and_in(run: Any, tmp_path: Path) -> None:
    path, other = str(tmp_path / "all.zip"), ["--data", str(tmp_path / "other")]
    run("add", "the kettle is green")
    made = run.json("export", "--output", path)
    assert (made["rows"]["memories"], made["missing"], made["output"]) == (1, [], path)
    dry = run.json("import", path, "--dry-run", *other)
    assert (dry["format"], dry["dry_run"]) == ("memoranda-archive", True)
    assert run.json("stats", *other)["memories"] == 0
    assert "memory               1: 1 new, 0 were there already" in run("import", path, *other).stdout
    assert run.json("import", path, *other)["imported"]["memory"]["present"] == 1
    assert "1 memories" in run("export", "-o", path).stdout


@pytest.mark.parametrize("name", ["all.zip", "all.jsonl", "all.mem"])
def test_what_was_forgotten_stays_out(run: Any, tmp_path: Path, name: str) -> None:
    path = str(tmp_path / name)
    id_ = run.json("add", "the kettle is green")["memory"]["id"]
    run("export", "--output", path)
    run("forget", id_, "--yes")
    result = run("import", path)
    assert result.exit_code == 0
    assert id_ in result.stdout + result.stderr
    assert "forgotten after the export was made" in result.stdout + result.stderr
    assert "--include-forgotten imports it" in result.stderr
    assert run.json("stats")["memories"] == 0
    assert id_ in json.dumps(run.json("import", path))
    run("import", path, "--include-forgotten")
    assert run.json("stats")["memories"] == 1


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["export", "-o", "all.zip", "--scope", "user:ada"], "--scope: is for memories as JSONL"),
        (["export", "-o", "all.zip", "--kind", "fact"], "--kind: is for memories as JSONL"),
        (["import", "all.zip", "--extraction"], "--extraction: does not apply"),
        (["import", ".", "--from", "chatgpt", "--include-forgotten"], "--include-forgotten: does not apply"),
        (["import", "all.zip", "--map", "text=a"], "--map: does not apply"),
        (["import", "all.zip", "--map", "color=a"], "table, id, text, date"),
    ],
)
@pytest.mark.usefixtures("empty_folder")
def test_options_that_do_not_apply_are_refused(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str], says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    run("export", "-o", "all.zip")
    result = run(*args)
    assert result.exit_code != 0
    assert says in result.stderr


@pytest.mark.slow
def test_an_archive_goes_through_a_server(served: Any, server: tuple[str, Path], tmp_path: Path) -> None:
    served("add", "the kettle is blue")
    path = tmp_path / "served.zip"
    assert served.json("export", "-o", str(path))["rows"]["memories"] >= 1
    assert served.json("import", str(path))["imported"]["memory"]["created"] == 0
    with Client(server[0]) as client:
        report = client.archives.import_from(path, dry_run=True)
        assert report.failed == 0
        assert client.archives.export_to(tmp_path / "again.zip", vectors=True).rows["memories"] >= 1
