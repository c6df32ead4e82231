"""What is taken away while it is indexed: the answers of a real server, and nothing left in table, index or file."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from operator import not_
from pathlib import Path
from typing import Any

import httpx
import pytest

import memoranda
from support.waiting import until

from . import indexer

EMPTY = (
    "files",
    "vector_stores",
    "store_files",
    "file_batches",
    "chunks",
    "embeddings",
    "removing",
    "uploads",
)
STARTED = "SELECT count(*) FROM chunks"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server with a model that takes a millisecond a text, whose library is empty when it has ended."""
    folder = tmp_path_factory.mktemp("taken") / "data"
    settings = {**indexer.SETTINGS, "data": str(folder), "server": {"port": 0}, "jobs": {}}
    words, log = ("serve", json.dumps(settings)), folder.with_name("said.log")
    with indexer.living(log, *words, INDEXER_TEXT_SECONDS="0.001") as life:
        with httpx.Client(base_url=life.ready(), timeout=20) as http:
            yield Slow(http, folder)
        assert life.end(15) == 0
    assert "Traceback" not in log.read_text()
    with memoranda.open(folder, **indexer.SETTINGS) as opened:
        indexer.settle(opened)
        indexer.check_nothing_else(opened, "none")


@pytest.fixture
def slow(served: Any) -> Iterator[Any]:
    """The server; nothing may be left in its tables when the work that a test caused is done."""
    yield served
    until(
        lambda: served.count("SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')"),
        "no work under way",
        accept=not_,
    )
    for table in EMPTY:
        assert served.count(f"SELECT count(*) FROM {table}") == 0, table


class Slow:
    """The server, and short ways to fill it."""

    def __init__(self, http: httpx.Client, folder: Path) -> None:
        self.http = http
        self.folder = folder

    def file(self, words: int, seed: int = 0) -> str:
        """The id of a new file; thirty words are about a chunk."""
        rng = random.Random(seed)
        text = " ".join(f"w{rng.randrange(5_000)}" for _ in range(words))
        made = self.http.post("/v1/files", files={"file": ("a.txt", text)}, data={"purpose": "assistants"})
        return str(made.json()["id"])

    def begun(self, *words: int) -> tuple[str, str, list[str]]:
        """A store and a batch of files of so many words, of which the first is half stored."""
        files = [self.file(count, seed) for seed, count in enumerate(words)]
        store = self.http.post("/v1/vector_stores", json={}).json()["id"]
        batch = self.http.post(f"/v1/vector_stores/{store}/file_batches", json={"file_ids": files}).json()
        until(lambda: self.count("SELECT sum(writing) FROM store_files"), "a file being written", every=0.005)
        return store, batch["id"], files

    def count(self, sql: str) -> Any:
        """The first value."""
        with indexer.connected(self.folder) as raw:
            return raw.execute(sql).fetchone()[0]

    def status(self, path: str) -> int:
        """What a GET answers."""
        return self.http.get(path).status_code

    def taken(self, path: str) -> None:
        """Deletes it; a second time it is not there."""
        found = self.http.delete(path)
        assert (found.status_code, found.json()["deleted"]) == (200, True)
        assert self.http.delete(path).status_code == 404

    def found(self, store: str) -> list[Any]:
        """What a search finds."""
        asked = {"query": "w1 w2 w3 w4 w5 w6", "max_num_results": 50}
        hits: list[Any] = self.http.post(f"/v1/vector_stores/{store}/search", json=asked).json()["data"]
        return hits

    def clear(self, store: str | None, files: list[str]) -> None:
        """Takes the rest away."""
        if store is not None:
            self.taken(f"/v1/vector_stores/{store}")
        for file in files:
            self.taken(f"/v1/files/{file}")


LARGE = 50_000
"""Words of a file that is stored in two steps."""


def test_a_file_that_is_deleted(slow: Any) -> None:
    store, batch, (large, small) = slow.begun(LARGE, 500)
    slow.taken(f"/v1/files/{large}")
    path = f"/v1/vector_stores/{store}"
    assert slow.status(f"{path}/files/{large}") == slow.status(f"/v1/files/{large}/content") == 404
    assert {hit["file_id"] for hit in slow.found(store)} <= {small}
    until(
        lambda: slow.http.get(path).json()["file_counts"],
        "no file in progress",
        accept=lambda counts: counts["in_progress"] == 0,
    )
    counts = slow.http.get(f"{path}/file_batches/{batch}").json()["file_counts"]
    assert (counts["completed"], counts["total"]) == (1, 1)
    slow.clear(store, [small])


def test_a_store_that_is_deleted(slow: Any) -> None:
    store, batch, files = slow.begun(LARGE, 500, 600, 700, 800)
    slow.taken(f"/v1/vector_stores/{store}")
    for path in ("", f"/files/{files[0]}", f"/file_batches/{batch}", "/files"):
        assert slow.status(f"/v1/vector_stores/{store}{path}") == 404, path
    asked = slow.http.post(f"/v1/vector_stores/{store}/search", json={"query": "w1"})
    assert asked.status_code == 404
    assert [slow.status(f"/v1/files/{file}") for file in files] == [200] * 5
    slow.clear(None, files)


def test_a_file_that_is_detached_and_comes_again(slow: Any) -> None:
    """With another chunking: none of the first attempt's chunks is left among those of the second."""
    store, _, (large,) = slow.begun(LARGE)
    path = f"/v1/vector_stores/{store}/files"
    slow.taken(f"{path}/{large}")
    assert slow.found(store) == []
    assert slow.status(f"/v1/files/{large}") == 200
    split = {"type": "static", "static": {"max_chunk_size_tokens": 400, "chunk_overlap_tokens": 0}}
    again = slow.http.post(path, json={"file_id": large, "chunking_strategy": split})
    assert (again.status_code, again.json()["status"]) == (200, "in_progress")
    until(
        lambda: slow.http.get(f"{path}/{large}").json(),
        "the indexed file",
        accept=lambda file: file["status"] == "completed",
    )
    count = slow.http.get(f"{path}/{large}").json()["chunk_count"]
    until(lambda: slow.count(STARTED) == count, "no chunk of the first attempt")
    slow.clear(store, [large])


def test_a_batch_that_is_cancelled(slow: Any) -> None:
    store, batch, files = slow.begun(LARGE, 100, LARGE, 100, 100, LARGE)
    path = f"/v1/vector_stores/{store}/file_batches/{batch}"
    ended = slow.http.post(f"{path}/cancel")
    assert (ended.status_code, ended.json()["status"]) == (200, "cancelled")
    counts = ended.json()["file_counts"]
    assert counts["in_progress"] == 0
    assert counts["cancelled"] >= 2
    assert counts["cancelled"] + counts["completed"] == counts["total"] == 6
    time.sleep(0.3)
    assert slow.http.post(f"{path}/cancel").json()["file_counts"] == counts
    states = {one["id"]: one["status"] for one in slow.http.get(f"{path}/files").json()["data"]}
    assert {hit["file_id"] for hit in slow.found(store)} <= {
        file for file, state in states.items() if state == "completed"
    }
    cancelled = next(file for file, state in states.items() if state == "cancelled" and file != files[0])
    again = slow.http.post(f"/v1/vector_stores/{store}/files", json={"file_id": cancelled}).json()
    assert again["status"] == "in_progress"
    slow.clear(store, files)


def test_everything_at_once(slow: Any) -> None:
    """Files, stores and attachments go in any order while all are being indexed, and none of it is refused oddly."""
    rng = random.Random(3)
    files = [slow.file(rng.choice([50, 400, 3_000]), seed) for seed in range(16)]
    stores = [slow.http.post("/v1/vector_stores", json={"file_ids": files}).json()["id"] for _ in range(3)]
    paths = [f"/v1/vector_stores/{store}" for store in stores]
    paths += [f"/v1/files/{file}" for file in files]
    paths += [f"/v1/vector_stores/{store}/files/{rng.choice(files)}" for store in stores for _ in range(5)]
    rng.shuffle(paths)
    for path in paths:
        time.sleep(rng.random() * 0.05)
        assert slow.http.delete(path).status_code in (200, 404)
    assert slow.http.get("/v1/files").json()["data"] == []
