"""From a file to its chunks: whole or not at all, through broken attempts, an embedder that is away, and what is taken
away meanwhile."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
import pytest

from memoranda.errors import Conflict, EmbedderUnavailable, InvalidInput
from memoranda.knowledge import filling, pipeline
from memoranda.knowledge.filling import Filling
from memoranda.knowledge.values import NewStoreFile
from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task
from memoranda.store import job_kinds
from memoranda.text.splitting import Chunking
from memoranda.types import NewMemory, Subject
from support.waiting import until

TINY = Chunking(size=3, overlap=0)
"""A line of `words` is a chunk: word, number, end."""


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_kinds, "backoff", lambda attempt: 0.01)
    monkeypatch.setattr(pipeline, "RETRY_AFTER", 0.02)


def words(count: int, name: str = "word") -> str:
    """So many different words of a line each."""
    return "".join(f"{name}{n}\n" for n in range(count))


def begun(shelf: Any, text: str, chunking: Chunking = TINY, name: str = "a.txt") -> tuple[str, str]:
    """The ids of a new store and of a file in it, whose indexing has been asked for."""
    store = shelf.admin.stores.create(chunking=chunking).id
    file = shelf.file(text, name).id
    shelf.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    return store, file


def chunks(shelf: Any, store: str) -> list[tuple[Any, ...]]:
    """What the rows hold of a store's chunks: place, characters, text."""
    return shelf.rows(  # type: ignore[no-any-return]
        "SELECT c.idx, c.start, c.stop, m.content FROM chunks c JOIN memories m ON m.tenant_id = c.tenant_id"
        " AND m.seq = c.seq WHERE m.channel_id = ? ORDER BY c.attached, c.idx",
        store,
    )


def whole(shelf: Any, store: str, file: str, text: str) -> int:
    """Checks that a file is completed with exactly its chunks; how many."""
    held = shelf.admin.stores.file(store, file)
    rows = chunks(shelf, store)
    assert (held.status, held.last_error) == ("completed", None)
    assert [row[0] for row in rows] == list(range(held.chunk_count))
    assert all(text[start:stop] == content for _, start, stop, content in rows)
    covered = {at for _, start, stop, _ in rows for at in range(start, stop)}
    assert all(at in covered or text[at].isspace() for at in range(len(text)))
    assert (
        shelf.core.store.index.count(shelf.tenant) == shelf.core.store.words.count(shelf.tenant) == len(rows)
    )
    return held.chunk_count  # type: ignore[no-any-return]


# --- whole or not at all -------------------------------------------------------------------------------


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A large file is one of more than ten chunks."""
    monkeypatch.setattr(pipeline, "BATCH", 10)


@pytest.mark.usefixtures("small_batches")
def test_a_large_file_is_not_seen_before_it_is_whole(lone: Any, fragile: Any) -> None:
    text, waits, go = words(40), threading.Event(), threading.Event()

    def refuse(texts: Sequence[str]) -> None:
        if "word30" in "".join(texts):
            waits.set()

    async def hold(texts: Sequence[str], task: Task = "document") -> Embedded:
        if task == "document" and "word30" in "".join(texts):
            waits.set()
            while not go.is_set():
                await asyncio.sleep(0.005)
        return await embed(texts, task)

    embed, fragile.embed = fragile.embed, hold
    store, file = begun(lone, text)
    assert waits.wait(10)
    rows = chunks(lone, store)
    assert 10 <= len(rows) < 40
    assert lone.search(store, "word1 word2 word30", limit=50).data == []
    held = lone.admin.stores.file(store, file)
    assert (held.status, held.chunk_count, held.usage_bytes) == ("in_progress", 0, 0)
    assert lone.admin.stores.text(store, file) == ""
    assert lone.admin.stores.get(store).status == "in_progress"
    go.set()
    lone.settle()
    count = whole(lone, store, file, text)
    assert count > 30
    assert len(lone.search(store, "word1", limit=50, merge=False).data) == count
    assert lone.admin.stores.text(store, file).split() == text.split()


def test_a_file_of_more_than_a_thousand_chunks_is_completed_once(shelf: Any) -> None:
    text = words(1_300)
    store, file = begun(shelf, text)
    shelf.settle()
    assert whole(shelf, store, file, text) > 1_000
    ended = [
        json.loads(result)
        for (result,) in shelf.rows(
            "SELECT result FROM jobs WHERE tenant_id = ? AND kind = 'knowledge.index' AND state = 'completed'",
            shelf.tenant,
        )
    ]
    assert ended == [{"chunks": shelf.admin.stores.file(store, file).chunk_count}]


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("batches", [1, 3])
def test_an_attempt_that_broke_half_way_is_resumed(lone: Any, fragile: Any, batches: int) -> None:
    text, left = words(40), [batches]

    def refuse(texts: Sequence[str]) -> None:
        if left[0] == 0:
            left[0] = -1
            raise RuntimeError("the model fell over")
        left[0] -= 1

    fragile.refuse = refuse
    store, file = begun(lone, text)
    lone.settle()
    count = whole(lone, store, file, text)
    assert left[0] < 0
    (job,) = lone.rows("SELECT attempts, state FROM jobs WHERE kind = 'knowledge.index'")
    assert job == (2, "completed")
    embedded = [one for batch in fragile.batches for one in batch]
    assert len(embedded) == len(set(embedded)) == count  # what was stored is not embedded again


@pytest.mark.usefixtures("small_batches")
def test_what_another_attempt_stored_of_other_chunks_is_made_anew(lone: Any, fragile: Any) -> None:
    """As after an update whose reader extracts another text."""
    text, other = words(40), words(25, "other")
    asked = []

    def refuse(texts: Sequence[str]) -> None:
        asked.append(texts)
        if len(asked) == 3:
            replace_bytes(lone, file, other.encode())
            raise RuntimeError("the model fell over")

    fragile.refuse = refuse
    store = lone.admin.stores.create(chunking=TINY).id
    file = lone.file(text).id
    lone.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    lone.settle()
    whole(lone, store, file, other)
    assert {hit.file_id for hit in lone.search(store, "other3").data} == {file}
    assert not any("word" in hit.text for hit in lone.search(store, "word1", limit=50).data)


def replace_bytes(lone: Any, file: str, data: bytes) -> None:
    """Give a file other bytes, so that it has other chunks, as another version of a reader makes them."""
    lone.core.blobs.delete(lone.tenant, file)
    writer = lone.core.blobs.writer(lone.tenant, file)
    writer.write(data)
    writer.commit()
    sql = "UPDATE files SET sha256 = ? WHERE tenant_id = ? AND id = ? RETURNING id"
    key = [sha256(data).hexdigest(), lone.tenant, file]
    lone.core.store.db.write(lambda c: c.select(sql, key), tenant=lone.tenant).result()


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("shorter", [True, False])
def test_an_attempt_whose_chunks_are_fewer_or_more(lone: Any, fragile: Any, shorter: bool) -> None:
    """The first chunks are the same, so that only their number tells."""
    text, other = words(40), words(11 if shorter else 60)
    asked = []

    def refuse(texts: Sequence[str]) -> None:
        asked.append(texts)
        if len(asked) == 4:
            replace_bytes(lone, file, other.encode())
            raise RuntimeError("the model fell over")

    fragile.refuse = refuse
    store = lone.admin.stores.create(chunking=TINY).id
    file = lone.file(text).id
    lone.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    lone.settle()
    whole(lone, store, file, other)


# --- when it does not go on ----------------------------------------------------------------------------


def test_a_job_that_gives_up_says_why(lone: Any, fragile: Any) -> None:
    def refuse(texts: Sequence[str]) -> None:
        raise RuntimeError("the model fell over")

    fragile.refuse = refuse
    store, file = begun(lone, words(40))
    lone.settle()
    held = lone.admin.stores.file(store, file)
    assert (held.status, held.last_error.code) == ("failed", "server_error")
    assert "the model fell over" in held.last_error.message
    assert f"{lone.core.jobs.max_attempts} times" in held.last_error.message
    assert lone.admin.stores.get(store).file_counts.failed == 1
    assert lone.admin.stores.get(store).status == "completed"
    assert chunks(lone, store) == []
    fragile.refuse = lambda texts: None
    lone.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    lone.settle()
    whole(lone, store, file, words(40))


@pytest.mark.usefixtures("small_batches")
def test_a_job_that_gave_up_is_retried(lone: Any, fragile: Any) -> None:
    def refuse(texts: Sequence[str]) -> None:
        if "word25" in "".join(texts):
            raise RuntimeError("the model fell over")

    def job(state: str) -> str:
        return next(job.id for job in memories.jobs() if (job.kind, job.state) == ("knowledge.index", state))

    memories = lone.rc.as_subject(Subject(tenant_id=lone.tenant)).memories
    fragile.refuse = refuse
    store, file = begun(lone, words(40))
    lone.admin.stores.set_attributes(store, file, {"kept": True})
    lone.settle()
    failed = job("failed")
    fragile.refuse, go = lambda texts: None, threading.Event()

    async def hold(texts: Sequence[str], task: Task = "document") -> Embedded:
        while not go.is_set():
            await asyncio.sleep(0.005)
        return await embed(texts, task)

    embed, fragile.embed = fragile.embed, hold
    assert memories.retry(failed).state == "queued"
    held = lone.admin.stores.file(store, file)
    assert (held.status, held.last_error, held.attributes) == ("in_progress", None, {"kept": True})
    go.set()
    lone.settle()
    whole(lone, store, file, words(40))
    assert memories.job(failed).state == "completed"
    assert lone.rows("SELECT * FROM removing") == []


@pytest.mark.parametrize("gone", ["detached", "deleted", "attached again"])
def test_a_job_whose_file_is_gone_is_not_retried(lone: Any, gone: str) -> None:
    memories = lone.rc.as_subject(Subject(tenant_id=lone.tenant)).memories
    store = lone.admin.stores.create(chunking=TINY).id
    file = lone.file("the heron").id
    lone.core.blobs.delete(lone.tenant, file)
    lone.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    lone.settle()
    failed = next(job for job in memories.jobs() if job.kind == "knowledge.index")
    assert failed.state == "failed"
    if gone == "detached":
        lone.admin.stores.detach(store, file)
    elif gone == "deleted":
        lone.admin.files.delete(file)
    else:
        lone.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    with pytest.raises(Conflict, match="its data is gone"):
        memories.retry(failed.id)


@pytest.mark.usefixtures("small_batches")
def test_a_job_that_gives_up_half_way_leaves_no_chunk(lone: Any, fragile: Any) -> None:
    def refuse(texts: Sequence[str]) -> None:
        if "word25" in "".join(texts):
            raise RuntimeError("the model fell over")

    fragile.refuse = refuse
    store, file = begun(lone, words(40))
    lone.settle()
    assert lone.admin.stores.file(store, file).status == "failed"
    assert chunks(lone, store) == []
    assert lone.core.store.index.count(lone.tenant) == lone.core.store.words.count(lone.tenant) == 0
    assert lone.rows("SELECT * FROM removing") == []


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize("content", [b"", b" \n\t "])
def test_a_file_without_text_fails_at_once(shelf: Any, content: bytes) -> None:
    store = shelf.admin.stores.create().id
    file = shelf.file(content).id
    shelf.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    shelf.settle()
    held = shelf.admin.stores.file(store, file)
    assert (held.status, held.last_error.code) == ("failed", "invalid_file")
    assert held.last_error.message
    assert shelf.rows("SELECT attempts FROM jobs WHERE tenant_id = ? AND kind = 'knowledge.index'",
                      shelf.tenant) == [(1,)]  # fmt: skip


def test_a_file_whose_bytes_are_gone_says_so(shelf: Any) -> None:
    store = shelf.admin.stores.create().id
    file = shelf.file("the heron").id
    shelf.core.blobs.delete(shelf.tenant, file)
    shelf.admin.stores.attach(store, [NewStoreFile(file_id=file)])
    shelf.settle()
    held = shelf.admin.stores.file(store, file)
    assert (held.status, held.last_error.code) == ("failed", "server_error")
    assert "upload it again" in held.last_error.message


def test_while_the_embedder_is_away_a_file_waits(lone: Any, fragile: Any) -> None:
    fragile.away = True
    text = words(40)
    store, file = begun(lone, text)
    tried = "SELECT 1 FROM jobs WHERE kind = 'knowledge.index' AND error IS NOT NULL"
    until(lambda: lone.rows(tried), "a failed attempt")
    held = lone.admin.stores.file(store, file)
    assert (held.status, held.last_error, held.chunk_count) == ("in_progress", None, 0)
    assert chunks(lone, store) == []
    for _ in range(lone.core.jobs.max_attempts + 2):
        before = lone.rows("SELECT updated_at FROM jobs WHERE kind = 'knowledge.index'")
        until(
            lambda was=before: lone.rows("SELECT updated_at FROM jobs WHERE kind = 'knowledge.index'") != was,
            "another attempt",
        )
    held = lone.admin.stores.file(store, file)
    assert (held.status, held.notes) == (
        "in_progress",
        ["waits for the embedding model, which does not answer"],
    )
    fragile.away = False
    lone.settle()
    whole(lone, store, file, text)
    assert lone.admin.stores.file(store, file).notes == []


@pytest.mark.parametrize("how", ["detach", "delete the file", "delete the store", "cancel"])
@pytest.mark.usefixtures("small_batches")
def test_what_is_taken_away_meanwhile_leaves_nothing(lone: Any, fragile: Any, how: str) -> None:
    waits, go = threading.Event(), threading.Event()

    async def hold(texts: Sequence[str], task: Task = "document") -> Embedded:
        if task == "document" and "word30" in "".join(texts):
            waits.set()
            while not go.is_set():
                await asyncio.sleep(0.005)
        return await embed(texts, task)

    embed, fragile.embed = fragile.embed, hold
    store = lone.admin.stores.create(chunking=TINY).id
    file = lone.file(words(40)).id
    batch = lone.admin.stores.create_batch(store, [NewStoreFile(file_id=file)]).id
    assert waits.wait(10)
    if how == "detach":
        lone.admin.stores.detach(store, file)
    elif how == "delete the file":
        lone.admin.files.delete(file)
    elif how == "delete the store":
        lone.admin.stores.delete(store)
    else:
        assert lone.admin.stores.cancel_batch(store, batch).status == "cancelled"
    go.set()
    lone.settle()
    assert chunks(lone, store) == []
    assert lone.rows("SELECT count(*) FROM chunks") == [(0,)]
    assert lone.rows("SELECT * FROM removing") == []
    assert lone.core.store.index.count(lone.tenant) == lone.core.store.words.count(lone.tenant) == 0
    if how in ("cancel", "detach"):
        lone.admin.stores.attach(store, [NewStoreFile(file_id=file)])
        lone.settle()
        whole(lone, store, file, words(40))


def test_a_memory_with_the_id_of_a_chunk_stops_no_file(shelf: Any) -> None:
    memories = shelf.rc.as_subject(shelf.admin.subject).memories
    (near,) = shelf.core.store.db.write(lambda c: c.one("draw_revs", [1])).result()
    count = 60
    memories.add_many(
        [NewMemory(content=f"squatter {n}", id=f"chunk_{near + count + n:x}_0") for n in range(count)]
    )
    store, file = begun(shelf, "the heron")
    shelf.settle()
    assert shelf.admin.stores.file(store, file).status == "completed"


def test_a_model_that_writes_during_its_work_does_not_deadlock(lone: Any, fragile: Any) -> None:
    """No model is asked inside a transaction, nor on the thread that writes."""
    names = set()

    def refuse(texts: Sequence[str]) -> None:
        names.add(threading.current_thread().name)
        lone.core.store.db.write(lambda c: c.run("set_meta", ["probe", "x"])).result(10)

    fragile.refuse = refuse
    store, file = begun(lone, words(40), Chunking(strategy="semantic", size=12, overlap=0))
    lone.settle()
    whole(lone, store, file, words(40))
    assert names
    assert "memoranda-writer" not in names


# --- one batch from several files ----------------------------------------------------------------------


class Counting(Embedder):
    """Vectors that say which text they are of; notes its batches; `bad` is refused."""

    model, dim, max_tokens = "counting", 8, 100
    dense_weight = 0.5

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.bad: dict[str, Exception] = {}
        self.gate = asyncio.Event()
        self.gate.set()

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        self.batches.append(list(texts))
        await self.gate.wait()
        for text, error in self.bad.items():
            if text in texts:
                raise error
        vectors = np.array([[float(text), *[0.0] * 7] for text in texts], np.float32).reshape(-1, 8)
        return Embedded(vectors, 2 * len(texts))

    def split(self, text: str) -> list[Span]:
        return [Span(0, len(text))]


def story(work: Callable[[Counting, Filling], Any]) -> None:
    """Runs a test of `Filling` on a loop."""

    async def told() -> None:
        inner = Counting()
        inner.calibration = object()  # type: ignore[assignment]
        await work(inner, Filling(inner))

    asyncio.run(asyncio.wait_for(told(), 10))


def test_texts_of_several_files_share_batches() -> None:
    async def work(inner: Counting, shared: Filling) -> None:
        inner.gate.clear()
        asked = [
            asyncio.create_task(shared.embed([str(n * 10 + i) for i in range(n % 4 + 1)])) for n in range(30)
        ]
        await asyncio.sleep(0.01)
        assert len(inner.batches) == filling.IN_FLIGHT
        inner.gate.set()
        for n, made in enumerate(await asyncio.gather(*asked)):
            assert made.vectors[:, 0].tolist() == [n * 10 + i for i in range(n % 4 + 1)]
            assert made.tokens == 2 * (n % 4 + 1)
        assert len(inner.batches) == filling.IN_FLIGHT + 1

    story(work)


def test_a_batch_is_bounded_unless_one_file_brings_more() -> None:
    async def work(inner: Counting, shared: Filling) -> None:
        inner.gate.clear()
        sizes = [1, 1, 200, 50, 10, 300, 256, 1]
        asked = [asyncio.create_task(shared.embed([str(n) for n in range(size)])) for size in sizes]
        await asyncio.sleep(0.01)
        inner.gate.set()
        await asyncio.gather(*asked)
        assert [len(batch) for batch in inner.batches] == [1, 1, 250, 10, 300, 256, 1]

    story(work)


def test_one_text_that_is_refused_fails_only_its_file() -> None:
    async def work(inner: Counting, shared: Filling) -> None:
        inner.gate.clear()
        inner.bad = {"7": ValueError("no sevens")}
        asked = [asyncio.create_task(shared.embed([str(n)])) for n in range(12)]
        await asyncio.sleep(0.01)
        inner.gate.set()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        for n, one in enumerate(ended):
            if n == 7:
                assert repr(one) == "ValueError('no sevens')"
            else:
                assert isinstance(one, Embedded)
                assert one.vectors[0, 0] == n

    story(work)


def test_who_stops_waiting_stops_nobody_else() -> None:
    async def work(inner: Counting, shared: Filling) -> None:
        inner.gate.clear()
        asked = [asyncio.create_task(shared.embed([str(n)])) for n in range(12)]
        await asyncio.sleep(0.01)
        for n in (0, 5):  # one under way, one waiting
            asked[n].cancel()
        await asyncio.sleep(0)
        inner.gate.set()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert [isinstance(one, Embedded) for one in ended] == [n not in (0, 5) for n in range(12)]
        assert "5" not in {text for batch in inner.batches for text in batch}
        everyone = [asyncio.create_task(shared.embed([str(n)])) for n in range(4)]
        await asyncio.sleep(0)
        for one in everyone:
            one.cancel()
        await asyncio.gather(*everyone, return_exceptions=True)
        assert (await shared.embed(["9"])).vectors[0, 0] == 9

    story(work)


class Panic(BaseException):
    """What native code raises: no Exception."""


@pytest.mark.parametrize(
    "error", [EmbedderUnavailable("away"), InvalidInput("input", "too long"), Panic("panicked")]
)
def test_an_error_of_the_model_reaches_every_file(error: BaseException) -> None:
    async def work(inner: Counting, shared: Filling) -> None:
        inner.gate.clear()
        inner.bad = {str(n): error for n in range(9)}  # type: ignore[misc]
        asked = [asyncio.create_task(shared.embed([str(n)])) for n in range(9)]
        await asyncio.sleep(0.01)
        inner.gate.set()
        ended = await asyncio.gather(*asked, return_exceptions=True)
        assert len(ended) == 9
        assert all(isinstance(one, Exception) and str(error) in str(one) for one in ended)
        inner.bad = {}
        assert (await shared.embed(["1"])).vectors[0, 0] == 1

    story(work)


def test_queries_and_nothing_go_straight_through() -> None:
    async def work(inner: Counting, shared: Filling) -> None:
        assert len((await shared.embed([])).vectors) == 0
        assert (await shared.embed(["3"], "query")).vectors[0, 0] == 3
        assert (shared.model, shared.dim, shared.dense_weight) == ("counting", 8, 0.5)
        assert shared.split("abc") == [Span(0, 3)]

    story(work)


@pytest.mark.rows_in("sqlite")
def test_many_small_files_are_embedded_together(lone: Any, fragile: Any) -> None:
    ids = [lone.file(f"the heron of file{n}").id for n in range(60)]
    store = lone.admin.stores.create().id
    lone.admin.stores.create_batch(store, [NewStoreFile(file_id=id_) for id_ in ids])
    lone.settle()
    assert lone.admin.stores.get(store).file_counts.completed == 60
    assert sum(len(batch) for batch in fragile.batches) == 60
