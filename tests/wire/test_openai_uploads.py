"""Files in parts through the official client."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

HELD = b"".join(b"line %d\n" % i for i in range(5_000))


@pytest.fixture(scope="module")
def client(server: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def begin(client: openai.OpenAI, size: int = len(HELD), **options: Any) -> Any:
    asked = {"filename": "lines.txt", "mime_type": "text/plain", "purpose": "assistants", **options}
    return client.uploads.create(bytes=size, **asked)


def test_parts_become_a_file_in_the_order_they_are_named(client: openai.OpenAI) -> None:
    upload = begin(client)
    assert upload.id.startswith("upload_")
    assert (upload.object, upload.bytes, upload.filename) == ("upload", len(HELD), "lines.txt")
    assert (upload.status, upload.purpose, upload.file) == ("pending", "assistants", None)
    assert 0 < upload.expires_at - upload.created_at <= 3_600
    second = client.uploads.parts.create(upload.id, data=HELD[20_000:])
    first = client.uploads.parts.create(upload.id, data=HELD[:20_000])
    assert first.id.startswith("part_")
    assert (first.object, first.upload_id) == ("upload.part", upload.id)
    md5 = hashlib.md5(HELD).hexdigest()
    done = client.uploads.complete(upload.id, part_ids=[first.id, second.id], md5=md5)
    assert done.status == "completed"
    assert done.file is not None
    assert (done.file.object, done.file.bytes, done.file.filename) == ("file", len(HELD), "lines.txt")
    assert client.files.content(done.file.id).read() == HELD


def test_the_clients_own_way_of_sending_parts(client: openai.OpenAI, tmp_path: Path) -> None:
    path = tmp_path / "lines.txt"
    path.write_bytes(HELD)
    done = client.uploads.upload_file_chunked(
        file=path, mime_type="text/plain", purpose="assistants", part_size=10_000
    )
    assert done.file is not None
    assert client.files.content(done.file.id).read() == HELD


def test_an_upload_that_is_given_up_takes_no_more(client: openai.OpenAI) -> None:
    upload = begin(client)
    part = client.uploads.parts.create(upload.id, data=HELD)
    assert client.uploads.cancel(upload.id).status == "cancelled"
    for call in (
        lambda: client.uploads.parts.create(upload.id, data=HELD),
        lambda: client.uploads.complete(upload.id, part_ids=[part.id]),
    ):
        with pytest.raises(openai.APIStatusError) as late:
            call()
        assert late.value.status_code in (400, 404, 409)


@pytest.mark.parametrize("wrong", ["missing", "unknown", "md5"])
def test_a_file_is_what_was_announced_or_nothing(client: openai.OpenAI, wrong: str) -> None:
    before = {one.id for one in client.files.list()}
    upload = begin(client)
    first = client.uploads.parts.create(upload.id, data=HELD[:20_000])
    second = client.uploads.parts.create(upload.id, data=HELD[20_000:])
    asked: dict[str, Any] = {
        "missing": {"part_ids": [first.id]},
        "unknown": {"part_ids": [first.id, second.id, "part_nope"]},
        "md5": {"part_ids": [first.id, second.id], "md5": "0" * 32},
    }[wrong]
    with pytest.raises(openai.BadRequestError):
        client.uploads.complete(upload.id, **asked)
    assert {one.id for one in client.files.list()} == before


def test_unknown_uploads_and_wrong_fields(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.uploads.parts.create("upload_nope", data=b"x")
    with pytest.raises(openai.NotFoundError):
        client.uploads.complete("upload_nope", part_ids=[])
    with pytest.raises(openai.NotFoundError):
        client.uploads.cancel("upload_nope")
    with pytest.raises(openai.BadRequestError) as wrong:
        begin(client, purpose="fun")
    assert wrong.value.param == "purpose"


def test_asynchronously(server: Any) -> None:
    async def life() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            done = await client.uploads.upload_file_chunked(
                file=HELD, filename="a.txt", bytes=len(HELD), mime_type="text/plain", purpose="assistants",
                part_size=9_000,
            )  # fmt: skip
            assert done.file is not None
            assert await (await client.files.content(done.file.id)).aread() == HELD

    asyncio.run(life())
