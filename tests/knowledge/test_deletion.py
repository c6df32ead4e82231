"""What is deleted is gone: from every table, every index and every file, by its ids and by a word of its text.

The journals keep numbers and ids of ours, never a text: `removals` the ids of rows that indexes elsewhere must drop,
`jobs` what was done to which file and store.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from memoranda.clock import now_micros
from memoranda.errors import NotFound, StorageError
from memoranda.knowledge import pipeline
from memoranda.knowledge.removal import REMOVE_JOB, hide
from memoranda.knowledge.values import NewStoreFile
from memoranda.store import job_kinds
from memoranda.text.splitting import Chunking
from memoranda.types import Subject
from support.waiting import until

SECRET = "zyzzyvacorp"
"""One token of a word index, several of a model."""
JOURNALS = {"removals", "jobs"}
TABLES = {
    "sqlite": "SELECT name, name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    "postgresql": "SELECT table_name, table_name FROM information_schema.tables WHERE table_schema = current_schema()",
}


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_kinds, "backoff", lambda attempt: 0.01)


def text_of(number: int = 0) -> str:
    """A text with the secret in every chunk."""
    return "".join(f"{SECRET} stands in line {number} {n} of the reeds.\n" for n in range(30))


async def pieces(content: str) -> AsyncIterator[bytes]:
    """A file as it comes."""
    yield content.encode()


def tables(shelf: Any) -> list[str]:
    """Every table there is."""
    names = [name for name, _ in shelf.rows(TABLES["postgresql" if shelf.core.store.db.shared else "sqlite"])]
    assert {"files", "chunks", "memories", "embeddings", "vector_stores", "uploads", "removing"} <= set(names)
    return names


def holding(shelf: Any, *needles: str) -> set[str]:
    """The tables in which any column of any row holds one of the needles, journals left out for ids."""
    found = set()
    for table in tables(shelf):
        for row in shelf.rows(f"SELECT * FROM {table}"):
            told = " ".join(bytes(value).decode("latin-1") if isinstance(value, bytes | memoryview) else str(value)
                            for value in row)  # fmt: skip
            found |= {table for needle in needles if needle in told.lower()}
    return found


def in_files(shelf: Any, *needles: str) -> list[str]:
    """The files under the data folder's `files` that are called by, or hold, one of the needles."""
    root = getattr(shelf.core.blobs, "root", None)
    if root is None:
        return []
    held = [path for path in root.rglob("*") if path.is_file()]
    return [path.name for path in held for n in needles if n in path.name or n.encode() in path.read_bytes()]


def gone(shelf: Any, *ids: str) -> None:
    """Nothing is left of the secret, nor of the ids but in the journals."""
    shelf.settle()
    assert holding(shelf, SECRET) == set()
    assert holding(shelf, *(id_.lower() for id_ in ids)) <= JOURNALS
    assert in_files(shelf, SECRET, *ids) == []
    left = shelf.rows("SELECT count(*) FROM chunks WHERE tenant_id = ?", shelf.tenant)[0][0]
    index, words = shelf.core.store.index, shelf.core.store.words
    assert index.count(shelf.tenant) == words.count(shelf.tenant) == left
    rows = shelf.rows("SELECT count(*) FROM embeddings WHERE tenant_id = ?", shelf.tenant)
    assert rows == [(left,)]
    assert shelf.rows("SELECT * FROM removing") == []


@pytest.fixture
def full(lone: Any) -> tuple[Any, str, str]:
    """A store with a file of many chunks, another file beside it, and both ids."""
    store = lone.store("the kite is nobody's secret", chunking=Chunking(size=16, overlap=4)).id
    file = lone.attach(store, text_of(), f"{SECRET}.txt", attributes={"about": SECRET})
    indexed = lone.admin.stores.file(store, file)
    assert indexed.status == "completed", indexed.last_error
    assert indexed.chunk_count > 20
    assert {"files", "memories", "store_files"} <= holding(lone, SECRET)
    if hasattr(lone.core.blobs, "root"):
        assert in_files(lone, SECRET) == [file]
    assert lone.search(store, SECRET, mode="keyword").data
    return lone, store, file


def test_a_deleted_file(full: tuple[Any, str, str]) -> None:
    shelf, store, file = full
    shelf.admin.files.delete(file)
    gone(shelf, file)
    assert shelf.search(store, SECRET, mode="keyword").data == []
    assert [hit.text for hit in shelf.search(store, "kite").data] == ["the kite is nobody's secret"]


def test_a_file_that_is_deleted_goes_from_every_store(full: tuple[Any, str, str]) -> None:
    shelf, _, file = full
    others = [shelf.admin.stores.create(file_ids=[file]).id for _ in range(2)]
    shelf.settle()
    shelf.admin.files.delete(file)
    gone(shelf, file)
    assert all(shelf.admin.stores.get(other).file_counts.total == 0 for other in others)


def test_forgetting_erases_what_a_deletion_has_left(
    full: tuple[Any, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shelf, _, file = full
    monkeypatch.setattr(shelf.core.jobs, "place", partial(shelf.core.jobs.place, delay=3600.0))
    shelf.admin.files.delete(file)
    assert "memories" in holding(shelf, SECRET)
    shelf.rc.as_subject(Subject(tenant_id=shelf.tenant, role="admin")).memories.forget(scopes=["all"])
    assert holding(shelf, SECRET) == set()
    gone(shelf, file)


def test_a_detached_file_stays_a_file(full: tuple[Any, str, str]) -> None:
    shelf, store, file = full
    shelf.admin.stores.detach(store, file)
    assert shelf.search(store, SECRET, limit=50).data[0].text == "the kite is nobody's secret"
    shelf.settle()
    held = holding(shelf, SECRET, file)
    assert held - {"blob_pieces", "blobs"} <= {"files"} | JOURNALS
    assert shelf.core.store.words.count(shelf.tenant) == shelf.core.store.index.count(shelf.tenant) == 1
    shelf.admin.files.delete(file)
    gone(shelf, file)


def test_a_deleted_store_leaves_its_files(full: tuple[Any, str, str]) -> None:
    shelf, store, file = full
    batch = shelf.admin.stores.create_batch(store, [NewStoreFile(file_id=file)]).id
    shelf.admin.stores.delete(store)
    with pytest.raises(NotFound):
        shelf.search(store, SECRET)
    shelf.settle()
    assert holding(shelf, store, batch) <= JOURNALS
    assert shelf.rows("SELECT count(*) FROM chunks") == [(0,)]
    assert shelf.core.store.words.count(shelf.tenant) == shelf.core.store.index.count(shelf.tenant) == 0
    assert shelf.admin.files.get(file).filename == f"{SECRET}.txt"
    shelf.admin.files.delete(file)
    gone(shelf, file, store)


def test_everything_of_a_tenant(full: tuple[Any, str, str]) -> None:
    shelf, store, file = full
    for one in shelf.admin.stores.list().data:
        shelf.admin.stores.delete(one.id)
    for one in shelf.admin.files.list().data:
        shelf.admin.files.delete(one.id)
    gone(shelf, file, store)
    kept = {table for table in tables(shelf) if shelf.rows(f"SELECT * FROM {table} LIMIT 1")}
    others = {
        "counters",
        "left_places",
        "meta",
        "schema_history",
        "spaces",
        "spending",
        "tenants",
        "word_tenants",
    }
    assert kept <= JOURNALS | others | {"forgotten"}


def test_files_that_expire(full: tuple[Any, str, str]) -> None:
    shelf, _, file = full
    shelf.change("UPDATE files SET expires_at = 1 WHERE id = ?", file)
    shelf.look_at_the_clock()
    with pytest.raises(NotFound):
        shelf.admin.files.get(file)
    gone(shelf, file)


def test_stores_that_expire(full: tuple[Any, str, str]) -> None:
    shelf, store, file = full
    shelf.change("UPDATE vector_stores SET expires_days = 1, last_active_at = 1 WHERE id = ?", store)
    shelf.look_at_the_clock()
    assert shelf.admin.stores.get(store).status == "expired"
    assert shelf.admin.stores.get(store).file_counts.total == 0
    assert shelf.rows("SELECT count(*) FROM chunks") == [(0,)]
    shelf.admin.files.delete(file)
    gone(shelf, file)


@pytest.mark.parametrize("parts", [1, 3])
def test_a_file_that_came_in_parts(lone: Any, parts: int) -> None:
    content = text_of().encode()
    begun = lone.admin.uploads.create(filename=f"{SECRET}.txt", bytes=len(content), purpose="assistants")
    size = -(-len(content) // parts)
    ids = [
        lone.admin.uploads.add_part(begun.id, pieces(content[at : at + size].decode())).id
        for at in range(0, len(content), size)
    ]
    file = lone.admin.uploads.complete(begun.id, ids).file.id
    assert len(list(lone.core.blobs.stored(-10.0))) == 1
    store = lone.admin.stores.create(file_ids=[file]).id
    lone.settle()
    assert lone.search(store, SECRET, mode="keyword").data
    lone.admin.files.delete(file)
    gone(lone, file, *ids)


@pytest.mark.parametrize("how", ["cancelled", "expired"])
def test_an_upload_that_comes_to_nothing(lone: Any, how: str) -> None:
    begun = lone.admin.uploads.create(filename="a.txt", bytes=5_000, purpose="assistants").id
    part = lone.admin.uploads.add_part(begun, pieces(text_of())).id
    if how == "cancelled":
        lone.admin.uploads.cancel(begun)
    else:
        lone.change("UPDATE uploads SET expires_at = expires_at - 3600000000 WHERE id = ?", begun)
        lone.look_at_the_clock()
    assert lone.admin.uploads.get(begun).status == how
    gone(lone, part)
    assert list(lone.core.blobs.stored(-10.0)) == []


def test_uploads_that_ended_are_forgotten(lone: Any) -> None:
    """Their names would be kept for ever otherwise."""
    begun = lone.admin.uploads.create(filename=f"{SECRET}.txt", bytes=5, purpose="assistants").id
    lone.admin.uploads.cancel(begun)
    lone.change("UPDATE uploads SET expires_at = expires_at - 3600000000 WHERE id = ?", begun)
    lone.look_at_the_clock()
    assert lone.admin.uploads.get(begun).status == "cancelled"
    lone.change("UPDATE uploads SET expires_at = expires_at - 86400000000 WHERE id = ?", begun)
    lone.look_at_the_clock()
    with pytest.raises(NotFound):
        lone.admin.uploads.get(begun)
    gone(lone, begun)


def test_an_indexing_that_failed(lone: Any, fragile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline, "BATCH", 5)
    asked: list[Any] = []

    def refuse(texts: Any) -> None:
        asked.append(texts)
        if len(asked) > 2:
            raise RuntimeError("the model fell over")

    fragile.refuse = refuse
    store = lone.admin.stores.create(chunking=Chunking(size=16, overlap=0)).id
    file = lone.file(text_of(), "a.txt").id
    lone.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    until(lambda: lone.admin.stores.file(store, file).status == "failed", "a failed file")
    lone.settle()
    assert holding(lone, SECRET) - {"blob_pieces"} == set()
    assert lone.core.store.words.count(lone.tenant) == lone.core.store.index.count(lone.tenant) == 0
    lone.admin.files.delete(file)
    gone(lone, file)


@pytest.mark.parametrize("way", ["detach", "delete"])
def test_what_is_on_its_way_out_is_not_found(full: tuple[Any, str, str], way: str) -> None:
    """From the moment the call returns, though the chunks are still there."""
    shelf, store, file = full
    removal = shelf.core.jobs.kinds["knowledge.remove"]
    held: list[Callable[[], Any]] = []

    async def later(run: Any) -> Any:
        held.append(run)
        raise job_kinds.Postponed("held by the test", 0.05)

    shelf.core.jobs.kinds["knowledge.remove"] = replace(removal, handler=later)
    shelf.admin.stores.detach(store, file) if way == "detach" else shelf.admin.files.delete(file)
    assert shelf.core.store.words.count(shelf.tenant) > 20
    for mode in ("keyword", "dense", "hybrid"):
        found = shelf.search(store, SECRET, f"{SECRET} reeds", mode=mode, limit=50, neighbours=2).data
        assert {hit.text for hit in found} <= {"the kite is nobody's secret"}
    shelf.core.jobs.kinds["knowledge.remove"] = removal
    if way == "detach":
        assert shelf.admin.files.get(file)
        shelf.admin.files.delete(file)
    gone(shelf, file)


def test_bytes_that_nothing_knows_are_swept(full: tuple[Any, str, str]) -> None:
    shelf, _, file = full
    begun = shelf.admin.uploads.create(filename="a.txt", bytes=5_000, purpose="assistants").id
    part = shelf.admin.uploads.add_part(begun, pieces("a part")).id
    for id_ in ("file-lost", "part_lost"):
        writer = shelf.core.blobs.writer(shelf.tenant, id_)
        writer.write(b"lost")
        writer.commit()
    dead = shelf.core.blobs.writer(shelf.tenant, "file-dead")
    dead.write(b"never committed")
    expiry = shelf.expiry
    assert shelf.rc.portal.call(expiry.sweep()) == 0  # they may still be on their way
    assert shelf.rc.portal.call(expiry.sweep(-10.0)) in (2, 3)  # a database has nothing of the third yet
    stored = {id_ for _, id_ in shelf.core.blobs.stored(-10.0)}
    assert {file, part} <= stored
    assert not {"file-lost", "part_lost"} & stored
    assert shelf.rc.portal.call(expiry.sweep(-10.0)) == 0


def test_a_removal_that_lost_its_job_is_taken_up(full: tuple[Any, str, str]) -> None:
    shelf, store, file = full
    removal = shelf.core.jobs.kinds["knowledge.remove"]

    async def dies(run: Any) -> Any:
        raise job_kinds.Cancelled

    shelf.core.jobs.kinds["knowledge.remove"] = replace(removal, handler=dies)
    shelf.admin.files.delete(file)
    shelf.settle()
    assert "memories" in holding(shelf, SECRET)
    shelf.core.jobs.kinds["knowledge.remove"] = removal
    shelf.rc.portal.call(shelf.expiry.sweep())
    gone(shelf, file)
    assert shelf.admin.stores.get(store).file_counts.total == 1


def test_a_mark_that_comes_while_its_job_ends_has_a_job(full: tuple[Any, str, str]) -> None:
    """Indexing that was under way marks an attachment again, after the job looked for chunks the last time."""
    shelf, store, file = full
    attached = shelf.rows("SELECT seq FROM store_files WHERE file_id = ?", file)[0][0]
    core = shelf.core
    remove, runs = core.jobs.kinds[REMOVE_JOB], []

    def mark(c: Any) -> None:
        hide(c, core, shelf.tenant, store, attached)

    async def ends(run: Any) -> Any:
        result = await remove.handler(run)
        runs.append(run.id)
        if len(runs) == 1:
            await core.threads.result(core.store.db.write(mark, tenant=shelf.tenant))
            core.jobs.wake(REMOVE_JOB)
        return result

    core.jobs.kinds[REMOVE_JOB] = replace(remove, handler=ends)
    shelf.admin.stores.detach(store, file)
    shelf.settle()
    assert shelf.rows("SELECT * FROM removing") == []
    assert len(set(runs)) == 2
    core.jobs.kinds[REMOVE_JOB] = remove


def test_the_clock_goes_on_after_trouble(lone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file that cannot be deleted: the others still are, and so is it once it can."""
    files = [lone.file(f"text {n}").id for n in range(3)]
    delete, stuck = type(lone.core.blobs).delete, [True]

    def haunted(self: Any, tenant: str, id: str) -> bool:
        if id == files[0] and stuck[0]:
            raise OSError("the disk is haunted")
        return bool(delete(self, tenant, id))

    monkeypatch.setattr(type(lone.core.blobs), "delete", haunted)
    lone.change("UPDATE files SET expires_at = seq")
    lone.look_at_the_clock()
    assert lone.admin.files.list().data == []
    assert [id_ for _, id_ in lone.core.blobs.stored(-10.0)] == files[:1]
    stuck[0] = False
    lone.rc.portal.call(lone.expiry.sweep(-10.0))
    assert list(lone.core.blobs.stored(-10.0)) == []


@pytest.mark.parametrize("error", [StorageError("no space left"), ValueError("a defect")])
def test_a_failure_of_expiry_is_counted_and_does_not_stop_the_rest(
    shelf: Any, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    ids = [shelf.file(text).id for text in ("one", "two")]
    past = now_micros() - 1
    assert shelf.change("UPDATE files SET expires_at = ? WHERE tenant_id = ?", past, shelf.tenant) == 2
    failures, delete = shelf.core.tally["background_failures.expiry"], shelf.core.blobs.delete

    def fails(tenant: str, id_: str) -> None:
        if id_ == ids[0]:
            raise error
        delete(tenant, id_)

    monkeypatch.setattr(shelf.core.blobs, "delete", fails)
    shelf.look_at_the_clock()
    assert shelf.core.tally["background_failures.expiry"] == failures + 1
    assert {id_ for _, id_ in shelf.core.blobs.stored(-10.0)} & {*ids} == {ids[0]}
