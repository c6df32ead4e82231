"""What outlives the process, and the caller."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import numpy as np

from memoranda.knowledge.values import NewStoreFile
from memoranda.text.splitting import Chunking
from support.waiting import until

ASKED = ("word3 word4", "word17", "words of file 2")


def text_of(number: int) -> str:
    """Distinct texts that share words, so that hardly two scores are equal."""
    rng = np.random.default_rng(number)
    return f"words of file {number} " + " ".join(f"word{n}" for n in rng.integers(0, 60, 200 + 10 * number))


def answers(shelf: Any, store: str) -> list[Any]:
    """What some searches find, to the last bit."""
    found = []
    for mode in ("dense", "keyword", "hybrid"):
        for query in ASKED:
            hits = shelf.search(store, query, mode=mode, limit=30, neighbours=1, explain=True).data
            found.append(
                hits if mode == "dense" else [(hit.chunk_id, hit.text, hit.similarity) for hit in hits]
            )
    return found


def bytes_of(shelf: Any, id_: str) -> bytes:
    """A file's bytes."""

    async def read() -> bytes:
        _, following = await shelf.admin.files.inner.content(id_)
        return b"".join([piece async for piece in following])

    return shelf.rc.portal.call(read())  # type: ignore[no-any-return]


def test_a_restart_changes_no_answer(home: Any, readers: Any, lone: Any) -> None:
    shelf_of = type(lone)
    with home.open("kept") as rc:
        msgspec.structs.force_setattr(rc.inner.core, "readers", readers)
        shelf = shelf_of(rc)
        store = shelf.store(
            *(text_of(n) for n in range(6)),
            chunking=Chunking(size=30, overlap=5),
            name="kept",
            metadata={"a": "b"},
        ).id
        before = answers(shelf, store)
        held = (shelf.admin.stores.get(store), shelf.admin.stores.files(store), shelf.admin.files.list())
        upload = shelf.admin.uploads.create(filename="a.txt", bytes=3, purpose="assistants").id
        part = shelf.admin.uploads.add_part(upload, pieces(b"abc")).id
    with home.open("kept") as rc:
        msgspec.structs.force_setattr(rc.inner.core, "readers", readers)
        shelf = shelf_of(rc)
        assert answers(shelf, store) == before
        after = (shelf.admin.stores.get(store), shelf.admin.stores.files(store), shelf.admin.files.list())
        assert msgspec.structs.replace(after[0], last_active_at=held[0].last_active_at) == held[0]
        assert after[1:] == held[1:]
        stats = rc.memories.stats()
        assert stats["indexed_vectors"] == stats["vectors"] == stats["chunks"] == stats["indexed_words"] > 100
        for one in after[2].data:
            assert bytes_of(shelf, one.id) == text_of(int(one.filename.partition(".")[0])).encode()
        assert shelf.admin.uploads.complete(upload, [part]).status == "completed"


async def pieces(content: bytes) -> Any:
    """A file as it comes."""
    yield content


def test_work_that_was_under_way_goes_on_after_a_restart(
    home: Any, readers: Any, lone: Any, fragile: Any
) -> None:
    kinds = type(lone), type(fragile)
    with home.open("kept") as rc:
        shelf, away = kinds[0](rc), kinds[1]()
        msgspec.structs.force_setattr(rc.inner.core, "readers", readers)
        rc.inner.core.embedder.inner = away  # type: ignore[attr-defined]
        away.away = True
        files = [shelf.file(text_of(n), f"{n}.txt").id for n in range(5)]
        store = shelf.admin.stores.create(file_ids=files).id
        gone = shelf.file("soon gone").id
    with home.open("kept") as rc:
        msgspec.structs.force_setattr(rc.inner.core, "readers", readers)
        shelf = kinds[0](rc)
        shelf.change("UPDATE jobs SET run_at = 0 WHERE state = 'queued'")
        rc.portal._loop.call_soon_threadsafe(rc.inner.core.jobs.wake, "knowledge.index")
        shelf.settle()
        counts = shelf.admin.stores.get(store).file_counts
        assert (counts.completed, counts.total) == (5, 5)
        assert {hit.file_id for hit in shelf.search(store, "words of file", limit=50).data} == set(files)
        shelf.admin.files.delete(gone)


def test_who_hangs_up_does_not_stop_the_indexing(shelf: Any) -> None:
    """Whoever asked is cancelled after any number of turns: a file is in the store and will be indexed, or it is not
    there at all."""
    stores = shelf.admin.stores.inner
    made = shelf.admin.stores.create().id
    ids = [shelf.file(f"the heron of file{n}").id for n in range(16)]

    async def hang_up(n: int) -> None:
        files = [NewStoreFile(file_id=ids[n])]
        asked = stores.attach(made, files) if n % 2 else stores.create_batch(made, files)
        task = asyncio.create_task(asked)
        for _ in range(n // 2):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for n in range(16):
        shelf.rc.portal.call(hang_up(n))
    shelf.core.store.db.write(lambda c: None).result()
    until(
        lambda: shelf.admin.stores.get(made).file_counts,
        "no file in progress",
        accept=lambda counts: counts.in_progress == 0,
    )
    counts = shelf.admin.stores.get(made).file_counts
    assert counts.total == counts.completed > 8
    found = {hit.file_id for hit in shelf.search(made, "heron", limit=50).data}
    assert found == {one.id for one in shelf.admin.stores.files(made, limit=100).data}


def test_jobs_of_who_hung_up_are_not_left_waiting(lone: Any) -> None:
    """Nobody else wakes the workers."""
    made = lone.admin.stores.create().id
    id_ = lone.file("the heron").id

    async def hang_up() -> None:
        task = asyncio.create_task(lone.admin.stores.inner.attach(made, [NewStoreFile(file_id=id_)]))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    lone.settle()
    lone.rc.portal.call(hang_up())
    lone.core.store.db.write(lambda c: None).result()
    lone.settle()
    assert lone.admin.stores.file(made, id_).status == "completed"
