"""What is no longer what was written is reported, and neither returned nor quoted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pysqlite3 import dbapi2

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import DamagedData
from memoranda.knowledge.integrity import compare_files
from memoranda.store import integrity

QUICK: dict[str, Any] = {"url": "hash:64"}
TEXTS = {f"rent-{number}": f"The rent of flat {number} is 100 euro" for number in range(5)}


def stored(folder: Path) -> None:
    """A folder with five memories and a document."""
    with memoranda.open(folder, embedder=QUICK) as r:
        for id_, text in TEXTS.items():
            r.memories.add(text, id=id_, user_id="ana")
        store = r.knowledge.stores.create(name="papers")
        r.knowledge.stores.upload(store.id, b"The deposit is 300 euro.", "deposit.txt", wait=10.0)


def flip(folder: Path, old: bytes, new: bytes) -> None:
    """Change the bytes of the rows on disk, as a failing disk does."""
    with dbapi2.connect(folder / "memoranda.db") as c:
        c.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    path = folder / "memoranda.db"
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def opened(folder: Path) -> BlockingMemoranda:
    return memoranda.open(folder, embedder=QUICK)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    stored(tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize("new", [b"flat 3 is 900 euro", b"flat 3 is \xff00 euro"])
def test_a_damaged_text_is_not_found_and_not_quoted(folder: Path, new: bytes) -> None:
    flip(folder, b"flat 3 is 100 euro", new)
    with opened(folder) as r:
        found = r.memories.search("rent of flat 3", limit=10)
        assert {hit.memory.id for hit in found.results} == TEXTS.keys() - {"rent-3"}
        assert found.degraded == ["rows"]
        context = r.context("What is the rent of flat 3?", threshold=0)
        assert "900" not in context.text
        assert "rows" in context.degraded
        with pytest.raises(DamagedData, match="rent-3"):
            r.memories.get("rent-3")
        store = r.inner.core.store
        compared = store.compare_texts("default", everything=True)
        assert (compared.total, compared.damaged) == (6, ["rent-3"])
        assert len(store.damage) == 1
        r.memories.delete("rent-3")
        assert r.memories.search("rent of flat 3", limit=10).degraded == []


def test_a_sample_of_the_texts_is_compared(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memoranda.store.store.COMPARED", 2)
    flip(folder, b"flat 3 is 100 euro", b"flat 3 is 900 euro")
    with opened(folder) as r:
        store = r.inner.core.store
        samples = [store.compare_texts("default", everything=False) for _ in range(50)]
        assert max(sample.total for sample in samples) == 2
        assert [id_ for sample in samples for id_ in sample.damaged].count("rent-3") > 0


def test_a_damaged_file_is_not_read(folder: Path) -> None:
    (file,) = (
        path for path in (folder / "files").rglob("*") if path.is_file() and b"300" in path.read_bytes()
    )
    file.chmod(0o600)
    file.write_bytes(file.read_bytes().replace(b"300", b"900"))
    with opened(folder) as r:
        (row,) = r.knowledge.files.list().data
        with pytest.raises(DamagedData, match="upload it again"):
            b"".join(r.knowledge.files.content(row.id)[1])
        assert compare_files(r.inner.core, "default", everything=False).damaged == [row.id]
        other = r.knowledge.stores.create(name="others")
        attached = r.knowledge.stores.attach(other.id, [row.id], wait=10.0)[0]
        assert attached.last_error is not None
        assert "not those that were uploaded" in attached.last_error.message


def test_bytes_come_only_whole() -> None:
    noted: list[bool] = []
    right = "a" * 64
    pieces = integrity.verified(iter([b"one", b"two"]), right, lambda: noted.append(True))
    assert next(pieces) == b"one"
    with pytest.raises(DamagedData):
        next(pieces)
    assert noted == [True]
