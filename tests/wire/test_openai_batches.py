"""Many files at once through the official client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest


@pytest.fixture(scope="module")
def client(server: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


@pytest.fixture
def store(client: openai.OpenAI) -> Iterator[Any]:
    made = client.vector_stores.create(name="batches")
    yield made
    client.vector_stores.delete(made.id)


def put(client: openai.OpenAI, count: int) -> list[str]:
    return [
        client.files.create(file=(f"{i}.txt", f"text {i}".encode()), purpose="assistants").id
        for i in range(count)
    ]


def test_upload_and_poll(client: openai.OpenAI, store: Any) -> None:
    already = put(client, 2)
    files = [(f"n{i}.txt", f"new text {i}".encode()) for i in range(7)]
    done = client.vector_stores.file_batches.upload_and_poll(store.id, files=files, file_ids=already)
    assert done.id.startswith("vsfb_")
    assert (done.object, done.vector_store_id, done.status) == (
        "vector_store.files_batch",
        store.id,
        "completed",
    )
    assert done.file_counts.model_dump() == {
        "in_progress": 0, "completed": 9, "failed": 0, "cancelled": 0, "total": 9,
    }  # fmt: skip
    assert client.vector_stores.file_batches.retrieve(done.id, vector_store_id=store.id) == done
    listed = list(client.vector_stores.file_batches.list_files(done.id, vector_store_id=store.id, limit=4))
    assert len({one.id for one in listed}) == len(listed) == 9
    assert set(already) < {one.id for one in listed}
    assert client.vector_stores.retrieve(store.id).file_counts.completed == 9


def test_attributes_for_all_or_for_each(client: openai.OpenAI, store: Any) -> None:
    first, second, third = put(client, 3)
    batches = client.vector_stores.file_batches
    batches.create_and_poll(store.id, file_ids=[first], attributes={"of": "all"})
    each: Any = [{"file_id": second, "attributes": {"of": "one"}}, {"file_id": third}]
    done = batches.create_and_poll(store.id, files=each, attributes={"of": "all"})
    held = {one.id: one.attributes for one in client.vector_stores.files.list(store.id)}
    assert held == {first: {"of": "all"}, second: {"of": "one"}, third: {}}
    assert {one.id for one in batches.list_files(done.id, vector_store_id=store.id)} == {second, third}


def test_one_bad_file_fails_alone(client: openai.OpenAI, store: Any) -> None:
    files = [("a.txt", b"good"), ("b.pdf", b"%PDF-1.4 nothing"), ("c.txt", b"good, too")]
    done = client.vector_stores.file_batches.upload_and_poll(store.id, files=files)
    assert (done.file_counts.completed, done.file_counts.failed) == (2, 1)
    (bad,) = client.vector_stores.file_batches.list_files(done.id, vector_store_id=store.id, filter="failed")
    assert (bad.model_extra or {})["filename"] == "b.pdf"


def test_a_batch_that_is_cancelled_stops(client: openai.OpenAI, store: Any) -> None:
    ids = put(client, 30)
    batch = client.vector_stores.file_batches.create(store.id, file_ids=ids)
    assert batch.status == "in_progress"
    client.vector_stores.file_batches.cancel(batch.id, vector_store_id=store.id)
    ended = client.vector_stores.file_batches.poll(batch.id, vector_store_id=store.id)
    counts = ended.file_counts
    assert counts.in_progress == 0
    assert counts.completed + counts.cancelled == counts.total == 30
    assert ended.status == ("cancelled" if counts.cancelled else "completed")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "file_ids"),
        ({"file_ids": []}, "file_ids"),
        ({"files": []}, "files"),
        ({"file_ids": ["a"], "files": [{"file_id": "b"}]}, "files"),
        ({"file_ids": ["a"] * 2_001}, "file_ids"),
        (
            {"files": [{"file_id": "a"}, {"file_id": "b", "chunking_strategy": {"type": "odd"}}]},
            "files[1].chunking_strategy.type",
        ),
        (
            {
                "files": [
                    {
                        "file_id": "a",
                        "chunking_strategy": {
                            "type": "static",
                            "static": {"max_chunk_size_tokens": 100, "chunk_overlap_tokens": 60},
                        },
                    }
                ]
            },
            "files[0].chunking_strategy.static.chunk_overlap_tokens",
        ),
    ],
)
def test_what_is_wrong_with_a_batch_is_named(
    client: openai.OpenAI, store: Any, body: Any, param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as wrong:
        client.vector_stores.file_batches.create(store.id, **body)
    assert wrong.value.param == param
    assert client.vector_stores.files.list(store.id).data == []


def test_a_batch_with_a_missing_file_adds_nothing(client: openai.OpenAI, store: Any) -> None:
    with pytest.raises(openai.APIStatusError) as missing:
        client.vector_stores.file_batches.create(store.id, file_ids=[*put(client, 1), "file-nope"])
    assert missing.value.status_code in (400, 404)
    assert "file-nope" in missing.value.message
    assert client.vector_stores.files.list(store.id).data == []


def test_unknown_batches(client: openai.OpenAI, store: Any) -> None:
    batches = client.vector_stores.file_batches
    for call in (batches.retrieve, batches.cancel, batches.list_files):
        with pytest.raises(openai.NotFoundError):
            call("vsfb_nope", vector_store_id=store.id)
