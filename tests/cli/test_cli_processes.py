"""The program as its own process: two at once, through a server, stopped in the middle, into a closed pipe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.client import Client
from support.waiting import until

PROGRAM = [sys.executable, "-m", "memoranda"]
ENVIRONMENT = {**os.environ, "MEMORANDA_EMBEDDER__URL": "hash:64"}


def call(*words: str, folder: Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=folder,
        env=ENVIRONMENT,
        input=given,
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """A server of ./memoranda-data on a free port; its URL."""
    with subprocess.Popen(
        [*PROGRAM, "serve", "--port", "0"], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        assert first.startswith("Memoranda serves"), first
        yield first.split()[-1]
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        assert process.wait(60) == 0, rest
        assert "Traceback" not in rest


def test_a_second_process_is_told_who_has_the_folder(tmp_path: Path) -> None:
    with memoranda.open(tmp_path / "data", embedder={"url": "hash:64"}):
        told = call("add", "one", "--data", "data", folder=tmp_path)
        looked = call("doctor", "--data", "data", "--json", folder=tmp_path)
    assert told.returncode == 1
    assert told.stderr.count("\n") == 1
    assert f"is open in another process (pid {os.getpid()})" in told.stderr
    assert looked.returncode == 0
    assert "stop that process" in looked.stdout
    assert call("add", "one", "--data", "data", folder=tmp_path).returncode == 0


@pytest.mark.slow
def test_commands_go_through_the_server(server: str, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("the meter is read in June")
    added = call("add", "the key is under the pot", "--json", folder=tmp_path)
    assert json.loads(added.stdout)["created"]
    assert f"is served at {server}; going through it" in added.stderr
    texts = ("--scope", "global", "--json")
    assert json.loads(call("index", "note.txt", *texts, folder=tmp_path).stdout)["added"] == 1
    assert json.loads(call("index", "note.txt", *texts, folder=tmp_path).stdout)["unchanged"] == 1
    found = json.loads(call("search", "meter", "--limit", "1", "--json", folder=tmp_path).stdout)
    assert found["results"][0]["memory"]["content"] == "the meter is read in June"
    assert json.loads(call("stats", "--json", folder=tmp_path).stdout)["memories"] == 2
    out = call("export", folder=tmp_path).stdout
    assert len(out.splitlines()) == 3
    assert json.loads(call("import", "-", "--json", folder=tmp_path, given=out).stdout)["present"] == 2
    assert json.loads(call("reindex", "--all", "--json", folder=tmp_path).stdout)["state"] == "completed"
    assert json.loads(call("compact", "--json", folder=tmp_path).stdout)["state"] == "completed"
    wrong = call("search", "x", "--limit", "0", folder=tmp_path)
    assert wrong.returncode == 2
    assert "limit" in wrong.stderr
    looked = call("doctor", "--json", folder=tmp_path)
    assert looked.returncode == 0
    assert "all in both indexes" in looked.stdout
    alone = call("reindex", "--rebuild", folder=tmp_path)
    assert (alone.returncode, server in alone.stderr) == (1, True)


@pytest.mark.slow
def test_a_store_is_filled_and_searched_through_the_server(server: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(5):
        (folder / f"{number}.txt").write_text(f"the meter of house {number} is read in June")

    def told(*words: str) -> Any:
        answer = call(*words, "--json", folder=tmp_path)
        assert answer.returncode == 0, answer.stderr
        assert f"is served at {server}; going through it" in answer.stderr
        return json.loads(answer.stdout)

    assert told("index", "notes", "--meta", "team=red")["added"] == 5
    (folder / "1.txt").write_text("the meter of house 1 is broken")
    (folder / "2.txt").unlink()
    again = told("index", "notes", "--prune")
    assert (again["unchanged"], again["replaced"], again["removed"]) == (3, 1, 1)
    (best,) = told("search", "broken meter", "--store", "documents", "--mode", "keyword", "--limit", "1")[
        "data"
    ]
    assert best["attributes"]["path"] == str(folder / "1.txt")
    assert best["attributes"]["team"] == "red"
    (folder / "bad.pdf").write_bytes(b"%PDF-1.7 no pdf")
    failed = call("index", "notes", folder=tmp_path)
    assert (failed.returncode, "bad.pdf: invalid_file: " in failed.stderr) == (1, True)
    assert told("stores", "delete", "documents")["files_deleted"] == 5
    with Client(server) as client:
        assert client.knowledge.files.list().data == []


@pytest.mark.slow
def test_killed_while_indexing_the_next_run_goes_on(tmp_path: Path) -> None:
    folder, data = tmp_path / "notes", tmp_path / "memoranda-data"
    folder.mkdir()
    for number in range(60):
        (folder / f"{number}.txt").write_text(f"note {number}. " + "word " * (number * 20))
    for seconds in (0.0, 0.1, 0.3):
        with subprocess.Popen([*PROGRAM, "index", "notes"], cwd=tmp_path, env=ENVIRONMENT) as process:
            until((data / "memoranda.db").exists, "the database", every=0.02)
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
    done = call("index", "notes", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    with memoranda.open(data, embedder={"url": "hash:64"}) as opened:
        (store,) = opened.knowledge.stores.list().data
        files = opened.knowledge.stores.files(store.id, limit=100).data
        usage = opened.knowledge.admin.usage()
    assert {one.status for one in files} == {"completed"}
    assert {one.attributes["path"] for one in files} == {str(path) for path in folder.iterdir()}
    assert len(files) == usage.files == 60
    assert usage.chunks == sum(one.chunk_count for one in files)


@pytest.mark.slow
def test_ctrl_c_while_indexing_says_how_to_go_on(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for number in range(400):
        (folder / f"{number}.txt").write_text(f"note {number}. " + "word " * 400)
    with subprocess.Popen(
        [*PROGRAM, "index", "notes"], cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True
    ) as process:
        files = tmp_path / "memoranda-data" / "files"
        until(lambda: list(files.rglob("file-*")), "the first file", every=0.02)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on" in told
    assert "Traceback" not in told


def test_ctrl_c_ends_without_a_traceback(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "import", "-"],
        cwd=tmp_path,
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        until((tmp_path / "memoranda-data" / "memoranda.lock").exists, "the lock")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in told


@pytest.mark.slow
def test_a_reader_that_stops_reading_is_no_error(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({"content": f"memory {number} {'x' * 500}"}) for number in range(500))
    assert call("import", "-", folder=tmp_path, given=lines).returncode == 0
    with subprocess.Popen(
        [*PROGRAM, "export"], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_help_and_stats_do_not_load_what_they_do_not_need(tmp_path: Path) -> None:
    look = "import sys; sys.argv[1:] = {words!r}; from memoranda.cli import main\n"
    look += "try: main()\nfinally: print(sorted({{m.split('.')[0] for m in sys.modules}}), file=sys.stderr)"

    def loaded(*words: str) -> str:
        told = subprocess.run(
            [sys.executable, "-c", look.format(words=list(words))],
            cwd=tmp_path, env={**os.environ, "MEMORANDA_EMBEDDER__URL": ""}, capture_output=True, text=True,
        )  # fmt: skip
        assert told.returncode == 0, told.stderr
        return told.stderr

    with memoranda.open(tmp_path / "memoranda-data"):
        pass
    assert not {"'numpy'", "'onnxruntime'", "'httpx'"} & set(loaded("--version").strip(" []\n").split(", "))
    for words in (["--help"], ["stats"]):
        assert not {"'mcp'", "'mcp_types'", "'httpx2'"} & set(loaded(*words).strip(" []\n").split(", "))
    assert not {"'onnxruntime'", "'httpx'", "'uvicorn'"} & set(loaded("stats").strip(" []\n").split(", "))
