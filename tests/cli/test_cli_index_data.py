"""index beside data folders and databases in use: it leaves them out, and opens no file of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pysqlite3 import dbapi2 as sqlite

import memoranda
from memoranda.errors import InvalidInput

Write = Callable[[str, "str | bytes"], Path]
EMBEDDER = {"url": "hash:64"}
AUDITED = """
import json, os, sys, traceback
from pathlib import Path

import memoranda
from memoranda.cli.app import app
from typer.testing import CliRunner

READERS = ("scan.py", "document_sync.py", "memory_sync.py", "sources.py", "paths.py", "detect.py")
here, words = Path.cwd(), sys.argv[1:]
opened, watching = [], False


def record(event, arguments):
    if not watching or event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    path = Path(os.fsdecode(arguments[0])).absolute()
    if path.is_relative_to(here):
        callers = {Path(frame.filename).name for frame in traceback.extract_stack()}
        opened.append([str(path.relative_to(here)), bool(callers & set(READERS))])


sys.addaudithook(record)
with memoranda.open("other/data", embedder={"url": "hash:64"}) as beside:
    beside.memories.add("a memory of the other folder")
    watching = True
    result = CliRunner().invoke(app, ["index", ".", *words, "--json"])
    watching = False
assert result.exit_code == 0, result.output
print(json.dumps([json.loads(result.stdout), opened]))
"""


@contextmanager
def in_use(path: Path) -> Iterator[None]:
    """A database with a log beside it."""
    with closing(sqlite.connect(str(path))) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE notes (content TEXT)")
        yield


@pytest.mark.parametrize(
    "words",
    [pytest.param((), id="store"), pytest.param(("--scope", "global"), id="scope", marks=pytest.mark.slow)],
)
def test_no_file_of_a_data_folder_is_opened(
    run: Any, write: Write, tmp_path: Path, words: tuple[str, ...]
) -> None:
    write("note.md", "the only note")
    run.json("add", "a memory of the default folder")
    with in_use(tmp_path / "notes.sqlite"):
        command = [sys.executable, "-c", AUDITED, *words]
        environment = {**os.environ, "MEMORANDA_EMBEDDER__URL": "hash:64"}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    told, opened = json.loads(done.stdout)
    stored = "memoranda-data/files/"  # the bytes that the store keeps of what it read
    assert {name for name, reading in opened if reading and not name.startswith(stored)} == {"note.md"}
    assert [name for name, _ in opened if "memoranda.db" in name or ".sqlite" in name] == []
    reasons = {str(Path(one["path"]).relative_to(tmp_path)): one["reason"] for one in told["skipped"]}
    assert reasons == {
        "memoranda-data": "a data folder", "other/data": "a data folder",
        **dict.fromkeys(["notes.sqlite", "notes.sqlite-shm", "notes.sqlite-wal"], "an SQLite database in use"),
    }  # fmt: skip
    assert (told["files"], told["added"], told["chunks"]) == (1, 1, 1)


def test_a_data_folder_named_is_an_error(run: Any, write: Write, tmp_path: Path) -> None:
    run.json("add", "a memory")
    write("memoranda-data/mine.txt", "a text that somebody put there")
    for name in ("", "memoranda.db", "memoranda.lock", "words-tantivy", "words-tantivy/checkpoint"):
        result = run("index", f"memoranda-data/{name}")
        assert result.exit_code == 2, name
        place = "part of the data folder " if name else "a data folder; "
        assert f"{tmp_path / 'memoranda-data' / name} is {place}" in " ".join(result.stderr.split()), name
        assert "name the files and folders that hold the documents" in " ".join(result.stderr.split())
    assert run.json("index", "memoranda-data/mine.txt")["added"] == 1


def test_a_database_in_use_that_is_named_is_an_error(run: Any, write: Write, tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    with in_use(path):
        for name in ("notes.sqlite", "notes.sqlite-wal", "notes.sqlite-shm"):
            result = run("index", name)
            assert result.exit_code == 2
            assert f"{tmp_path / name} is an SQLite database in use; close the program" in " ".join(
                result.stderr.split()
            )
        assert run("import", "notes.sqlite").exit_code == 2
        with (
            memoranda.open(":memory:", embedder=EMBEDDER) as opened,
            pytest.raises(InvalidInput, match=r"source: .*notes\.sqlite is an SQLite database in use"),
        ):
            opened.knowledge.files.upload(path)
    with memoranda.open(":memory:", embedder=EMBEDDER) as opened:
        opened.knowledge.files.upload(path)  # closed, it is a file like any other
    write("orphan.txt-wal", "a text with a strange name")
    assert run.json("index", "orphan.txt-wal")["files"] == 1


@pytest.mark.parametrize("words", [(), ("--scope", "global")], ids=["store", "scope"])
def test_the_vector_index_that_the_command_opens_is_left_out(
    run: Any, write: Write, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """It has no log yet when the folder is walked."""
    pytest.importorskip("sqlite_vec")
    url = f"sqlitevec:{tmp_path / 'docs' / 'vectors.txt'}"
    write("docs/note.md", "the only note")
    for _ in range(2):
        told = run.json("index", "docs", *words, "--set", f"index.url={url}")
    assert [(Path(one["path"]).name, one["reason"]) for one in told["skipped"]] == [
        ("vectors.txt", "an SQLite database in use")
    ]
    assert told["unchanged"] == 1
