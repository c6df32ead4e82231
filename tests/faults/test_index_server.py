"""The server of the vectors is gone for a while: writes are kept, words answer, and it catches up by itself."""

from __future__ import annotations

import time
from operator import not_
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.app import maintenance
from support import postgres
from support.waiting import until


@pytest.mark.slow
def test_an_index_server_that_was_away_catches_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server: Any = postgres.Server()
    monkeypatch.setattr(maintenance, "RETRY_AFTER", 0.3)
    url = f"pgvector:{server.fresh_url()}"
    settings = {"index": {"url": url}, "embedder": {"url": "hash:64"}, "database": {"retry_seconds": 0.5}}
    with memoranda.open(tmp_path, **settings) as rc:
        gone = rc.memories.add("amber one").memory.id
        rewritten = rc.memories.add("basalt two").memory.id
        assert rc.memories.search("amber", mode="dense", limit=1).results[0].memory.id == gone
        server.stop()
        late = rc.memories.add("cedar three, while the index is away")
        assert late.created
        rc.memories.delete(gone)
        rc.memories.update(rewritten, content="dune four")
        found = rc.memories.search("cedar")
        assert found.degraded == ["index"]
        assert found.results[0].memory.id == late.memory.id
        time.sleep(2)
        server.start()
        until(lambda: rc.memories.search("cedar").degraded, "a search that is not degraded", accept=not_)
        for text, id_ in (("cedar three, while the index is away", late.memory.id), ("dune four", rewritten)):
            hit = rc.memories.search(text, mode="dense", limit=1).results[0]
            assert (hit.memory.id, round(hit.similarity or 0, 3)) == (id_, 1.0)
        assert rc.inner.core.store.index.count("default") == 2
