"""Stores: what they say of themselves, files in and out of them, and what a search in them finds."""

from __future__ import annotations

import asyncio
import math
import re
import threading
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import EmbedderUnavailable, InvalidInput, NotFound, StorageError
from memoranda.knowledge import pipeline, waiting
from memoranda.knowledge.chunks import joined
from memoranda.knowledge.values import NewStoreFile, Passage, StoreChange
from memoranda.store import job_kinds
from memoranda.text.splitting import Chunking
from memoranda.types import KINDS, Subject
from support.pdf_files import page, pdf_of

BIRDS = [
    "The heron stands in the reeds and waits for fish.",
    "The kite circles above the stubble field.",
    "The wren sings in the hedge before sunrise.",
    "The heron and the kite share the river valley.",
]
GUIDE = """# Birds

A guide to birds of the river, in the order of their size.

## Heron

The heron stands in the reeds. It waits for fish and frogs. Nobody sees it move at all.

The heron nests in tall trees. Its nest is a platform of sticks. Both parents feed the young.

## Kite

The kite circles above the field. It has a forked tail. It eats carrion, mice and worms.


The kite was rare for a hundred years. Now it is seen every day. It likes the warm air.
"""


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_kinds, "backoff", lambda attempt: 0.01)


# --- what a store says of itself -----------------------------------------------------------------------


def test_a_store_says_what_it_is(shelf: Any) -> None:
    made = shelf.admin.stores.create(
        name="birds",
        description="of the river",
        metadata={"a": "b"},
        expires_after_days=3,
        writers=["bob", "ann", "bob"],
    )
    assert made == shelf.admin.stores.get(made.id)
    assert (made.name, made.description, made.metadata) == ("birds", "of the river", {"a": "b"})
    assert (made.status, made.file_counts.total, made.usage_bytes) == ("completed", 0, 0)
    assert (made.chunking, made.writers, made.sharing) == (
        Chunking(size=200, overlap=50, header=True),
        ["ann", "bob"],
        "private",
    )
    assert (made.model, made.dimension) == (shelf.core.store.model, 64)
    assert made.expires_at == made.last_active_at + timedelta(days=3)
    plain = shelf.admin.stores.create()
    assert (plain.name, plain.description, plain.metadata, plain.expires_at) == ("", None, {}, None)


def test_a_store_is_created_with_files_or_not_at_all(shelf: Any) -> None:
    files = [shelf.file(text, f"{at}.txt").id for at, text in enumerate(BIRDS)]
    with pytest.raises(NotFound, match="file-unknown"):
        shelf.admin.stores.create(file_ids=[*files, "file-unknown"])
    assert shelf.admin.stores.list().data == []
    made = shelf.admin.stores.create(file_ids=[*files, files[0]])
    assert (made.status, made.file_counts.in_progress) == ("in_progress", 4)
    shelf.settle()
    held = shelf.admin.stores.get(made.id)
    assert (held.status, held.file_counts.completed) == ("completed", 4)
    assert held.usage_bytes == sum(len(text.encode()) + 4 * 64 for text in BIRDS)
    rows = shelf.admin.stores.files(made.id, order="asc").data
    assert [one.id for one in rows] == files
    assert [one.usage_bytes for one in rows] == [len(text) + 4 * 64 for text in BIRDS]
    assert [(one.filename, one.bytes, one.chunk_count) for one in rows] == [
        (f"{at}.txt", len(text), 1) for at, text in enumerate(BIRDS)
    ]


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": "n" * 513}, "name"),
        ({"name": "a\x00"}, "name"),
        ({"description": "d" * 4_097}, "description"),
        ({"metadata": {f"k{n}": "v" for n in range(17)}}, "metadata"),
        ({"metadata": {"k" * 65: "v"}}, "metadata." + "k" * 65),
        ({"metadata": {"k": "v" * 513}}, "metadata.k"),
        ({"metadata": {"k": 1}}, "metadata.k"),
        ({"metadata": {"$k": "v"}}, "metadata.$k"),
        ({"metadata": [1]}, "metadata"),
        ({"expires_after_days": 0}, "expires_after.days"),
        ({"expires_after_days": 366}, "expires_after.days"),
        ({"expires_after_days": True}, "expires_after.days"),
        ({"sharing": "world"}, "sharing"),
        ({"writers": "ann"}, "writers"),
        ({"writers": ["ann", ""]}, "writers[1]"),
        ({"chunking": Chunking(size=0)}, "chunking_strategy.chunk_size"),
        ({"chunking": Chunking(size=8_193)}, "chunking_strategy.chunk_size"),
        ({"chunking": Chunking(size=100, overlap=51)}, "chunking_strategy.chunk_overlap"),
        ({"chunking": Chunking(strategy="clever")}, "chunking_strategy.type"),  # type: ignore[arg-type]
    ],
)
def test_what_is_refused_makes_no_store(shelf: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        shelf.admin.stores.create(**fields)
    assert caught.value.field == named
    held = shelf.admin.stores.create(name="held", metadata={"a": "b"})
    if "chunking" not in fields:
        with pytest.raises(InvalidInput) as caught:
            shelf.admin.stores.update(held.id, StoreChange(**fields))
        assert caught.value.field == named
    assert [one.name for one in shelf.admin.stores.list().data] == ["held"]


def test_an_update_changes_what_it_names(shelf: Any) -> None:
    made = shelf.admin.stores.create(
        name="birds",
        description="d",
        metadata={"a": "b"},
        expires_after_days=3,
        writers=["ann"],
        sharing="tenant",
    )
    same = shelf.admin.stores.update(made.id, StoreChange())
    assert same.last_active_at > made.last_active_at
    assert (same.name, same.description, same.metadata, same.writers, same.sharing, same.expires_after_days) == (
        "birds", "d", {"a": "b"}, ["ann"], "tenant", 3,
    )  # fmt: skip
    bare = StoreChange(name=None, description=None, metadata=None, expires_after_days=None, writers=[])
    gone = shelf.admin.stores.update(made.id, bare)
    assert (gone.name, gone.description, gone.metadata, gone.writers, gone.expires_at) == (
        "",
        None,
        {},
        [],
        None,
    )
    assert gone.sharing == "tenant"
    assert gone == shelf.admin.stores.get(made.id)
    again = shelf.admin.stores.update(
        made.id, StoreChange(name="again", metadata={"c": "d"}, sharing="private")
    )
    assert (again.name, again.metadata, again.sharing) == ("again", {"c": "d"}, "private")


# --- files in and out ----------------------------------------------------------------------------------


def test_a_file_is_in_a_store_once(shelf: Any) -> None:
    made = shelf.store(BIRDS[0])
    (file,) = shelf.admin.stores.files(made.id).data
    again = shelf.admin.stores.attach(made.id, [NewStoreFile(file_id=file.id, attributes={"a": 1})] * 2)
    assert list(again) == [file, file]
    shelf.settle()
    assert shelf.admin.stores.file(made.id, file.id) == file
    assert shelf.rows("SELECT count(*) FROM chunks WHERE tenant_id = ?", shelf.tenant) == [(1,)]
    assert len(shelf.search(made.id, "heron").data) == 1


def test_a_file_that_failed_begins_again(shelf: Any) -> None:
    made = shelf.admin.stores.create()
    empty = shelf.file("").id
    batch = shelf.admin.stores.create_batch(made.id, [NewStoreFile(file_id=empty, attributes={"n": 1})])
    shelf.settle()
    failed = shelf.admin.stores.file(made.id, empty)
    assert failed.status == "failed"
    assert shelf.admin.stores.batch(made.id, batch.id).status == "failed"
    (again,) = shelf.admin.stores.attach(made.id, [NewStoreFile(file_id=empty, attributes={"n": 2})])
    assert (again.status, again.attributes, again.last_error, again.batch_id) == (
        "in_progress",
        {"n": 2},
        None,
        None,
    )
    shelf.settle()
    assert shelf.admin.stores.file(made.id, empty).status == "failed"
    assert [one.id for one in shelf.admin.stores.files(made.id, state="failed").data] == [empty]
    assert shelf.admin.stores.files(made.id, state="completed").data == []
    with pytest.raises(InvalidInput, match="filter"):
        shelf.admin.stores.files(made.id, state="lost")


def test_a_batch_is_attached_whole_or_not_at_all(shelf: Any) -> None:
    made = shelf.admin.stores.create().id
    files = [shelf.file(text).id for text in BIRDS]
    for bad in ("file-unknown", "\x00"):
        with pytest.raises(NotFound):
            shelf.admin.stores.create_batch(made, [NewStoreFile(file_id=id_) for id_ in [*files, bad]])
    for wrong in ([], [NewStoreFile(file_id="")], [NewStoreFile(file_id=files[0], attributes={"a": [1]})]):
        with pytest.raises(InvalidInput):
            shelf.admin.stores.create_batch(made, wrong)
    assert shelf.admin.stores.get(made).file_counts.total == 0
    assert shelf.rows("SELECT count(*) FROM file_batches WHERE tenant_id = ?", shelf.tenant) == [(0,)]
    assert shelf.rows("SELECT count(*) FROM jobs WHERE tenant_id = ?", shelf.tenant) == [(0,)]
    batch = shelf.admin.stores.create_batch(made, [NewStoreFile(file_id=id_) for id_ in files])
    assert batch.file_counts.total == 4
    shelf.settle()
    done = shelf.admin.stores.batch(made, batch.id)
    assert (done.status, done.file_counts.completed) == ("completed", 4)
    assert {one.id for one in shelf.admin.stores.files(made, batch_id=batch.id).data} == set(files)
    assert {one.batch_id for one in shelf.admin.stores.files(made).data} == {batch.id}
    other = shelf.attach(made, "beside it")
    assert other not in {one.id for one in shelf.admin.stores.files(made, batch_id=batch.id).data}
    assert shelf.admin.stores.cancel_batch(made, batch.id).status == "completed"


def test_attaching_waits_for_small_files_where_it_is_asked_to(
    lone: Any, fragile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "MOST_WAIT", 300.0)  # a slow machine is no failure
    stores, store = lone.admin.stores, lone.store()
    (file,) = stores.attach(store.id, [lone.file("The heron stands in the reeds.").id], wait=300)
    assert (file.status, file.chunk_count) == ("completed", 1)
    assert stores.upload(store.id, b"The kite circles.", "b.txt", wait=300).status == "completed"
    (broken,) = stores.attach(store.id, [lone.file(b"%PDF-1.4 no more", "c.pdf").id], wait=300)
    assert broken.status == "failed"
    two = [
        NewStoreFile(file_id=lone.file(text, "d.txt").id) for text in ("The wren sings.", "The owl hoots.")
    ]
    batch = stores.create_batch(store.id, two, wait=300)
    assert (batch.status, batch.file_counts.completed) == ("completed", 2)
    fragile.away = True
    (late,) = stores.attach(store.id, [lone.file("The heron nests in tall trees.", "e.txt").id], wait=0.05)
    assert late.status == "in_progress"
    for wrong in (-1, 301, float("nan")):
        with pytest.raises(InvalidInput, match="wait: must be between 0 and 300 seconds"):
            stores.attach(store.id, [file.id], wait=wrong)


def test_cancelling_ends_what_is_not_done(lone: Any, fragile: Any) -> None:
    waits, go = threading.Event(), threading.Event()

    async def hold(texts: Any, task: Any = "document") -> Any:
        if task == "document" and "kite circles" in "".join(texts):
            waits.set()
            while not go.is_set():
                await asyncio.sleep(0.005)
        return await embed(texts, task)

    embed, fragile.embed = fragile.embed, hold
    made = lone.admin.stores.create().id
    first, second = lone.file(BIRDS[0]).id, lone.file(BIRDS[1]).id
    batch = lone.admin.stores.create_batch(made, [NewStoreFile(file_id=first)])
    lone.settle()
    batch = lone.admin.stores.create_batch(made, [NewStoreFile(file_id=second)])
    assert waits.wait(5)
    ended = lone.admin.stores.cancel_batch(made, batch.id)
    assert (ended.status, ended.file_counts.cancelled) == ("cancelled", 1)
    go.set()
    lone.settle()
    assert lone.admin.stores.get(made).file_counts.cancelled == 1
    assert lone.admin.stores.file(made, second).status == "cancelled"
    assert [hit.file_id for hit in lone.search(made, "heron kite").data] == [first]
    lone.admin.stores.attach(made, [NewStoreFile(file_id=second)])
    lone.settle()
    assert lone.admin.stores.get(made).file_counts.completed == 2


def test_a_detached_file_can_come_back(shelf: Any) -> None:
    made = shelf.store(BIRDS[0], BIRDS[1])
    first = shelf.search(made.id, "heron", mode="keyword").data[0]
    shelf.admin.stores.detach(made.id, first.file_id)
    assert [hit.file_id for hit in shelf.search(made.id, "heron").data] != [first.file_id]
    with pytest.raises(NotFound):
        shelf.admin.stores.file(made.id, first.file_id)
    with pytest.raises(NotFound):
        shelf.admin.stores.detach(made.id, first.file_id)
    shelf.admin.stores.attach(made.id, [NewStoreFile(file_id=first.file_id)])
    shelf.settle()
    back = shelf.search(made.id, "heron", mode="keyword").data[0]
    assert (back.file_id, back.text) == (first.file_id, first.text)
    assert shelf.admin.stores.get(made.id).file_counts.completed == 2


def test_an_expired_store_refuses(shelf: Any) -> None:
    made = shelf.store(BIRDS[0], expires_after_days=1).id
    file = shelf.admin.stores.files(made).data[0].id
    shelf.change("UPDATE vector_stores SET last_active_at = last_active_at - 86400000000 WHERE id = ?", made)
    assert shelf.admin.stores.get(made).status == "expired"
    assert [one.status for one in shelf.admin.stores.list().data] == ["expired"]
    for verb in (
        lambda: shelf.search(made, "heron"),
        lambda: shelf.admin.stores.attach(made, [NewStoreFile(file_id=file)]),
        lambda: shelf.admin.stores.create_batch(made, [NewStoreFile(file_id=file)]),
        lambda: shelf.admin.stores.set_attributes(made, file, {}),
        lambda: shelf.admin.stores.update(made, StoreChange(expires_after_days=None)),
    ):
        with pytest.raises(InvalidInput, match="expired"):
            verb()
    shelf.admin.stores.delete(made)
    shelf.settle()


def test_a_store_that_is_searched_stays(shelf: Any) -> None:
    made = shelf.store(BIRDS[0], expires_after_days=1).id
    shelf.change("UPDATE vector_stores SET last_active_at = last_active_at - 86000000000 WHERE id = ?", made)
    before = shelf.admin.stores.get(made).last_active_at
    shelf.search(made, "heron")
    after = shelf.admin.stores.get(made)
    assert after.last_active_at - before > timedelta(hours=23)
    assert after.expires_at == after.last_active_at + timedelta(days=1)


# --- attributes ----------------------------------------------------------------------------------------


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({f"k{n}": n for n in range(17)}, "attributes"),
        ({"k" * 65: 1}, "attributes." + "k" * 65),
        ({"k": "v" * 513}, "attributes.k"),
        ({"k": [1]}, "attributes.k"),
        ({"k": {"a": 1}}, "attributes.k"),
        ({"k": float("nan")}, "attributes.k"),
        ({"k": float("inf")}, "attributes.k"),
        ({"k": 1 << 63}, "attributes.k"),
        ({"k": "a\x00"}, "attributes.k"),
        ({"k": "\ud800"}, "attributes.k"),
        ({"": 1}, "attributes."),
        ({"$kind": "note"}, "attributes.$kind"),
        ("text", "attributes"),
    ],
)
def test_attributes_are_few_and_plain(shelf: Any, given: Any, named: str) -> None:
    made = shelf.store(BIRDS[0])
    file = shelf.admin.stores.files(made.id).data[0].id
    with pytest.raises(InvalidInput) as caught:
        shelf.admin.stores.set_attributes(made.id, file, given)
    assert caught.value.field == named
    other = shelf.file("other").id
    with pytest.raises(InvalidInput):
        shelf.admin.stores.attach(made.id, [NewStoreFile(file_id=other, attributes=given)])
    assert shelf.admin.stores.get(made.id).file_counts.total == 1


def test_the_largest_attributes_fit(shelf: Any) -> None:
    given = {f"{n:064d}": "ü" * 512 for n in range(12)} | {"i": -(1 << 63), "f": 0.5, "t": True, "n": None}
    made = shelf.admin.stores.create().id
    file = shelf.attach(made, BIRDS[0], attributes=given)
    assert shelf.admin.stores.file(made, file).attributes == given
    assert shelf.search(made, "heron").data[0].attributes == given


def test_a_filter_finds_by_the_new_value_at_once(shelf: Any) -> None:
    made = shelf.admin.stores.create(chunking=Chunking(size=4, overlap=0)).id
    file = shelf.attach(made, " ".join(BIRDS), attributes={"year": 2024, "draft": True})
    shelf.attach(made, "The heron again.", attributes={"year": 2025})
    old = {"type": "eq", "key": "year", "value": 2024}
    assert {hit.file_id for hit in shelf.search(made, "heron", filters=old, limit=50).data} == {file}
    held = shelf.admin.stores.set_attributes(made, file, {"year": 2030})
    assert held.attributes == {"year": 2030}
    assert shelf.search(made, "heron", filters=old).data == []
    found = shelf.search(made, "heron", filters={"year": 2030}, limit=50, merge=False).data
    assert {(hit.file_id, hit.attributes["year"]) for hit in found} == {(file, 2030)}
    assert len(found) == shelf.admin.stores.file(made, file).chunk_count > 5
    assert shelf.search(made, "heron", filters={"draft": True}).data == []
    for mode in ("keyword", "dense"):
        assert shelf.search(made, "heron", filters={"year": 2030}, mode=mode).data


def test_attributes_set_while_a_file_is_indexed_stay(
    lone: Any, fragile: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "BATCH", 10)
    waits, go = threading.Event(), threading.Event()

    async def hold(texts: Any, task: Any = "document") -> Any:
        if task == "document" and "word30" in "".join(texts):
            waits.set()
            while not go.is_set():
                await asyncio.sleep(0.005)
        return await embed(texts, task)

    embed, fragile.embed = fragile.embed, hold
    made = lone.admin.stores.create(chunking=Chunking(size=3, overlap=0)).id
    file = lone.file("".join(f"word{n}\n" for n in range(50))).id
    lone.admin.stores.attach(made, [NewStoreFile(file_id=file, attributes={"n": 1})])
    assert waits.wait(5)
    lone.admin.stores.set_attributes(made, file, {"n": 2})
    go.set()
    lone.settle()
    assert lone.admin.stores.file(made, file).status == "completed"
    assert set(lone.rows("SELECT DISTINCT metadata FROM memories")) == {('{"n":2}',)}
    assert len(lone.search(made, "word1", filters={"n": 2}, limit=50, merge=False).data) == 50
    assert lone.search(made, "word1", filters={"n": 1}).data == []


def test_the_last_attributes_win_on_every_chunk(lone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job of the first is still under way when that of the second has ended."""
    monkeypatch.setattr(pipeline, "MARKS", 3)
    made = lone.admin.stores.create(chunking=Chunking(size=3, overlap=0)).id
    file = lone.attach(made, "".join(f"word{n}\n" for n in range(20)))
    waits, go, real = threading.Event(), threading.Event(), pipeline.Pipeline._seqs

    def slowly(self: Any, tenant: str, attached: int, after: int) -> list[int]:
        if after > 0 and not waits.is_set():
            waits.set()
            go.wait(10)
        return real(self, tenant, attached, after)

    monkeypatch.setattr(pipeline.Pipeline, "_seqs", slowly)
    first = threading.Thread(target=lone.admin.stores.set_attributes, args=(made, file, {"n": 1}))
    first.start()
    assert waits.wait(10)
    lone.admin.stores.set_attributes(made, file, {"n": 2})
    go.set()
    first.join(10)
    lone.settle()
    assert lone.admin.stores.file(made, file).attributes == {"n": 2}
    assert lone.rows("SELECT DISTINCT metadata FROM memories") == [('{"n":2}',)]
    assert len(lone.search(made, "word1", filters={"n": 2}, limit=50, merge=False).data) == 20


def test_attributes_that_did_not_reach_the_chunks_are_said(
    lone: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = lone.admin.stores.create().id
    file = lone.attach(made, BIRDS[0])

    def broken(*args: Any) -> Any:
        raise ValueError("the rows are haunted")

    monkeypatch.setattr(lone.core.store, "rewrite", broken)
    with pytest.raises(StorageError, match="haunted"):
        lone.admin.stores.set_attributes(made, file, {"n": 2})


# --- splitting -----------------------------------------------------------------------------------------


STRATEGIES = [
    Chunking(size=40, overlap=10),
    Chunking(strategy="recursive", size=30, overlap=8),
    Chunking(strategy="semantic", size=40, overlap=0),
    Chunking(strategy="recursive", size=30, overlap=0, header=True),
]


@pytest.mark.parametrize("chunking", STRATEGIES, ids=["fixed", "recursive", "semantic", "header"])
def test_every_strategy_from_file_to_passage(lone: Any, chunking: Chunking) -> None:
    made = lone.admin.stores.create(chunking=chunking)
    assert made.chunking == chunking
    file = lone.attach(made.id, GUIDE, "guide.md")
    held = lone.admin.stores.file(made.id, file)
    assert (held.status, held.title, held.chunking) == ("completed", "Birds", chunking)
    found = lone.search(made.id, "where does the kite circle", limit=50, merge=False).data
    assert len(found) == held.chunk_count > 2
    for hit in found:
        assert hit.text == GUIDE[hit.start : hit.end]
        assert (hit.title, hit.filename) == ("Birds", "guide.md")
    seen = {at for hit in found for at in range(hit.start, hit.end)}
    assert all(at in seen or GUIDE[at].isspace() for at in range(len(GUIDE)))
    assert sorted(hit.chunk_index for hit in found) == list(range(held.chunk_count))
    assert "Birds > Kite" in {hit.heading for hit in found}
    first = lone.admin.stores.chunks(made.id, file, limit=2)
    chunks = [*first.data, *lone.admin.stores.chunks(made.id, file, limit=100, after=first.last_id).data]
    assert first.has_more
    assert [chunk.index for chunk in chunks] == list(range(lone.admin.stores.file(made.id, file).chunk_count))
    assert all(chunk.content == GUIDE[chunk.start : chunk.end] and chunk.tokens > 0 for chunk in chunks)
    with pytest.raises(InvalidInput, match="after"):
        lone.admin.stores.chunks(made.id, file, after="nothing")
    text = lone.admin.stores.text(made.id, file)
    assert text.split() == GUIDE.split()
    assert all(text[hit.start : hit.end] == hit.text for hit in found)


def test_a_header_is_searched_and_not_shown(lone: Any) -> None:
    plain, above = (
        lone.admin.stores.create(
            chunking=Chunking(strategy="recursive", size=30, overlap=0, header=header)
        ).id
        for header in (False, True)
    )
    for store in (plain, above):
        lone.attach(store, GUIDE, "guide.md")
    asked = "Birds Kite: it likes the warm air"
    best = lone.search(above, asked, merge=False).data[0]
    assert "warm air" in best.text
    assert "Birds" not in best.text
    assert best.similarity > lone.search(plain, asked, merge=False).data[0].similarity
    count = lone.admin.stores.files(above).data[0].chunk_count
    assert len(lone.search(plain, "birds", mode="keyword", limit=50, merge=False).data) < count
    assert len(lone.search(above, "birds", mode="keyword", limit=50, merge=False).data) == count


@pytest.mark.parametrize("chunking", STRATEGIES[:3], ids=["fixed", "recursive", "semantic"])
def test_passages_know_the_columns_of_the_table_they_go_on_with(lone: Any, chunking: Chunking) -> None:
    made = lone.admin.stores.create(chunking=chunking).id
    rows = [f"Part {n},{n * 3},rack {n % 7}" for n in range(60)]
    lone.attach(made, "\n".join(["Item,Price,Place", *rows]), "parts.csv")
    text = "\n".join(row.replace(",", " | ") for row in ["Item,Price,Place", *rows])
    found = lone.search(made, "What is the price of Part 41?", limit=50, merge=False).data
    assert len(found) > 5
    for hit in found:
        assert hit.text == text[hit.start : hit.end]
        assert hit.columns == "Item | Price | Place"
        assert hit.readable.startswith("Item | Price | Place\n")
        assert hit.readable.count("Price") == 1
    assert len(lone.search(made, "price", mode="keyword", limit=50, merge=False).data) == len(found)
    wide = lone.search(made, "Part 41", limit=1, neighbours=1).data[0]
    assert wide.columns == "Item | Price | Place"
    assert wide.text == text[wide.start : wide.end]


def test_a_files_own_strategy_goes_before_the_stores(shelf: Any) -> None:
    made = shelf.admin.stores.create(chunking=Chunking(size=8, overlap=2)).id
    text = " ".join(BIRDS)
    as_store = shelf.attach(made, text)
    own = shelf.attach(made, text, chunking=Chunking(size=4, overlap=0))
    files = {one.id: one for one in shelf.admin.stores.files(made).data}
    assert files[as_store].chunking == Chunking(size=8, overlap=2)
    assert files[own].chunking == Chunking(size=4, overlap=0)
    assert files[own].chunk_count > files[as_store].chunk_count


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(("size", "overlap"), [(1, 0), (7, 0), (7, 3), (512, 50)])
def test_as_many_chunks_as_the_arithmetic_says(shelf: Any, size: int, overlap: int) -> None:
    words = 50
    made = shelf.admin.stores.create(chunking=Chunking(size=size, overlap=overlap)).id
    file = shelf.attach(made, " hello" * words)
    expected = 1 if words <= size else 1 + -(-(words - size) // (size - overlap))
    assert shelf.admin.stores.file(made, file).chunk_count == expected
    one = shelf.attach(made, "hello world")
    assert shelf.admin.stores.file(made, one).chunk_count == (2 if size == 1 else 1)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(1, 6)), max_size=8))
def test_pieces_put_together_keep_their_places(steps: list[tuple[int, int, int]]) -> None:
    pieces, at, text = [], 0, ""
    for gap, back, length in steps:
        start = max(0, at + gap - (back if not gap else 0))
        text += " " * (start - len(text))
        stop = max(start + length, len(text))
        text += "".join(chr(97 + n % 26) for n in range(len(text), stop))
        pieces.append((start, text[start:stop]))
        at = stop
    whole = joined(pieces)
    first = pieces[0][0] if pieces else 0
    assert len(whole) == len(text) - first
    assert [a for a, b in zip(whole, text[first:], strict=True) if a != b and not a.isspace()] == []


# --- searching -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many(house: Any) -> tuple[Any, str]:
    """A product and a store in a tenant of its own, of sixty files that are numbered and coloured."""
    knowledge = house.inner.as_subject(Subject(tenant_id="many")).knowledge
    colours = ("red", "green", "blue")

    async def build() -> str:
        made = await knowledge.stores.create()
        files = []
        for n in range(60):
            text = f"the heron number{n} {' '.join(f'w{n * k % 37}' for k in range(1, 4))}"
            file = await knowledge.files.upload(text.encode(), f"{n}.txt")
            files.append(NewStoreFile(file_id=file.id, attributes={"n": n, "colour": colours[n % 3]}))
        await knowledge.stores.attach(made.id, files)
        await knowledge.stores.wait(made.id, every=0.01)
        return made.id

    return house, house.portal.call(build())


@pytest.fixture
def wide(many: tuple[Any, str], shelf: Any) -> tuple[Any, str]:
    """The shelf of `many`, and its store."""
    return type(shelf)(many[0], "many"), many[1]


def check_scores(found: list[Passage], threshold: float = 0.0) -> None:
    """Scores are in [0, 1] and never rise, and no similarity is below the threshold."""
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)
    assert all(0.0 <= score <= 1.0 for score in scores)
    assert all(hit.similarity is None or hit.similarity >= threshold - 1e-6 for hit in found)


@settings(max_examples=16, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    limit=st.integers(1, 60),
    threshold=st.sampled_from([None, 0.0, 0.05, 0.3, 0.6, 1.0]),
    mode=st.sampled_from(["hybrid", "dense"]),
    low=st.integers(0, 60),
    colours=st.sets(st.sampled_from(["red", "green", "blue", "none"]), min_size=1),
    diversity=st.sampled_from([0.0, 0.4, 1.0]),
    queries=st.lists(
        st.sampled_from(["the heron", "number7", "w3 w5", "nothing at all"]), min_size=1, max_size=3
    ),
)
def test_filters_threshold_and_limit_hold_together(
    wide: tuple[Any, str],
    limit: int,
    threshold: float | None,
    mode: str,
    low: int,
    colours: set[str],
    diversity: float,
    queries: list[str],
) -> None:
    shelf, store = wide
    filters = {
        "type": "and",
        "filters": [
            {"type": "gte", "key": "n", "value": low},
            {"type": "in", "key": "colour", "value": sorted(colours)},
        ],
    }
    found = shelf.search(
        store, *queries, limit=limit, threshold=threshold, mode=mode, filters=filters, diversity=diversity
    )
    passing = [n for n in range(low, 60) if ("red", "green", "blue")[n % 3] in colours]
    got = [hit.attributes["n"] for hit in found.data]
    assert len(got) == len(set(got))
    assert set(got) <= set(passing)
    if not threshold:
        assert len(got) == min(limit, len(passing))
    check_scores(found.data, threshold or 0.0)
    assert found.queries == queries
    assert found.degraded == []


def test_no_threshold_and_zero_are_no_floor(wide: tuple[Any, str]) -> None:
    shelf, store = wide
    for threshold in (None, 0, 0.0):
        assert len(shelf.search(store, "unrelated", threshold=threshold, limit=100).data) == 60
    exact = shelf.search(store, "the heron number0 w0 w0 w0", threshold=0.95).data
    assert [hit.attributes["n"] for hit in exact] == [0]
    assert shelf.search(store, "unrelated", threshold=0.95).data == []
    for wrong in (-0.1, 1.1):
        with pytest.raises(InvalidInput, match="threshold"):
            shelf.search(store, "heron", threshold=wrong)
    with pytest.raises(InvalidInput, match="threshold"):
        shelf.search(store, "heron", threshold=0.5, mode="keyword")


def test_a_passage_counts_with_its_best_query(wide: tuple[Any, str]) -> None:
    shelf, store = wide
    found = shelf.search(store, "number7", "number11", limit=2)
    assert {hit.attributes["n"] for hit in found.data} == {7, 11}
    assert found.queries == ["number7", "number11"]
    alone = shelf.search(store, "number7", limit=1).data[0]
    both = next(hit for hit in found.data if hit.attributes["n"] == 7)
    assert both.similarity == alone.similarity


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"queries": []}, "query"),
        ({"queries": ["x"] * 33}, "query"),
        ({"queries": [" "]}, "query"),
        ({"queries": ["\ud800"]}, "query"),
        ({"queries": ["x" * 50_000, "y"]}, "query[0]"),
        ({"limit": 0}, "limit"),
        ({"limit": 1_001}, "limit"),
        ({"diversity": 1.5}, "diversity"),
        ({"neighbours": 11}, "expand.neighbours"),
        ({"neighbours": -1}, "expand.neighbours"),
        ({"weights": {"dense": -1.0}}, "weights.dense"),
        ({"weights": {"magic": 1.0}}, "weights.magic"),
        ({"filters": {"type": "eq", "key": "$kind", "value": "note"}}, "filters.key"),
        ({"filters": {"$tenant_id": "x"}}, "filters.$tenant_id"),
        ({"filters": []}, "filters"),
    ],
)
def test_a_search_refuses(wide: tuple[Any, str], fields: dict[str, Any], named: str) -> None:
    shelf, store = wide
    asked = {"queries": ["heron"], **fields}
    with pytest.raises(InvalidInput) as caught:
        shelf.search(store, *asked.pop("queries"), **asked)
    assert caught.value.field == named


def test_a_search_names_one_to_a_hundred_stores(wide: tuple[Any, str]) -> None:
    shelf, store = wide
    for ids in ([], [f"vs_{n}" for n in range(101)]):
        with pytest.raises(InvalidInput, match="vector_store_ids"):
            shelf.search(ids, "heron")
    assert len(shelf.search([store] * 3, "heron", limit=100).data) == 60


def test_several_stores_are_searched_as_one(shelf: Any) -> None:
    one, two, third = (
        shelf.store(BIRDS[0], BIRDS[1]).id,
        shelf.store(BIRDS[2], BIRDS[3]).id,
        shelf.store(BIRDS[0]).id,
    )
    found = shelf.search([one, two], "heron kite wren", limit=10).data
    assert sorted(hit.text for hit in found) == sorted(BIRDS)
    assert {hit.vector_store_id for hit in found} == {one, two}
    check_scores(found)
    whole = shelf.store(*BIRDS).id
    together = shelf.search(whole, "heron kite wren", limit=10).data
    assert [hit.similarity for hit in together] == [hit.similarity for hit in found]
    assert {hit.vector_store_id for hit in shelf.search(third, "heron").data} == {third}


def test_evidence_counts_the_name_of_the_file(shelf: Any) -> None:
    made = shelf.store(*BIRDS).id
    shelf.attach(made, "All is quiet here.", "meadow-report.txt")
    found = shelf.search(made, "meadow report")
    assert found.data[0].filename == "meadow-report.txt"
    assert found.evidence == "strong"
    questions = shelf.store().id
    shelf.attach(questions, "Which bird is rare?", "woodcock.txt")
    assert shelf.search(questions, "woodcock").evidence == "none"


def test_variety_shows_what_is_different(shelf: Any) -> None:
    same = [f"the heron stands in the tall reeds{' ' * n}." for n in range(4)]
    made = shelf.store(*same, "the heron in a poem by a monk").id
    plain = shelf.search(made, "the heron in the reeds", limit=2).data
    varied = shelf.search(made, "the heron in the reeds", limit=2, diversity=0.7).data
    assert all("tall" in hit.text for hit in plain)
    assert "tall" in varied[0].text
    assert "monk" in varied[1].text
    check_scores(varied)


def test_a_passage_is_widened_by_its_neighbours(shelf: Any) -> None:
    text = " ".join(f"word{n}" for n in range(60))
    made = shelf.admin.stores.create(chunking=Chunking(size=6, overlap=2)).id
    count = shelf.admin.stores.file(made, shelf.attach(made, text)).chunk_count
    for reach in (0, 1, 2, 10):
        for hit in shelf.search(made, "word30 word31", limit=count, neighbours=reach).data:
            assert hit.text == text[hit.start : hit.end]
            first, last = max(0, hit.chunk_index - reach), min(count - 1, hit.chunk_index + reach)
            if (first, last) == (0, count - 1):
                assert hit.text == text
            assert len(hit.text) >= (last - first) * 4


def test_a_passage_names_the_pages_that_it_begins_and_ends_on(lone: Any) -> None:
    pages = [[f"On page {n} the heron stands beside the reeds and" for _ in range(4)] for n in range(1, 5)]
    made = lone.admin.stores.create(chunking=Chunking(size=60, overlap=0)).id
    id_ = lone.attach(made, pdf_of([page(lines) for lines in pages]), "herons.pdf")
    chunks = lone.admin.stores.chunks(made, id_).data
    assert {(chunk.page, chunk.last_page) for chunk in chunks} >= {(1, 2), (2, 3)}
    for chunk in chunks:
        said = [int(n) for n in re.findall(r"page (\d)", chunk.content)]
        assert chunk.page <= said[0] <= said[-1] <= chunk.last_page
    hits = lone.search(made, "heron", limit=50, merge=False).data
    assert {(hit.chunk_index, hit.page, hit.last_page) for hit in hits} == {
        (chunk.index, chunk.page, chunk.last_page) for chunk in chunks
    }
    widened = lone.search(made, "heron", limit=50, merge=False, neighbours=10).data
    assert {(hit.page, hit.last_page) for hit in widened} == {(1, 4)}


def test_a_passage_is_widened_to_its_section(lone: Any) -> None:
    made = lone.admin.stores.create(chunking=Chunking(strategy="recursive", size=20, overlap=0)).id
    lone.attach(made, GUIDE, "guide.md")
    start, stop = GUIDE.index("## Heron"), GUIDE.index("## Kite")
    best = lone.search(made, "the heron waits for fish and frogs", section=True, limit=1).data[0]
    assert best.heading == "Birds > Heron"
    assert len(best.text) == best.end - best.start
    assert (best.start, best.end) == (start, len(GUIDE[:stop].rstrip()))
    assert best.text.split() == GUIDE[start:stop].split()
    real = GUIDE[best.start : best.end]
    assert all(ours == other or (ours + other).isspace() for ours, other in zip(best.text, real, strict=True))
    little = lone.search(
        made, "the heron waits for fish and frogs", section=True, section_tokens=20, limit=1
    ).data[0]
    assert little.heading == best.heading
    assert best.start <= little.start < little.end <= best.end
    assert len(little.text) < len(best.text)


def test_a_question_is_cleaned_when_asked(wide: tuple[Any, str]) -> None:
    shelf, store = wide
    said = "Could you please tell me about number7? Thanks!"
    assert shelf.search(store, said).queries == [said]
    found = shelf.search(store, said, "number11", rewrite=True, limit=2)
    assert found.queries[0] != said
    assert "please" not in found.queries[0]
    assert "number7" in found.queries[0]
    assert {hit.attributes["n"] for hit in found.data} == {7, 11}


def test_a_hit_explains_itself(wide: tuple[Any, str]) -> None:
    shelf, store = wide
    assert shelf.search(store, "number7").data[0].explanation is None
    for hit in shelf.search(store, "number7 heron", explain=True).data:
        assert hit.explanation.similarity == hit.similarity
        assert hit.score == pytest.approx(1 / (1 + math.exp(-sum(hit.explanation.added.values()))), abs=1e-6)


def test_weights_turn_the_order(shelf: Any) -> None:
    made = shelf.store("kestrel", "the kestrel the hawk the owl and the buzzard on one long wire").id
    by_words = shelf.search(made, "hawk", weights={"dense": 0.0, "words": 1.0}).data
    assert "hawk" in by_words[0].text


def test_no_embedding_is_in_any_answer(shelf: Any) -> None:
    made = shelf.store(*BIRDS).id
    file = shelf.admin.stores.files(made).data[0].id
    vectors = shelf.rows("SELECT vector FROM embeddings WHERE tenant_id = ?", shelf.tenant)
    first = [float(value) for value in np.frombuffer(bytes(vectors[0][0]), "<f4") if value][:3]
    answers = [
        shelf.search(made, "heron", limit=50, explain=True, neighbours=2, diversity=0.3),
        shelf.admin.stores.get(made),
        shelf.admin.stores.files(made),
        shelf.admin.stores.file(made, file),
        shelf.admin.stores.set_attributes(made, file, {"a": 1}),
        shelf.admin.files.get(file),
    ]
    for answer in answers:
        said = repr(answer)
        assert "embedding" not in said
        assert "vector=" not in said
        assert "array(" not in said
        assert f"{first[0]:.6f}"[:8] not in said or first[0] in (1.0, -1.0, 0.0)


# --- when the model is away ----------------------------------------------------------------------------


def test_without_the_model_words_answer_and_say_so(lone: Any, fragile: Any) -> None:
    made = lone.store(*BIRDS).id
    fragile.away = True
    found = lone.search(made, "wren in the hedge", limit=10)
    assert found.degraded == ["embedding"]
    assert found.data[0].text == BIRDS[2]
    assert all(hit.similarity is None for hit in found.data)
    check_scores(found.data)
    with pytest.raises(EmbedderUnavailable):
        lone.search(made, "wren in the marsh", mode="dense")
    assert lone.search(made, "wren", mode="keyword").degraded == []
    fragile.away = False
    assert lone.search(made, "wren in the hedge").degraded == []


# --- memories and chunks -------------------------------------------------------------------------------


def test_memories_never_see_chunks(shelf: Any) -> None:
    memories = shelf.rc.as_subject(shelf.admin.subject).memories
    made = shelf.store(*BIRDS, BIRDS[0]).id
    chunk = shelf.search(made, "heron").data[0].chunk_id
    for scopes in (None, ["all"], ["global"], [f"channel:{made}"]):
        for mode in ("hybrid", "dense", "keyword"):
            assert memories.search("heron kite wren", scopes=scopes, mode=mode, limit=50).results == []
        assert memories.list(scopes=scopes).data == []
        assert memories.count(scopes=scopes) == 0
        assert len(list(memories.export(scopes=scopes))) == 1
        assert memories.near_duplicates(scopes=scopes).data == []
        assert memories.forget(scopes=scopes or ["all"], kinds=list(KINDS)).memories == 0
    assert memories.count(source=f"{made}/1", include_archived=True) == 0
    assert memories.forget([chunk]).memories == 0
    for verb in (memories.get, memories.delete, lambda id_: memories.update(id_, content="mine")):
        with pytest.raises(NotFound):
            verb(chunk)
    with pytest.raises(InvalidInput, match="after"):
        memories.list(after=chunk)
    memories.count_access([chunk])
    stats = memories.stats()
    assert (stats["memories"], stats["by_kind"], stats["chunks"], stats["characters"]) == (0, {}, 5, 0)
    for kinds in (["chunk"],):
        with pytest.raises(InvalidInput):
            memories.list(kinds=kinds)
    with pytest.raises(InvalidInput):
        memories.add("a heron", kind="chunk")
    added = memories.add(BIRDS[0], kind="document")
    assert added.created
    assert [hit.memory.id for hit in memories.search("heron", limit=50).results] == [added.memory.id]
    assert len(shelf.search(made, "heron", limit=50).data) == 5
    assert shelf.admin.admin.usage().memories == 1
    assert shelf.admin.admin.usage().chunks == 5


def test_stores_never_see_memories(shelf: Any) -> None:
    memories = shelf.rc.as_subject(shelf.admin.subject).memories
    made = shelf.store(BIRDS[1]).id
    (seq,) = shelf.rows("SELECT seq FROM store_files WHERE tenant_id = ?", shelf.tenant)[0]
    memories.add("the heron of a memory", channel_id=made)
    memories.add("the heron of a document", kind="document", channel_id=made, source=f"{made}/{seq}")
    memories.add("the heron of nowhere")
    for mode in ("hybrid", "dense", "keyword"):
        found = shelf.search(made, "the heron kite", limit=50, mode=mode, neighbours=3, section=True).data
        assert [hit.text for hit in found] == [BIRDS[1]]
    assert shelf.admin.stores.get(made).usage_bytes == len(BIRDS[1]) + 4 * 64
    shelf.admin.stores.delete(made)
    shelf.settle()
    assert memories.count() == 3
    assert shelf.admin.admin.usage().chunks == 0


def test_the_same_text_as_memory_and_chunk_is_two_rows(shelf: Any) -> None:
    memories = shelf.rc.as_subject(shelf.admin.subject).memories
    memories.add(BIRDS[0])
    made = shelf.store(BIRDS[0], BIRDS[0]).id
    assert len(shelf.search(made, "heron").data) == 2
    assert memories.add(BIRDS[0]).created is False
    memories.forget(scopes=["all"], kinds=["note"])
    assert len(shelf.search(made, "heron").data) == 2
