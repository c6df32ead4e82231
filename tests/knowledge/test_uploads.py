"""Files that come in parts: in any order, once, in time, and no more than was announced."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memoranda.errors import InvalidInput, QuotaExceeded
from memoranda.knowledge import uploads

HOUR = 3_600_000_000
SHA = hashlib.sha256


async def pieces(*given: bytes) -> AsyncIterator[bytes]:
    """Pieces as they come."""
    for piece in given:
        yield piece


async def broken(*given: bytes) -> AsyncIterator[bytes]:
    """Pieces of a client that hangs up."""
    for piece in given:
        yield piece
    raise ConnectionResetError("gone")


def begun(shelf: Any, size: int, **fields: Any) -> str:
    """The id of a new upload."""
    fields = {"filename": "a.txt", "purpose": "assistants", **fields}
    return str(shelf.admin.uploads.create(bytes=size, **fields).id)


def part(shelf: Any, upload: str, content: bytes) -> str:
    """The id of a new part."""
    return str(shelf.admin.uploads.add_part(upload, pieces(content)).id)


def bytes_of(shelf: Any, id_: str) -> bytes:
    """A file's bytes."""

    async def read() -> bytes:
        _, following = await shelf.admin.files.inner.content(id_)
        return b"".join([piece async for piece in following])

    return shelf.rc.portal.call(read())  # type: ignore[no-any-return]


def blobs(shelf: Any) -> set[str]:
    """The ids of all bytes of the tenant."""
    return {id_ for tenant, id_ in shelf.core.blobs.stored(-10.0) if tenant == shelf.tenant}


def files(shelf: Any) -> list[str]:
    """The ids of all files of the tenant."""
    return [one.id for one in shelf.admin.files.list().data]


def test_an_upload_becomes_a_file(shelf: Any) -> None:
    made = shelf.admin.uploads.create(
        filename="a.txt", bytes=6, purpose="vision", media_type="text/plain", expires_after_seconds=3_600
    )
    assert (made.status, made.bytes, made.purpose, made.file) == ("pending", 6, "vision", None)
    assert made.expires_at == made.created_at + timedelta(hours=1)
    assert made == shelf.admin.uploads.get(made.id)
    first = shelf.admin.uploads.add_part(made.id, pieces(b"a", b"bc"))
    assert (first.upload_id, first.bytes) == (made.id, 3)
    second = part(shelf, made.id, b"def")
    done = shelf.admin.uploads.complete(made.id, [second, first.id])
    assert (done.status, done.id) == ("completed", made.id)
    assert bytes_of(shelf, done.file.id) == b"defabc"
    assert (done.file.bytes, done.file.purpose, done.file.media_type) == (6, "vision", "text/plain")
    assert done.file.sha256 == SHA(b"defabc").hexdigest()
    assert done.file.expires_at == done.file.created_at + timedelta(hours=1)
    assert done == shelf.admin.uploads.get(made.id)
    assert files(shelf) == [done.file.id]
    assert blobs(shelf) == {done.file.id}


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.binary(min_size=1, max_size=40), min_size=1, max_size=6), st.randoms(use_true_random=False)
)
def test_parts_may_come_in_any_order(shelf: Any, contents: list[bytes], random: Any) -> None:
    whole = b"".join(contents)
    upload = begun(shelf, len(whole))
    order = list(range(len(contents)))
    random.shuffle(order)

    async def send() -> dict[int, str]:
        inner = shelf.admin.uploads.inner
        made = await asyncio.gather(*(inner.add_part(upload, pieces(contents[n])) for n in order))
        return {n: one.id for n, one in zip(order, made, strict=True)}

    ids = shelf.rc.portal.call(send())
    md5 = hashlib.md5(whole, usedforsecurity=False).hexdigest()
    named = [ids[n] for n in range(len(contents))]
    done = shelf.admin.uploads.complete(upload, named, md5.upper() if random.random() < 0.5 else md5)
    assert bytes_of(shelf, done.file.id) == whole
    assert done.file.sha256 == SHA(whole).hexdigest()


def test_a_file_of_parts_belongs_to_who_announced_it(shelf: Any) -> None:
    ann = shelf.by("ann")
    upload = ann.uploads.create(filename="a.txt", bytes=1, purpose="assistants")
    id_ = part(shelf, upload.id, b"x")
    assert shelf.admin.uploads.complete(upload.id, [id_]).file.user_id == "ann"


@pytest.mark.rows_in("sqlite")
@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"bytes": 0}, "bytes"),
        ({"bytes": -1}, "bytes"),
        ({"bytes": True}, "bytes"),
        ({"bytes": 1.0}, "bytes"),
        ({"bytes": uploads.MAX_BYTES + 1}, "bytes"),
        ({"filename": ""}, "filename"),
        ({"filename": "a\x00"}, "filename"),
        ({"purpose": "fun"}, "purpose"),
        ({"media_type": "x" * 513}, "mime_type"),
        ({"expires_after_seconds": 1}, "expires_after.seconds"),
    ],
)
def test_what_cannot_be_announced(shelf: Any, fields: dict[str, Any], named: str) -> None:
    asked = {"filename": "a.txt", "bytes": 3, "purpose": "assistants", **fields}
    with pytest.raises(InvalidInput) as caught:
        shelf.admin.uploads.create(**asked)
    assert caught.value.field == named
    assert shelf.rows("SELECT count(*) FROM uploads WHERE tenant_id = ?", shelf.tenant) == [(0,)]


def test_an_upload_may_be_as_large_as_a_file(shelf: Any) -> None:
    shelf.by(tenant="default").admin.set_quotas({"max_file_bytes": 10}, shelf.tenant)
    begun(shelf, 10)
    with pytest.raises(QuotaExceeded, match="max_file_bytes") as caught:
        begun(shelf, 11)
    assert (caught.value.field, caught.value.quota) == ("bytes", "max_file_bytes")


def test_what_is_no_part_leaves_nothing(shelf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = begun(shelf, 6)
    with pytest.raises(InvalidInput, match="data: is empty"):
        part(shelf, upload, b"")
    with pytest.raises(InvalidInput, match="6 bytes announced"):
        part(shelf, upload, b"1234567")
    with pytest.raises(ConnectionResetError):
        shelf.admin.uploads.add_part(upload, broken(b"123"))
    monkeypatch.setattr(uploads, "MAX_PART", 4)
    with pytest.raises(InvalidInput, match="4 bytes"):
        shelf.admin.uploads.add_part(upload, pieces(b"123", b"45"))
    assert blobs(shelf) == set()
    part(shelf, upload, b"1234")
    with pytest.raises(InvalidInput, match="together more than the 6 bytes"):
        part(shelf, upload, b"567")
    assert len(blobs(shelf)) == 1
    part(shelf, upload, b"56")
    with pytest.raises(InvalidInput, match="together"):
        part(shelf, upload, b"7")
    assert len(blobs(shelf)) == 2


def test_parts_are_counted(shelf: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_PARTS", 2)
    upload = begun(shelf, 6)
    part(shelf, upload, b"1")
    part(shelf, upload, b"2")
    with pytest.raises(InvalidInput, match="data: an upload takes at most 2 parts"):
        part(shelf, upload, b"3")


def test_parts_side_by_side_do_not_pass_what_was_announced(shelf: Any) -> None:
    upload = begun(shelf, 10)

    async def send() -> list[Any]:
        inner = shelf.admin.uploads.inner
        some = [inner.add_part(upload, pieces(b"123")) for _ in range(6)]
        return await asyncio.gather(*some, return_exceptions=True)

    ended = shelf.rc.portal.call(send())
    assert sum(not isinstance(one, InvalidInput) for one in ended) == 3
    assert len(blobs(shelf)) == 3


def test_completing_names_the_parts(shelf: Any) -> None:
    upload, other = begun(shelf, 6), begun(shelf, 3)
    first, second, foreign = (
        part(shelf, upload, b"abc"),
        part(shelf, upload, b"def"),
        part(shelf, other, b"xyz"),
    )
    for named, says in (
        ([], "part_ids: must name"),
        ([first], "are 3 bytes together, 6 were announced"),
        ([first, first], "names a part twice"),
        ([first, foreign], r"part_ids\[1\].*no part of this upload"),
        ([first, second, "part_unknown"], r"part_ids\[2\]"),
    ):
        with pytest.raises(InvalidInput, match=says):
            shelf.admin.uploads.complete(upload, named)
    with pytest.raises(InvalidInput, match="md5"):
        shelf.admin.uploads.complete(upload, [first, second], "0" * 32)
    assert files(shelf) == []
    assert blobs(shelf) == {first, second, foreign}
    assert shelf.admin.uploads.get(upload).status == "pending"
    assert shelf.admin.uploads.complete(upload, [first, second]).status == "completed"


def test_completing_twice_gives_the_same_file(shelf: Any) -> None:
    upload = begun(shelf, 3)
    id_ = part(shelf, upload, b"abc")
    done = shelf.admin.uploads.complete(upload, [id_])
    assert shelf.admin.uploads.complete(upload, [id_]) == done
    for verb in (
        lambda: part(shelf, upload, b"x"),
        lambda: shelf.admin.uploads.cancel(upload),
    ):
        with pytest.raises(InvalidInput, match="is completed"):
            verb()
    assert files(shelf) == [done.file.id]


def test_completing_side_by_side_makes_one_file(shelf: Any) -> None:
    upload = begun(shelf, 3)
    id_ = part(shelf, upload, b"abc")

    async def complete() -> list[Any]:
        inner = shelf.admin.uploads.inner
        return await asyncio.gather(
            *(inner.complete(upload, [id_]) for _ in range(5)), return_exceptions=True
        )

    ended = shelf.rc.portal.call(complete())
    (only,) = files(shelf)
    assert [one.file.id for one in ended] == [only] * 5
    assert blobs(shelf) == {only}
    assert bytes_of(shelf, only) == b"abc"


def test_a_cancelled_upload_is_over(shelf: Any) -> None:
    upload = begun(shelf, 3)
    id_ = part(shelf, upload, b"abc")
    assert shelf.admin.uploads.cancel(upload).status == "cancelled"
    assert blobs(shelf) == set()
    assert shelf.admin.admin.usage().storage_bytes == 0
    for verb in (
        lambda: part(shelf, upload, b"abc"),
        lambda: shelf.admin.uploads.complete(upload, [id_]),
        lambda: shelf.admin.uploads.cancel(upload),
    ):
        with pytest.raises(InvalidInput, match="is cancelled"):
            verb()
    assert shelf.admin.uploads.get(upload).status == "cancelled"


def test_an_upload_whose_time_is_over_has_expired(shelf: Any) -> None:
    upload = begun(shelf, 3)
    id_ = part(shelf, upload, b"abc")
    shelf.change("UPDATE uploads SET expires_at = expires_at - ? WHERE id = ?", HOUR, upload)
    for verb in (
        lambda: part(shelf, upload, b"abc"),
        lambda: shelf.admin.uploads.complete(upload, [id_]),
        lambda: shelf.admin.uploads.cancel(upload),
    ):
        with pytest.raises(InvalidInput, match="is expired"):
            verb()
    assert shelf.admin.uploads.get(upload).status == "expired"
    assert blobs(shelf) == {id_}
    shelf.look_at_the_clock()
    assert shelf.admin.uploads.get(upload).status == "expired"
    assert blobs(shelf) == set()


def test_a_part_that_is_late_leaves_nothing(shelf: Any) -> None:
    """The upload is cancelled while the part comes in."""
    upload = begun(shelf, 6)

    async def slowly() -> AsyncIterator[bytes]:
        yield b"abc"
        await shelf.admin.uploads.inner.cancel(upload)
        yield b"def"

    with pytest.raises(InvalidInput, match="is cancelled"):
        shelf.admin.uploads.add_part(upload, slowly())
    assert blobs(shelf) == set()
