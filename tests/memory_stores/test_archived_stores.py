"""Memory stores in an archive: restored beside what is there, and in another scope."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.app.blocking.features import BlockingStoreMemories
from memoranda.memory_stores.values import NewStore, NewStoreMemory, StoreMemory, StoreMemoryChange
from memoranda.types import Subject
from support.waiting import until

ANA = Subject(user_id="ana", role="member")


@pytest.fixture
def notes(rc: BlockingMemoranda) -> BlockingStoreMemories:
    return rc.memory_stores.memories(rc.memory_stores.create(NewStore(name="notes")).id)


def put(notes: BlockingStoreMemories, path: str, content: str = "text") -> StoreMemory:
    return notes.create(NewStoreMemory(path=path, content=content))


def exported(rc: BlockingMemoranda, tmp_path: Path) -> Path:
    path = tmp_path / "all.zip"
    rc.archives.export_to(path, vectors=True)
    return path


def reasons(report: Any) -> list[tuple[str, str]]:
    return [(skipped.kind, skipped.reason) for skipped in report.skipped]


@pytest.mark.parametrize("path", ["/a", "/a/b"])
def test_a_path_that_is_taken_meanwhile_is_not_restored(
    rc: BlockingMemoranda, notes: BlockingStoreMemories, tmp_path: Path, path: str
) -> None:
    other = put(notes, "/lion", "the lion")
    erased = put(notes, "/a", "the zebra")
    archive = exported(rc, tmp_path)
    for note in (erased, other):
        rc.memories.delete(note.id)
    put(notes, path, "newer")
    report = rc.archives.import_from(archive, include_forgotten=True)
    assert [item.path for item in notes.list().data] == [path, "/lion"]
    kinds = {kind for kind, _ in reasons(report)}
    assert kinds == {"memory in a store", "version of a memory in a store", "memory"}
    assert "has the path of another memory that is here" in reasons(report)[0][1]
    assert rc.memories.search("zebra", mode="keyword").results == []
    assert rc.memories.search("lion", mode="keyword").results[0].memory.id == other.id
    assert reasons(rc.archives.import_from(archive, include_forgotten=True)) == reasons(report)
    until(lambda: not rc.memories.stats()["jobs"].get("queued"), "no job to be queued")
    assert notes.get(other.id).content == "the lion"


def test_a_memory_that_was_deleted_meanwhile_stays_deleted(
    rc: BlockingMemoranda, notes: BlockingStoreMemories, tmp_path: Path
) -> None:
    note = put(notes, "/a", "the zebra")
    archive = exported(rc, tmp_path)
    notes.delete(note.id)
    report = rc.archives.import_from(archive)
    assert reasons(report) == [("memory", "belongs to what is not restored")]
    assert rc.memories.search("zebra", mode="keyword").results == []
    versions = rc.memory_stores.versions(notes.inner.store_id).list().data
    assert [version.operation for version in versions] == ["deleted", "created"]
    put(notes, "/a", "the zebra")


def test_an_archive_has_no_text_of_an_erased_memory(
    rc: BlockingMemoranda, notes: BlockingStoreMemories, tmp_path: Path
) -> None:
    rc.memories.delete(put(notes, "/a", "the zebra").id)
    with zipfile.ZipFile(exported(rc, tmp_path)) as archive:
        assert [name for name in archive.namelist() if b"zebra" in archive.read(name)] == []


def test_in_another_scope_memories_stay_with_their_stores(
    rc: BlockingMemoranda, home: Any, tmp_path: Path
) -> None:
    ids = {}
    for name in ("one", "two"):
        store = rc.as_subject(ANA).memory_stores.create(NewStore(name=name))
        notes = rc.as_subject(ANA).memory_stores.memories(store.id)
        ids[store.id] = put(notes, "/a", "the same").id
    archive = exported(rc, tmp_path)
    with home.open("other") as other:
        assert reasons(other.archives.import_from(archive, scope="user:ben")) == []
        ben = Subject(user_id="ben", role="member")
        for store_id, id_ in ids.items():
            memory = other.memories.get(id_)
            assert (memory.user_id, memory.channel_id) == ("ben", store_id)
            notes = other.as_subject(ben).memory_stores.memories(store_id)
            notes.update(id_, StoreMemoryChange(content="changed"))
            assert other.memories.get(id_).content == "/a\n\nchanged"
            (first,) = other.as_subject(ben).memory_stores.versions(store_id).list(operation="created").data
            assert first.created_by is not None
            assert first.created_by.user_id == "ben"
        assert reasons(other.archives.import_from(archive, scope="user:ben")) == []


def test_a_damaged_path_is_not_restored(
    rc: BlockingMemoranda, notes: BlockingStoreMemories, home: Any, tmp_path: Path
) -> None:
    note = put(notes, "/a", "text")
    rc.inner.core.store.db.write(
        lambda c: c.select("UPDATE store_memories SET path = 'a//b' RETURNING 1")
    ).result()
    archive = exported(rc, tmp_path)
    with home.open("other") as other:
        report = other.archives.import_from(archive)
        assert reasons(report)[0] == (
            "memory in a store", "path: must be / and 1 to 20 segments, such as /notes/todo.md",
        )  # fmt: skip
        assert other.memory_stores.memories(notes.inner.store_id).list().data == []
        assert note.id not in [hit.memory.id for hit in other.memories.search("text", mode="keyword").results]
