"""`memoranda import` of other systems' data: into a folder, through a server, and what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from memoranda.client import Client
from support.exports import SAMPLES, packed, write

BY_FORMAT = {each.format: each for each in SAMPLES}


def test_import_into_a_folder(run: Any, tmp_path: Path) -> None:
    path = str(write(BY_FORMAT["chatgpt"], tmp_path / "exports"))
    dry = run.json("import", path, "--dry-run")
    assert (dry["format"], dry["dry_run"], dry["imported"]["message"]["read"]) == ("chatgpt", True, 6)
    assert run.json("stats")["memories"] == 0
    assert run.json("import", path, "--from", "chatgpt", "--user", "ada", "--no-extraction")["imported"] == {
        kind: {"read": number, "created": number, "present": 0, "ended": 0}
        for kind, number in BY_FORMAT["chatgpt"].imported.items()
    }
    shown = run("import", path).stdout
    assert "message              6: 0 new, 6 were there already" in shown
    assert "not imported         1  message: is on a branch that was replaced" in shown
    hits = run.json("search", "herons nest", "--scope", "user:ada")["results"]
    assert hits[0]["memory"]["content"] == "Where do herons nest?"


@pytest.mark.slow
@pytest.mark.parametrize("format", ["chatgpt", "letta"])
def test_import_through_a_server(format: str, served: Any, server: tuple[str, Path], tmp_path: Path) -> None:
    one = BY_FORMAT[format]
    path = str(write(one, tmp_path / "exports"))
    first = served.json("import", path, "--user", "ada")
    assert {kind: tally["created"] for kind, tally in first["imported"].items()} == one.imported
    with Client(server[0]) as client:
        again = client.import_history(path, user_id="ada")
        assert {kind: tally.present for kind, tally in again.imported.items()} == one.imported
        assert client.import_history(path, user_id="eve").failed == (1 if format == "letta" else 4)


def test_damage_is_named_and_ends_with_1(run: Any, tmp_path: Path) -> None:
    files = {
        "memory.jsonl": '{"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Sails"]}\n{"a"'
    }
    path = packed(files, "file", tmp_path / "exports")
    result = run("import", str(path))
    assert result.exit_code == 1
    assert "memory.jsonl, line 2 is not valid JSON" in result.stdout
    assert "1 parts are damaged or could not be stored" in result.stderr
    assert run.json("stats")["memories"] == 1


def test_an_id_that_is_taken_names_the_fix(run: Any, tmp_path: Path) -> None:
    vault = packed({"a.md": "one"}, "folder", tmp_path / "vault")
    run("import", str(vault))
    (vault / "a.md").write_text("two")
    result = run("import", str(vault))
    assert result.exit_code == 1
    assert "forget it to import it anew" in result.stderr


def test_a_date_that_cannot_be_read_is_named(run: Any, tmp_path: Path) -> None:
    result = run(
        "import", str(packed({"a.md": "---\ndate: 01/05/2024\n---\nText"}, "folder", tmp_path / "v"))
    )
    assert result.exit_code == 0
    assert "not imported         1  date: cannot be read\n    a.md: '01/05/2024'" in result.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["x.bin"],
            "shows no known format; name it as one of memoranda, memoranda-archive, chatgpt, claude, ",
        ),
        (
            ["x.bin", "--from", "word"],
            "'word' is no format; use one of memoranda, memoranda-archive, chatgpt, ",
        ),
        (["-", "--from", "chatgpt"], "only an export of Memoranda can be read from standard input"),
        (["own.jsonl", "--dry-run"], "--dry-run: does not apply to this format"),
        (["own.jsonl", "--user", "ada"], "--user: does not apply to this format"),
        (["vault", "--user", ""], "user_id: must be a string that is not empty"),
        (["missing.zip"], "cannot be read: it is not there"),
    ],
)
def test_errors_are_sentences(words: list[str], said: str, run: Any, tmp_path: Path) -> None:
    packed(
        {"x.bin": b"\x00\x01", "own.jsonl": '{"content": "a"}\n', "vault/a.md": "text"}, "folder", tmp_path
    )
    result = run("import", *words)
    assert result.exit_code == 2
    assert said in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr
