"""Files: what is kept, what is refused and leaves nothing, what fits, and lists that miss nothing."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import Forbidden, InvalidInput, NotFound, QuotaExceeded, StorageError
from memoranda.knowledge.values import NewStoreFile, StoredFile
from memoranda.text.splitting import Chunking
from support.pdf_files import page, pdf_of

PURPOSES = ("assistants", "batch", "fine-tune", "vision", "user_data", "evals")


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    """Pieces as they come."""
    for piece in given:
        yield piece


async def broken(*given: bytes) -> AsyncIterator[bytes]:
    """Pieces of a client that hangs up."""
    for piece in given:
        yield piece
    raise ConnectionResetError("gone")


def bytes_of(shelf: Any, id_: str) -> bytes:
    """A file's bytes, as they are read back."""

    async def read() -> bytes:
        _, following = await shelf.admin.files.inner.content(id_)
        return b"".join([piece async for piece in following])

    return shelf.rc.portal.call(read())  # type: ignore[no-any-return]


def blobs(shelf: Any) -> list[str]:
    """The ids of all bytes of the tenant, begun ones too."""
    return [id_ for tenant, id_ in shelf.core.blobs.stored(-10.0) if tenant == shelf.tenant]


def nothing(shelf: Any) -> bool:
    """Whether the tenant has neither a file nor bytes."""
    rows = shelf.rows("SELECT count(*) FROM files WHERE tenant_id = ?", shelf.tenant)
    return rows == [(0,)] and blobs(shelf) == []


# --- one file ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"x", b"\x00\xff" * 700_000, "日本語\r\n".encode()])
def test_a_file_comes_back_as_it_was(shelf: Any, content: bytes) -> None:
    made = shelf.file(content, "päth/../x y.txt", media_type="text/plain", purpose="user_data")
    assert bytes_of(shelf, made.id) == content
    assert made == shelf.admin.files.get(made.id)
    assert (made.filename, made.bytes, made.media_type) == ("päth/../x y.txt", len(content), "text/plain")
    assert (made.sha256, made.purpose) == (hashlib.sha256(content).hexdigest(), "user_data")
    assert made.expires_at is None
    assert made.user_id is None
    assert blobs(shelf) == [made.id]


def test_a_file_is_its_makers(shelf: Any) -> None:
    assert shelf.file("x", by=shelf.by("ann")).user_id == "ann"
    assert shelf.file("x", by=shelf.by("cat", "service")).user_id == "cat"


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"name": ""}, "filename"),
        ({"name": "  "}, "filename"),
        ({"name": "a" * 513}, "filename"),
        ({"name": "a\x00.txt"}, "filename"),
        ({"name": "\ud800.txt"}, "filename"),
        ({"purpose": "fun"}, "purpose"),
        ({"purpose": None}, "purpose"),
        ({"expires_after_seconds": 3_599}, "expires_after.seconds"),
        ({"expires_after_seconds": 2_592_001}, "expires_after.seconds"),
        ({"expires_after_seconds": True}, "expires_after.seconds"),
        ({"expires_after_seconds": 3_600.0}, "expires_after.seconds"),
        ({"media_type": "x" * 513}, "mime_type"),
        ({"media_type": "a\x00"}, "mime_type"),
    ],
)
def test_what_is_refused_leaves_nothing(shelf: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        shelf.file("some text", **fields)
    assert caught.value.field == named
    assert nothing(shelf)


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize("purpose", PURPOSES)
def test_every_purpose_is_kept_and_listed_by(shelf: Any, purpose: str) -> None:
    for one in PURPOSES:
        shelf.file(one, purpose=one)
    assert [one.purpose for one in shelf.admin.files.list(purpose=purpose).data] == [purpose]


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize("seconds", [3_600, 2_592_000])
def test_a_file_that_expires_says_when(shelf: Any, seconds: int) -> None:
    made = shelf.file("x", expires_after_seconds=seconds)
    assert made.expires_at == made.created_at + timedelta(seconds=seconds)


def test_who_hangs_up_leaves_nothing(shelf: Any) -> None:
    with pytest.raises(ConnectionResetError):
        shelf.admin.files.upload(broken(b"a" * 300_000, b"b"), "a.txt")
    assert nothing(shelf)


def test_whoever_is_cancelled_leaves_nothing_or_a_whole_file(shelf: Any) -> None:
    """Cancelled after every number of turns of the loop there is."""
    files = shelf.admin.files.inner

    async def story(turns: int) -> bool:
        task = asyncio.create_task(files.upload(pieces(b"abc", b"def"), "a.txt"))
        for _ in range(turns):
            await asyncio.sleep(0)
        ended = task.done()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return ended

    async def slowly(turns: int) -> None:
        """Cancelled while it waits for one of its threads."""
        task = asyncio.create_task(files.upload(pieces(b"abc", b"def"), "a.txt"))
        await asyncio.sleep(turns / 4_000)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for turns in range(30):
        shelf.rc.portal.call(story(turns))
        shelf.rc.portal.call(slowly(turns))
    shelf.core.store.db.write(lambda c: None).result()
    for one in shelf.admin.files.list().data:
        assert bytes_of(shelf, one.id) == b"abcdef"
    # What was cut off between its bytes and its row is swept.
    shelf.expiry._sweep(-10.0)
    assert sorted(blobs(shelf)) == sorted(one.id for one in shelf.admin.files.list().data)


def test_a_row_that_is_written_keeps_its_bytes(shelf: Any) -> None:
    """Cancelled while its row waits to be written."""
    files, gate = shelf.admin.files.inner, threading.Event()

    async def story() -> None:
        staged = await files.stage(pieces(b"abc"))
        shelf.core.store.db.write(lambda c: gate.wait(10))
        task = asyncio.create_task(files.adopt(staged, filename="a.txt"))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.sleep(0.05)
        gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    shelf.rc.portal.call(story())
    shelf.core.store.db.write(lambda c: None).result()
    (one,) = shelf.admin.files.list().data
    assert bytes_of(shelf, one.id) == b"abc"


def test_a_full_disk_leaves_nothing(lone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(lone.core.blobs.writer(lone.tenant, "file-probe"))

    def full(self: Any, piece: bytes) -> None:
        self.abort()
        raise StorageError("no space left on the disk")

    lone.core.blobs.delete(lone.tenant, "file-probe.part")
    monkeypatch.setattr(kind, "write", full)
    with pytest.raises(StorageError, match="no space"):
        lone.file("abc")
    assert nothing(lone)


def test_a_deleted_file_is_gone_everywhere(shelf: Any) -> None:
    made = shelf.store("the heron", "the kite")
    gone, other = (one.id for one in shelf.admin.stores.files(made.id).data)
    shelf.admin.files.delete(gone)
    for verb in (shelf.admin.files.get, shelf.admin.files.content, shelf.admin.files.delete):
        with pytest.raises(NotFound):
            verb(gone)
    assert [one.id for one in shelf.admin.stores.files(made.id).data] == [other]
    assert {hit.file_id for hit in shelf.search(made.id, "heron kite").data} == {other}
    assert blobs(shelf) == [other]


def test_what_is_read_ends_well_when_the_file_is_deleted_meanwhile(shelf: Any) -> None:
    content = bytes(range(256)) * 8_000
    made = shelf.file(content)

    async def story() -> bytes:
        _, following = await shelf.admin.files.inner.content(made.id)
        first = await anext(following)
        await shelf.admin.files.inner.delete(made.id)
        return first + b"".join([piece async for piece in following])

    try:
        read: object = shelf.rc.portal.call(story())
    except NotFound as exc:
        read = str(exc)
    assert read in (content, f"the bytes of {made.id} were deleted while they were read")


# --- how much fits -------------------------------------------------------------------------------------


def bound(shelf: Any, **quotas: int | None) -> None:
    """Sets what the tenant may hold."""
    shelf.by(tenant="default").admin.set_quotas(quotas, shelf.tenant)


def test_a_file_may_be_as_large_as_its_quota(shelf: Any) -> None:
    bound(shelf, max_file_bytes=10)
    assert shelf.file("0123456789").bytes == 10
    with pytest.raises(QuotaExceeded, match="max_file_bytes") as caught:
        shelf.admin.files.upload(pieces(b"01234", b"567890"), "a.txt")
    assert (caught.value.field, caught.value.quota) == ("file", "max_file_bytes")
    assert len(blobs(shelf)) == 1
    bound(shelf, max_file_bytes=None)
    assert shelf.file("01234567890").bytes == 11


def test_files_and_pending_parts_share_the_storage(shelf: Any) -> None:
    bound(shelf, max_storage_bytes=10)
    shelf.file("0123")
    begun = shelf.admin.uploads.create(filename="a", bytes=6, purpose="batch").id
    shelf.admin.uploads.add_part(begun, pieces(b"01234"))
    with pytest.raises(QuotaExceeded, match="max_storage_bytes") as caught:
        shelf.file("01")
    assert caught.value.quota == "max_storage_bytes"
    held = shelf.file("0")
    with pytest.raises(QuotaExceeded, match="max_storage_bytes"):
        shelf.admin.uploads.add_part(begun, pieces(b"5"))
    assert len(blobs(shelf)) == 3
    assert shelf.admin.admin.usage().storage_bytes == 10
    shelf.admin.files.delete(held.id)
    last = shelf.admin.uploads.add_part(begun, pieces(b"5")).id
    parts = shelf.rows("SELECT id FROM upload_parts WHERE tenant_id = ? AND id <> ?", shelf.tenant, last)
    assert shelf.admin.uploads.complete(begun, [parts[0][0], last]).status == "completed"
    assert shelf.admin.admin.usage().storage_bytes == 10
    with pytest.raises(QuotaExceeded):
        shelf.file("0")


def test_an_empty_file_needs_no_room(shelf: Any) -> None:
    bound(shelf, max_storage_bytes=0)
    assert shelf.file("").bytes == 0


def test_a_store_holds_as_many_files_as_its_quota(shelf: Any) -> None:
    bound(shelf, max_files_per_store=2)
    files = [NewStoreFile(file_id=shelf.file(f"text {n}").id) for n in range(3)]
    ids = [one.file_id for one in files]
    with pytest.raises(QuotaExceeded, match="max_files_per_store") as caught:
        shelf.admin.stores.create(file_ids=ids)
    assert caught.value.quota == "max_files_per_store"
    assert shelf.admin.stores.list().data == []
    made = shelf.admin.stores.create(file_ids=ids[:1]).id
    for verb in (shelf.admin.stores.attach, shelf.admin.stores.create_batch):
        with pytest.raises(QuotaExceeded):
            verb(made, files)
        assert shelf.admin.stores.get(made).file_counts.total == 1
    shelf.admin.stores.attach(made, files[:2])
    shelf.admin.stores.attach(made, files[:2])  # they are there already
    with pytest.raises(QuotaExceeded):
        shelf.admin.stores.attach(made, files[2:])
    shelf.admin.stores.detach(made, ids[0])
    shelf.admin.stores.attach(made, files[2:])
    assert shelf.admin.stores.get(made).file_counts.total == 2
    shelf.settle()


def test_there_are_as_many_stores_as_their_quota(shelf: Any) -> None:
    bound(shelf, max_stores=1)
    made = shelf.admin.stores.create().id
    with pytest.raises(QuotaExceeded, match="max_stores") as caught:
        shelf.admin.stores.create()
    assert caught.value.quota == "max_stores"
    shelf.admin.stores.delete(made)
    shelf.admin.stores.create()


def test_writers_side_by_side_do_not_pass_a_quota(shelf: Any) -> None:
    bound(shelf, max_storage_bytes=30, max_stores=3)

    async def story() -> list[Any]:
        files = [shelf.admin.files.inner.upload(pieces(b"0123456789"), "a.txt") for _ in range(8)]
        made = [shelf.admin.stores.inner.create() for _ in range(8)]
        return await asyncio.gather(*files, *made, return_exceptions=True)

    ended = shelf.rc.portal.call(story())
    assert sum(isinstance(one, StoredFile) for one in ended) == 3
    assert sum(isinstance(one, QuotaExceeded) for one in ended) == 10
    assert len(blobs(shelf)) == 3
    assert len(shelf.admin.stores.list().data) == 3


def test_quotas_are_set_by_the_operator_and_seen_by_the_tenants_admin(shelf: Any) -> None:
    operator = shelf.by(tenant="default")
    assert operator.admin.set_quotas({"max_stores": 3}, shelf.tenant).max_stores == 3
    assert shelf.admin.admin.quotas().max_stores == 3
    assert operator.admin.quotas(shelf.tenant) == shelf.admin.admin.quotas()
    for changes in ({"max_stores": -1}, {"max_stores": True}, {"max_stores": 1.5}, {"max_fun": 1}):
        with pytest.raises(InvalidInput, match="max_"):
            operator.admin.set_quotas(changes, shelf.tenant)
    for verb in (
        lambda: shelf.admin.admin.set_quotas({"max_stores": 9}),
        lambda: shelf.admin.admin.quotas("default"),
        lambda: shelf.admin.admin.usage("default"),
        lambda: shelf.by("ann").admin.usage(),
        lambda: shelf.by(role="service").admin.quotas(),
    ):
        with pytest.raises(Forbidden):
            verb()
    assert shelf.admin.admin.quotas().max_stores == 3
    default = shelf.core.quotas.max_stores
    assert operator.admin.set_quotas({"max_stores": None}, shelf.tenant).max_stores == default


# --- lists ---------------------------------------------------------------------------------------------


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"limit": 0}, "limit"),
        ({"limit": 10_001}, "limit"),
        ({"limit": True}, "limit"),
        ({"order": "up"}, "order"),
        ({"purpose": "fun"}, "purpose"),
        ({"after": "file-unknown"}, "after"),
        ({"after": "\x00"}, "after"),
    ],
)
def test_a_list_refuses(shelf: Any, fields: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        shelf.admin.files.list(**fields)
    assert caught.value.field == named


def test_a_cursor_of_anothers_file_names_nothing(shelf: Any) -> None:
    hidden = shelf.file("of bob", by=shelf.by("bob")).id
    with pytest.raises(InvalidInput, match="after"):
        shelf.by("ann").files.list(after=hidden)


steps = st.lists(st.integers(0, 3), max_size=6)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.integers(0, 9), st.integers(1, 4), st.sampled_from(["asc", "desc"]), steps)
def test_pages_hold_every_file_once_while_others_come(
    shelves: Any, count: int, limit: int, order: str, comes: list[int]
) -> None:
    shelf = shelves()
    there = [shelf.file("x", f"{n}.txt").id for n in range(count)]
    coming = iter(comes)
    seen: list[str] = []
    while True:
        found = shelf.admin.files.list(limit=limit, order=order, after=seen[-1] if seen else None)
        ids = [one.id for one in found.data]
        assert (found.first_id, found.last_id) == ((ids[0], ids[-1]) if ids else (None, None))
        seen += ids
        if not found.has_more:
            break
        assert len(ids) == limit
        new = [shelf.file("y").id for _ in range(next(coming, 0))]
        there += new if order == "asc" else []
    assert seen == (there if order == "asc" else there[::-1])


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_stores_and_their_files_are_paged_both_ways(shelves: Any, data: st.DataObject) -> None:
    shelf = shelves()
    count, limit = data.draw(st.integers(1, 7)), data.draw(st.integers(1, 4))
    order = data.draw(st.sampled_from(["asc", "desc"]))
    stores = [shelf.admin.stores.create().id for _ in range(count)]
    files = [shelf.file("x").id for _ in range(count)]
    for file in files:
        shelf.admin.stores.attach(stores[0], [NewStoreFile(file_id=file)])
    lists = (
        (stores, lambda **fields: shelf.admin.stores.list(**fields)),
        (files, lambda **fields: shelf.admin.stores.files(stores[0], **fields)),
    )
    for whole, listing in lists:
        wanted = whole if order == "asc" else whole[::-1]
        at = data.draw(st.integers(0, count - 1))
        after = listing(limit=limit, order=order, after=wanted[at])
        before = listing(limit=limit, order=order, before=wanted[at])
        assert [one.id for one in after.data] == wanted[at + 1 : at + 1 + limit]
        assert [one.id for one in before.data] == wanted[max(0, at - limit) : at]
        assert after.has_more == (at + 1 + limit < count)
        assert before.has_more == (at > limit)
        assert [one.id for one in listing(limit=100, order=order).data] == wanted
        for fields in ({"limit": 101}, {"limit": 0}, {"order": "x"}, {"after": "no"}, {"before": "no"}):
            with pytest.raises(InvalidInput, match=next(iter(fields))):
                listing(**fields)
        with pytest.raises(InvalidInput, match="before"):
            listing(after=wanted[0], before=wanted[0])
    shelf.settle()


def test_a_path_is_a_file_too(shelf: Any, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Heron\n", "utf-8")
    made = shelf.admin.files.upload(path)
    assert (made.filename, made.bytes) == ("notes.md", 8)
    with pytest.raises(InvalidInput, match="filename"):
        shelf.admin.files.upload(b"x")
    with pytest.raises(InvalidInput, match="cannot be read"):
        shelf.admin.files.upload(tmp_path / "missing.txt")


@pytest.mark.parametrize(
    "wrong",
    [
        {"filename": "a\x00"},
        {"filename": " "},
        {"purpose": "fun"},
        {"media_type": "\x00"},
        {"attributes": {"k": []}},
    ],
)
def test_a_file_that_goes_straight_into_a_store_is_in_both_or_neither(
    shelf: Any, wrong: dict[str, Any]
) -> None:
    made = shelf.admin.stores.create().id
    with pytest.raises(InvalidInput):
        shelf.admin.stores.upload(made, b"the heron", **{"filename": "a.txt", **wrong})
    bound(shelf, max_files_per_store=0)
    with pytest.raises(QuotaExceeded, match="max_files_per_store"):
        shelf.admin.stores.upload(made, b"the heron", "a.txt")
    with pytest.raises(NotFound):
        shelf.admin.stores.upload("vs_unknown", b"the heron", "a.txt")
    assert nothing(shelf)
    assert shelf.admin.stores.get(made).file_counts.total == 0
    bound(shelf, max_files_per_store=1)
    held = shelf.admin.stores.upload(
        made, b"the heron", "a.txt", attributes={"n": 1}, chunking=Chunking(size=7, overlap=0)
    )
    assert (held.status, held.attributes, held.chunking.size) == ("in_progress", {"n": 1}, 7)
    shelf.settle()
    assert [hit.file_id for hit in shelf.search(made, "heron").data] == [held.id]


# --- images of pages -----------------------------------------------------------------------------------


def test_a_page_of_a_pdf_is_an_image(shelf: Any) -> None:
    file = shelf.admin.files.upload(pieces(pdf_of([page(["The gate is green."])])), filename="gate.pdf")
    drawn = shelf.admin.files.page_image(file.id, 1, highlight=["the gate"])
    assert (drawn.image[:4], drawn.pages, drawn.marked) == (b"\x89PNG", 1, 1)
    with pytest.raises(InvalidInput, match=r"page: must be 1 to 1, the pages of gate\.pdf, not 2"):
        shelf.admin.files.page_image(file.id, 2)
    with pytest.raises(NotFound, match="no file"):
        shelf.by("bob").files.page_image(
            shelf.by("ada").files.upload(pieces(b"%PDF-1.4"), filename="x").id, 1
        )


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"a text", "is no PDF; only pages of PDFs have images"), (b"%PDF-1.4 broken", "is damaged, or no PDF")],
)
def test_what_has_no_pages_says_so(shelf: Any, content: bytes, says: str) -> None:
    file = shelf.admin.files.upload(pieces(content), filename="gate.pdf")
    with pytest.raises(InvalidInput, match=f"file_id: gate.pdf {says}"):
        shelf.admin.files.page_image(file.id, 1)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"page": 0}, "page: must be between 1 and 1000000"),
        ({"page": "two"}, "page: must be a whole number"),
        ({"page": 1, "width": 99}, "width: must be between 100 and 2000"),
        ({"page": 2**70}, "page: must be"),
        ({"page": 1, "highlight": ["x"] * 5}, "highlight: "),
        ({"page": 1, "highlight": ["x" * 1_001]}, r"highlight\[0\]: "),
    ],
)
def test_a_page_is_asked_for_within_bounds(shelf: Any, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        shelf.admin.files.page_image("nope", **asked)
