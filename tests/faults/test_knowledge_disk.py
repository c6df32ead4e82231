"""A disk that fills under uploads and under indexing: refused or put off, nothing half stored, and on it goes after."""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

import memoranda
from memoranda.knowledge import pipeline
from memoranda.storage.data_lock import MARK
from support.disks import fill, mounted
from support.waiting import until

from . import indexer


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 120 MiB: the log of the rows alone may take 64."""
    with mounted(tmp_path / "small", 120) as folder:
        yield folder


@pytest.fixture
def served(small_disk: Path, tmp_path: Path) -> Iterator[tuple[httpx.Client, Any]]:
    """A server with its folder on the small disk, and the slow model."""
    settings = {**indexer.SETTINGS, "data": str(small_disk / "data"), "server": {"port": 0}, "jobs": {}}
    with (
        indexer.living(tmp_path / "said.log", "serve", json.dumps(settings)) as life,
        httpx.Client(base_url=life.ready(), timeout=30) as http,
    ):
        yield http, life


def upload(http: httpx.Client, content: bytes) -> httpx.Response:
    """A file sent."""
    return http.post("/v1/files", files={"file": ("a.txt", content)}, data={"purpose": "assistants"})


def kept(folder: Path) -> set[str]:
    """The bytes that are there, begun or whole."""
    found = [path.name for path in (folder / "data" / "files").rglob("*") if path.is_file()]
    return set(found) - {MARK}


def test_an_upload_that_does_not_fit(small_disk: Path, served: tuple[httpx.Client, Any]) -> None:
    http, _ = served
    first = upload(http, b"small").json()["id"]
    (small_disk / "some").write_bytes(bytes(90 << 20))
    found = upload(http, b"x" * (49 << 20))
    assert (found.status_code, found.json()["error"]["code"]) == (507, "disk_full")
    assert kept(small_disk) == {first}
    ballast = fill(small_disk)
    store = http.post("/v1/vector_stores", json={})
    found = upload(http, b"y" * 100_000)
    assert (found.status_code, found.json()["error"]["code"]) == (507, "disk_full")
    assert http.get(f"/v1/files/{first}/content").content == b"small"
    assert kept(small_disk) == {first}
    ballast.unlink()
    second = upload(http, b"x" * (2 << 20))
    assert second.status_code == 200
    assert kept(small_disk) == {first, second.json()["id"]}
    assert store.status_code in (200, 507)
    assert [one["id"] for one in http.get("/v1/files").json()["data"]] == [second.json()["id"], first]


@pytest.mark.slow
def test_a_disk_that_fills_while_files_are_indexed(
    small_disk: Path, served: tuple[httpx.Client, Any]
) -> None:
    """However long it stays full, the files wait; when there is room they are completed."""
    http, life = served
    rng = random.Random(2)
    texts = [" ".join(f"w{rng.randrange(5_000)}" for _ in range(3_000)) for _ in range(30)]
    ids = [upload(http, text.encode()).json()["id"] for text in texts]
    store = http.post("/v1/vector_stores", json={"file_ids": ids}).json()["id"]
    path = f"/v1/vector_stores/{store}"
    until(
        lambda: http.get(path).json()["file_counts"],
        "four indexed files",
        accept=lambda counts: counts["completed"] > 3,
        every=0.02,
    )
    end = time.monotonic() + 3.0
    while time.monotonic() < end:
        fill(small_disk)
        time.sleep(0.05)
    full = http.get(path).json()["file_counts"]
    print(full)
    assert full["completed"] < len(ids)
    assert full["failed"] == 0
    assert http.post(f"{path}/search", json={"query": texts[0][:60]}).status_code == 200
    (small_disk / "ballast").unlink()
    until(
        lambda: http.get(path).json()["file_counts"],
        "no file in progress",
        accept=lambda counts: not counts["in_progress"],
    )
    assert http.get(path).json()["file_counts"]["completed"] == len(ids)
    assert life.end(15) == 0
    subprocess.run(["mount", "-o", "remount,size=200m", str(small_disk)], check=True)
    with memoranda.open(small_disk / "data", **indexer.SETTINGS) as opened:
        indexer.settle(opened)
        indexer.check_nothing_else(opened, store)


def test_no_room_to_put_a_file_for_its_reader(
    small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes that are kept in the database are put on a disk to be read: the file waits for room there."""
    monkeypatch.setattr(pipeline, "RETRY_AFTER", 0.05)
    settings = {**indexer.SETTINGS, "files": {"url": "database:"}, "jobs": {"max_attempts": 1}}
    with memoranda.open(tmp_path / "data", **settings) as opened:
        (tmp_path / "data" / "reading").symlink_to(small_disk)
        ballast = fill(small_disk)
        store = opened.knowledge.stores.create().id
        opened.knowledge.stores.upload(store, b"some text", "a.txt")
        full = "SELECT 1 FROM jobs WHERE error LIKE '%disk is full%'"
        until(lambda: indexer.rows(opened, full), "a job that met the full disk", every=0.02)
        assert opened.knowledge.stores.get(store).file_counts.in_progress == 1
        ballast.unlink()
        assert opened.knowledge.stores.wait(store).file_counts.completed == 1
        assert list(small_disk.iterdir()) == []
