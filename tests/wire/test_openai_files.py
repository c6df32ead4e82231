"""Files through the official client: uploaded, listed, read back, deleted, and what is refused."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from operator import not_
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from memoranda.storage.data_lock import MARK
from support.waiting import until


@pytest.fixture(scope="module")
def client(server: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def put(client: openai.OpenAI, name: str, held: bytes = b"text", **options: Any) -> Any:
    return client.files.create(file=(name, held), **{"purpose": "assistants", **options})


def test_a_file_comes_back_as_it_went(client: openai.OpenAI, tmp_path: Path) -> None:
    held = bytes(range(256)) * 2_000
    path = tmp_path / "müsli.bin"
    path.write_bytes(held)
    made = client.files.create(file=path, purpose="user_data")
    assert made.id.startswith("file-")
    assert (made.object, made.bytes, made.filename) == ("file", len(held), "müsli.bin")
    assert (made.purpose, made.status, made.expires_at) == ("user_data", "processed", None)
    assert client.files.retrieve(made.id) == made
    content = client.files.content(made.id)
    assert content.read() == held
    headers = content.response.headers
    assert headers["content-length"] == str(len(held))
    assert headers["content-disposition"] == "attachment; filename*=UTF-8''m%C3%BCsli.bin"
    assert headers["x-content-type-options"] == "nosniff"
    gone = client.files.delete(made.id)
    assert (gone.id, gone.object, gone.deleted) == (made.id, "file", True)
    for call in (client.files.retrieve, client.files.content, client.files.delete):
        with pytest.raises(openai.NotFoundError) as missing:
            call(made.id)
        assert missing.value.code == "not_found"


def test_head_says_what_a_file_is(client: openai.OpenAI, server: Any) -> None:
    made = put(client, "a.txt", b"twelve bytes")
    answer = httpx.head(f"{server.url}/v1/files/{made.id}/content")
    assert (answer.status_code, answer.headers["content-length"], answer.content) == (200, "12", b"")
    assert httpx.head(f"{server.url}/v1/files/{made.id}").status_code == 200
    assert httpx.head(f"{server.url}/v1/files/file-nope/content").status_code == 404


def test_pages_reach_every_file_once(client: openai.OpenAI) -> None:
    before = [one.id for one in client.files.list(order="asc")]
    made = [put(client, f"{i}.txt", purpose="batch" if i % 2 else "evals").id for i in range(7)]
    assert [one.id for one in client.files.list()] == [*before, *made][::-1]
    assert [one.id for one in client.files.list(limit=3, order="asc")] == [*before, *made]
    page = client.files.list(limit=3, order="asc", after=made[2])
    assert ([one.id for one in page.data], page.has_more) == (made[3:6], True)
    assert [one.id for one in client.files.list(limit=2, purpose="batch", order="asc")] == made[1::2]
    assert [one.id for one in client.files.list(purpose="vision")] == []


def test_a_file_expires_when_it_is_told_to(client: openai.OpenAI) -> None:
    made = put(client, "a.txt", expires_after={"anchor": "created_at", "seconds": 3_600})
    assert made.expires_at == made.created_at + 3_600


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"purpose": "fun"}, "purpose"),
        ({"expires_after": {"anchor": "created_at", "seconds": 5}}, "expires_after.seconds"),
        ({"expires_after": {"anchor": "later", "seconds": 3_600}}, "expires_after.anchor"),
    ],
)
def test_what_is_wrong_beside_a_file_is_named(client: openai.OpenAI, options: Any, param: str) -> None:
    before = [one.id for one in client.files.list()]
    with pytest.raises(openai.BadRequestError) as wrong:
        put(client, "a.txt", **options)
    assert (wrong.value.param, wrong.value.code) == (param, "invalid_value")
    assert [one.id for one in client.files.list()] == before


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": 10_001}])
def test_a_limit_out_of_range_is_named(client: openai.OpenAI, options: Any) -> None:
    with pytest.raises(openai.BadRequestError) as wrong:
        client.files.list(**options)
    assert wrong.value.param == "limit"


def test_the_quota_bounds_a_file_and_the_bound_of_other_bodies_does_not(served: Any) -> None:
    server = served("small", server={"max_body_bytes": 1_000})
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        assert put(client, "a.txt", b"a" * 300_000).bytes == 300_000
        httpx.post(f"{server.url}/v1/admin/quotas", json={"max_file_bytes": 200_000}).raise_for_status()
        with pytest.raises(openai.APIStatusError) as large:
            put(client, "b.txt", b"a" * 300_000)
        assert (large.value.status_code, large.value.code) == (413, "file_too_large")
        assert "max_file_bytes" in large.value.message
        assert len(client.files.list().data) == 1


def test_a_client_that_hangs_up_leaves_nothing(served: Any) -> None:
    server = served("gone")
    host, _, port = server.url.removeprefix("http://").partition(":")
    head = (
        f"POST /v1/files HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        "Content-Length: 5000000\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + b"a" * 1_000_000)

        def kept() -> list[Path]:
            found = [path for path in (server.folder / "files").rglob("*") if path.is_file()]
            return [path for path in found if path.name != MARK]

        until(kept, "the first bytes of the file")
    until(kept, "nothing left of the file", accept=not_)
    assert httpx.get(f"{server.url}/v1/files").json()["data"] == []
    assert "Traceback" not in server.said()


def test_asynchronously(server: Any) -> None:
    async def life() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
            made = await asyncio.gather(
                *(client.files.create(file=(f"{i}.txt", b"x" * i), purpose="assistants") for i in range(1, 9))
            )
            assert [one.bytes for one in made] == list(range(1, 9))
            seen = [one.id async for one in client.files.list(limit=3)]
            assert {one.id for one in made} <= set(seen)
            assert len(seen) == len(set(seen))
            content = await client.files.content(made[3].id)
            assert await content.aread() == b"xxxx"
            for one in made:
                await client.files.delete(one.id)

    asyncio.run(life())
