"""Vector stores, the files in them and searches through the official client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

TEXTS = {
    "kettle.txt": "The green kettle stands on the stove. It whistles when the water boils.",
    "car.md": "# Cars\n\nThe red car is in the garage. Its tyres were changed in March.",
    "boat.txt": "The blue boat lies in the harbour. Its sails are white.",
}
PLACE = {"kettle.txt": "house", "car.md": "house", "boat.txt": "sea"}


@pytest.fixture(scope="module")
def client(server: Any) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made


@pytest.fixture(scope="module")
def filled(client: openai.OpenAI) -> Any:
    """A store with the three texts, completed."""
    store = client.vector_stores.create(name="texts")
    for i, (name, text) in enumerate(TEXTS.items()):
        done = client.vector_stores.files.upload_and_poll(
            vector_store_id=store.id,
            file=(name, text.encode()),
            attributes={"place": PLACE[name], "number": i, "good": True},
        )
        assert done.status == "completed", done.last_error
    return store


def test_a_new_store_is_empty_and_complete(client: openai.OpenAI) -> None:
    store = client.vector_stores.create(name="new", description="says what", metadata={"team": "a"})
    assert store.id.startswith("vs_")
    assert (store.object, store.name, store.status) == ("vector_store", "new", "completed")
    assert store.file_counts.model_dump() == {
        "in_progress": 0, "completed": 0, "failed": 0, "cancelled": 0, "total": 0,
    }  # fmt: skip
    assert (store.usage_bytes, store.metadata, store.expires_after, store.expires_at) == (
        0,
        {"team": "a"},
        None,
        None,
    )
    assert store.last_active_at is not None
    extra = store.model_extra
    assert extra is not None
    assert (extra["description"], extra["sharing"], extra["writers"]) == ("says what", "private", [])
    assert (extra["model"], extra["dimension"]) == ("hash-64", 64)
    assert extra["chunking_strategy"]["static"] == {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 50}
    assert client.vector_stores.retrieve(store.id) == store
    gone = client.vector_stores.delete(store.id)
    assert (gone.id, gone.object, gone.deleted) == (store.id, "vector_store.deleted", True)
    for call in (client.vector_stores.retrieve, client.vector_stores.delete):
        with pytest.raises(openai.NotFoundError):
            call(store.id)


def test_a_store_without_a_name(client: openai.OpenAI) -> None:
    store = client.vector_stores.create()
    assert (store.name, store.metadata) == ("", {})
    client.vector_stores.delete(store.id)


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_an_update_changes_what_it_names(client: openai.OpenAI, server: Any, method: str) -> None:
    store = client.vector_stores.create(
        name="before", metadata={"a": "b"}, expires_after={"anchor": "last_active_at", "days": 7}
    )
    assert store.expires_after is not None
    assert store.expires_after.days == 7
    assert store.expires_at == (store.last_active_at or 0) + 7 * 86_400
    at = f"{server.url}/v1/vector_stores/{store.id}"
    changed = httpx.request(method, at, json={"name": "after"}).json()
    assert (changed["name"], changed["metadata"]) == ("after", {"a": "b"})
    assert changed["expires_after"] == {"anchor": "last_active_at", "days": 7}
    changed = httpx.request(method, at, json={"expires_after": None, "metadata": {"c": "d"}}).json()
    assert (changed["metadata"], changed["expires_at"]) == ({"c": "d"}, None)
    assert "expires_after" not in changed
    updated = client.vector_stores.update(store.id, name="last", metadata=None)
    assert (updated.name, updated.metadata) == ("last", {})
    client.vector_stores.delete(store.id)


def test_pages_reach_every_store_once(client: openai.OpenAI, server: Any) -> None:
    before = [one.id for one in client.vector_stores.list(order="asc")]
    made = [client.vector_stores.create(name=f"{i}").id for i in range(5)]
    assert [one.id for one in client.vector_stores.list(limit=2)] == [*before, *made][::-1]
    assert [one.id for one in client.vector_stores.list(limit=2, order="asc")] == [*before, *made]
    page = client.vector_stores.list(limit=2, before=made[3], order="asc")
    assert [one.id for one in page.data] == made[1:3]
    raw = httpx.get(f"{server.url}/v1/vector_stores", params={"limit": 2}).json()
    assert (raw["object"], raw["has_more"]) == ("list", True)
    assert (raw["first_id"], raw["last_id"]) == (made[4], made[3])
    for wrong in ({"limit": 0}, {"limit": 101}, {"limit": "x"}):
        with pytest.raises(openai.BadRequestError) as refused:
            client.vector_stores.list(**wrong)  # type: ignore[arg-type]
        assert refused.value.param == "limit"


def test_a_file_in_a_store(client: openai.OpenAI, filled: Any) -> None:
    files = client.vector_stores.files.list(filled.id, order="asc").data
    assert [(one.model_extra or {})["filename"] for one in files] == list(TEXTS)
    one = client.vector_stores.files.retrieve(files[0].id, vector_store_id=filled.id)
    assert one == files[0]
    assert (one.object, one.vector_store_id, one.status) == ("vector_store.file", filled.id, "completed")
    assert one.last_error is None
    assert one.attributes == {"place": "house", "number": 0, "good": True}
    assert one.usage_bytes > 0
    extra = one.model_extra or {}
    assert (extra["bytes"], extra["chunk_count"]) == (len(TEXTS["kettle.txt"]), 1)
    content = client.vector_stores.files.content(one.id, vector_store_id=filled.id)
    assert "".join(part.text or "" for part in content) == TEXTS["kettle.txt"]
    store = client.vector_stores.retrieve(filled.id)
    assert (store.file_counts.completed, store.file_counts.total) == (3, 3)
    assert store.usage_bytes == sum(file.usage_bytes for file in files)


def test_files_are_listed_by_state_and_in_pages(client: openai.OpenAI, filled: Any) -> None:
    files = client.vector_stores.files
    everything = [one.id for one in files.list(filled.id, limit=2)]
    assert len(everything) == len(set(everything)) == 3
    assert [one.id for one in files.list(filled.id, filter="completed", limit=1)] == everything
    assert files.list(filled.id, filter="failed").data == []
    for wrong in ({"limit": 101}, {"filter": "lost"}, {"order": "up"}):
        with pytest.raises(openai.BadRequestError) as refused:
            files.list(filled.id, **wrong)  # type: ignore[arg-type]
        assert refused.value.param == next(iter(wrong))


def test_a_search_answers_with_passages(client: openai.OpenAI, filled: Any) -> None:
    found = client.vector_stores.search(filled.id, query="the green kettle whistles", max_num_results=2)
    assert found.object == "vector_store.search_results.page"  # type: ignore[attr-defined]
    best = found.data[0]
    assert best.filename == "kettle.txt"
    assert (best.content[0].type, best.content[0].text) == ("text", TEXTS["kettle.txt"])
    assert 0 < best.score <= 1
    assert best.attributes == {"place": "house", "number": 0, "good": True}
    assert len(found.data) == 2
    extra = best.model_extra or {}
    assert (extra["chunk_index"], extra["start"], extra["end"]) == (0, 0, len(TEXTS["kettle.txt"]))
    assert extra["vector_store_id"] == filled.id
    assert list(client.vector_stores.search(filled.id, query=["kettle", "boat"], max_num_results=50))


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ({"type": "eq", "key": "place", "value": "sea"}, {"boat.txt"}),
        ({"type": "ne", "key": "place", "value": "sea"}, {"kettle.txt", "car.md"}),
        ({"type": "gte", "key": "number", "value": 1}, {"car.md", "boat.txt"}),
        ({"type": "in", "key": "number", "value": [0, 2]}, {"kettle.txt", "boat.txt"}),
        (
            {
                "type": "and",
                "filters": [
                    {"type": "eq", "key": "good", "value": True},
                    {"type": "or", "filters": [{"type": "lt", "key": "number", "value": 1}]},
                ],
            },
            {"kettle.txt"},
        ),
    ],
)
def test_filters_come_before_the_limit(
    client: openai.OpenAI, filled: Any, filters: Any, names: set[str]
) -> None:
    found = client.vector_stores.search(filled.id, query="the", filters=filters, max_num_results=len(names))
    assert {one.filename for one in found} == names


def test_a_search_takes_openais_options(client: openai.OpenAI, filled: Any) -> None:
    hybrid = {"embedding_weight": 0.2, "text_weight": 0.8}
    found = client.vector_stores.search(
        filled.id,
        query="What about the white sails?",
        rewrite_query=True,
        ranking_options={"ranker": "auto", "score_threshold": 0.0, "hybrid_search": hybrid},  # type: ignore[typeddict-unknown-key]
    )
    assert found.data[0].filename == "boat.txt"
    assert (
        client.vector_stores.search(filled.id, query="zebra", ranking_options={"score_threshold": 1.0}).data
        == []
    )


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"max_num_results": 0}, "max_num_results"),
        ({"max_num_results": 51}, "max_num_results"),
        ({"ranking_options": {"score_threshold": 2}}, "ranking_options.score_threshold"),
        ({"ranking_options": {"ranker": "best"}}, "ranking_options.ranker"),
        ({"filters": {"type": "near", "key": "a", "value": 1}}, "filters.type"),
    ],
)
def test_what_is_wrong_with_a_search_is_named(
    client: openai.OpenAI, filled: Any, options: Any, param: str
) -> None:
    with pytest.raises(openai.BadRequestError) as wrong:
        client.vector_stores.search(filled.id, query="a", **options)
    assert wrong.value.param == param


def test_chunking_is_taken_and_told(client: openai.OpenAI, filled: Any) -> None:
    text = " ".join(f"word{i}" for i in range(600)).encode()
    static: Any = {"type": "static", "static": {"max_chunk_size_tokens": 200, "chunk_overlap_tokens": 100}}
    done = client.vector_stores.files.upload_and_poll(
        vector_store_id=filled.id, file=("words.txt", text), chunking_strategy=static
    )
    assert done.chunking_strategy is not None
    assert done.chunking_strategy.type == "static"
    assert done.chunking_strategy.static.max_chunk_size_tokens == 200
    assert (done.model_extra or {})["chunk_count"] > 5
    client.vector_stores.files.delete(done.id, vector_store_id=filled.id)
    for size, overlap, param in (
        (99, 0, "chunking_strategy.static.max_chunk_size_tokens"),
        (4097, 0, "chunking_strategy.static.max_chunk_size_tokens"),
        (100, 51, "chunking_strategy.static.chunk_overlap_tokens"),
    ):
        static["static"] = {"max_chunk_size_tokens": size, "chunk_overlap_tokens": overlap}
        with pytest.raises(openai.BadRequestError) as wrong:
            client.vector_stores.files.create(filled.id, file_id=done.id, chunking_strategy=static)
        assert wrong.value.param == param


def test_attributes_are_changed_and_searched(client: openai.OpenAI) -> None:
    store = client.vector_stores.create(name="changing")
    one = client.vector_stores.files.upload_and_poll(
        vector_store_id=store.id, file=("a.txt", b"a text"), attributes={"year": 2024}
    )
    sought: Any = {"type": "eq", "key": "year", "value": 2025}
    assert client.vector_stores.search(store.id, query="text", filters=sought).data == []
    changed = client.vector_stores.files.update(one.id, vector_store_id=store.id, attributes={"year": 2025})
    assert changed.attributes == {"year": 2025}
    assert len(client.vector_stores.search(store.id, query="text", filters=sought).data) == 1
    with pytest.raises(openai.BadRequestError) as wrong:
        client.vector_stores.files.update(one.id, vector_store_id=store.id, attributes={"x": "v" * 513})
    assert wrong.value.param == "attributes.x"
    with pytest.raises(openai.BadRequestError) as many:
        client.vector_stores.files.update(
            one.id, vector_store_id=store.id, attributes={f"k{i}": i for i in range(17)}
        )
    assert many.value.param == "attributes"
    client.vector_stores.delete(store.id)


def test_a_file_that_leaves_a_store_is_still_a_file(client: openai.OpenAI) -> None:
    file = client.files.create(file=("a.txt", b"a text"), purpose="assistants")
    store = client.vector_stores.create(name="short", file_ids=[file.id])
    assert store.file_counts.total == 1
    done = client.vector_stores.files.poll(file.id, vector_store_id=store.id)
    assert done.status == "completed"
    gone = client.vector_stores.files.delete(file.id, vector_store_id=store.id)
    assert (gone.id, gone.object, gone.deleted) == (file.id, "vector_store.file.deleted", True)
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.files.retrieve(file.id, vector_store_id=store.id)
    assert client.vector_stores.search(store.id, query="text").data == []
    assert client.files.retrieve(file.id) == file
    client.vector_stores.delete(store.id)


def test_a_file_that_cannot_be_read_says_why(client: openai.OpenAI) -> None:
    store = client.vector_stores.create(name="bad")
    failed = client.vector_stores.files.upload_and_poll(
        vector_store_id=store.id, file=("broken.pdf", b"%PDF-1.7 and then nothing")
    )
    assert failed.status == "failed"
    assert failed.last_error is not None
    assert failed.last_error.code in ("unsupported_file", "invalid_file")
    assert failed.last_error.message
    assert client.vector_stores.files.list(store.id, filter="failed").data[0].id == failed.id
    assert client.vector_stores.retrieve(store.id).file_counts.failed == 1
    client.vector_stores.delete(store.id)


def test_an_unknown_file_is_not_added(client: openai.OpenAI, filled: Any) -> None:
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.files.create(filled.id, file_id="file-nope")
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.files.create("vs_nope", file_id="file-nope")
    with pytest.raises(openai.NotFoundError):
        client.vector_stores.search("vs_nope", query="a")


def test_what_is_listed_is_deleted_on_the_way(client: openai.OpenAI) -> None:
    """The client asks for the page after the last object that it got, which is gone by then."""
    made = [client.vector_stores.create(name=f"walked {n}") for n in range(5)]
    home = made[0].id
    files = [client.files.create(file=(f"{n}.txt", b"A kettle."), purpose="batch") for n in range(5)]
    for file in files:
        client.vector_stores.files.create(home, file_id=file.id)
    for attached in client.vector_stores.files.list(home, limit=2):
        client.vector_stores.files.delete(attached.id, vector_store_id=home)
    assert list(client.vector_stores.files.list(home)) == []
    for file in files:
        client.vector_stores.files.create(home, file_id=file.id)
    for attached in client.vector_stores.files.list(home, limit=2, order="asc"):
        client.files.delete(attached.id)
    assert list(client.vector_stores.files.list(home)) == []
    more = [client.files.create(file=(f"{n}.txt", b"A kettle."), purpose="batch").id for n in range(5)]
    for file in client.files.list(limit=2, purpose="batch"):
        client.files.delete(file.id)
    assert {file.id for file in client.files.list()}.isdisjoint(more)
    for store in client.vector_stores.list(limit=2):
        if (store.name or "").startswith("walked"):
            client.vector_stores.delete(store.id)
    assert {store.id for store in client.vector_stores.list()}.isdisjoint(store.id for store in made)
