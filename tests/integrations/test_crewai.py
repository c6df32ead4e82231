"""The storage of memory for CrewAI."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import DimensionMismatch, InvalidInput

pytest.importorskip("crewai.memory.storage.backend")

from crewai.llms.base_llm import BaseLLM
from crewai.memory import Memory
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.storage.lancedb_storage import LanceDBStorage
from crewai.memory.types import MemoryRecord

from memoranda.integrations.crewai import MemorandaEmbedder, MemorandaStorage
from support import chat_server

from .conftest import QUICK

EXAMPLE = Path(__file__).parents[2] / "examples" / "crewai_memory.py"
START = datetime(2026, 1, 1)


def record(id_: str, content: str, scope: str = "/", **fields: Any) -> MemoryRecord:
    created = START + timedelta(hours=fields.pop("hours", 0))
    return MemoryRecord(
        id=id_, content=content, scope=scope, created_at=created, last_accessed=created, **fields
    )


RECORDS = [
    record("root", "Everyone likes tea.", hours=3),
    record("kettle", "The kettle is green.", "/house/kitchen", categories=["things", "green"], hours=1),
    record("tap", "The tap drips.", "/house/kitchen", categories=["faults"], metadata={"room": 1}, hours=5),
    record("rose", "The rose is red.", "/house/garden", categories=["things"], metadata={"room": 2}),
    record("annex", "The annex is empty.", "/houses", hours=2),
]


@pytest.fixture
def storage(product: Any) -> MemorandaStorage:
    made = MemorandaStorage(product)
    made.save(RECORDS)
    return made


def ids(records: list[MemoryRecord]) -> list[str]:
    return [found.id for found in records]


def left(storage: MemorandaStorage) -> set[str]:
    return set(ids(storage.list_records()))


def asked(product: Any, storage: MemorandaStorage, text: str, **fields: Any) -> list[str]:
    (vector,) = MemorandaEmbedder(product)([text])
    return ids([found for found, _ in storage.search(vector, **fields)])


def test_it_is_a_storage_backend(storage: MemorandaStorage) -> None:
    assert isinstance(storage, StorageBackend)


def test_records_come_back_as_they_were(storage: MemorandaStorage) -> None:
    assert [storage.get_record(given.id) for given in RECORDS] == RECORDS
    assert storage.get_record("other") is None
    odd = record(
        "odd",
        "A text.",
        "/a//b/",
        metadata={"$dollar": 1, "crewai.id": "x", "deep": {"list": [1, None]}},
        importance=0.25,
        source="ana",
        private=True,
    )
    storage.save([odd])
    assert storage.get_record("odd") == odd.model_copy(update={"scope": "/a/b"})


def test_the_nearest_records_of_a_scope_are_found(product: Any, storage: MemorandaStorage) -> None:
    assert asked(product, storage, "The kettle is green.", limit=1) == ["kettle"]
    (vector,) = MemorandaEmbedder(product)(["The kettle is green."])
    scored = storage.search(vector)
    scores = [score for _, score in scored]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert len(scored) == 5
    assert ids([found for found, _ in storage.search(vector, min_score=scores[1])])[:2] == ids(
        [found for found, _ in scored[:2]]
    )
    assert storage.search(vector, min_score=1.1) == []
    for prefix in ("/house", "house/", "/house//"):
        assert sorted(asked(product, storage, "kettle", scope_prefix=prefix)) == ["kettle", "rose", "tap"]
    assert sorted(asked(product, storage, "kettle", categories=["green", "faults"])) == ["kettle", "tap"]
    assert asked(product, storage, "kettle", metadata_filter={"room": 2}) == ["rose"]
    assert asked(product, storage, "kettle", metadata_filter={"room": "2"}) == []
    with pytest.raises(DimensionMismatch):
        storage.search([1.0, 0.0])


def test_an_update_replaces_a_record(product: Any, storage: MemorandaStorage) -> None:
    moved = RECORDS[1].model_copy(update={"content": "The kettle is blue.", "scope": "/attic"})
    storage.update(moved)
    assert storage.get_record("kettle") == moved
    assert storage.count() == 5
    assert asked(product, storage, "The kettle is blue.", limit=1) == ["kettle"]
    with pytest.raises(InvalidInput, match=r"^metadata"):
        storage.update(moved.model_copy(update={"metadata": {"x": "a" * 100_000}}))
    assert storage.get_record("kettle") == moved


def test_records_that_are_touched_have_the_time_of_it(storage: MemorandaStorage) -> None:
    began = datetime.now(UTC).replace(tzinfo=None)
    storage.touch_records(["kettle", "nothing of this id"])
    touched = storage.get_record("kettle")
    assert touched is not None
    assert began <= touched.last_accessed <= datetime.now(UTC).replace(tzinfo=None)
    assert touched.created_at == RECORDS[1].created_at
    storage.touch_records([])
    assert storage.get_record("tap") == RECORDS[2]


@pytest.mark.parametrize(
    ("conditions", "gone"),
    [
        ({"scope_prefix": "/house"}, {"kettle", "tap", "rose"}),
        ({"categories": ["faults", "green"]}, {"kettle", "tap"}),
        ({"record_ids": ["root", "rose", "other"]}, {"root", "rose"}),
        ({"record_ids": []}, set()),
        ({"older_than": START + timedelta(hours=2)}, {"kettle", "rose"}),
        ({"older_than": datetime(2026, 1, 1, 2, tzinfo=UTC)}, {"kettle", "rose"}),
        ({"metadata_filter": {"room": 1}}, {"tap"}),
        ({"scope_prefix": "/house", "older_than": START + timedelta(hours=1)}, {"rose"}),
        ({"scope_prefix": "/house/kitchen", "record_ids": ["kettle", "rose"]}, {"kettle"}),
        ({}, {"root", "kettle", "tap", "rose", "annex"}),
        ({"scope_prefix": "/"}, {"root", "kettle", "tap", "rose", "annex"}),
    ],
)
def test_what_meets_every_condition_is_deleted(
    folder: Any, conditions: dict[str, Any], gone: set[str]
) -> None:
    storage, other = MemorandaStorage(folder), MemorandaStorage(folder, name="other")
    for each in (storage, other):
        each.save(RECORDS)
    assert storage.delete(**conditions) == len(gone)
    assert left(storage) == set(ids(RECORDS)) - gone
    assert left(other) == set(ids(RECORDS))


def test_a_reset_deletes_a_scope(storage: MemorandaStorage) -> None:
    storage.reset("/house/kitchen")
    assert left(storage) == {"root", "rose", "annex"}
    storage.reset()
    assert storage.count() == 0


def test_scopes_and_categories_are_as_in_the_storage_of_crewai(
    storage: MemorandaStorage, tmp_path: Path
) -> None:
    """Theirs takes `/houses` for a part of `/house`: its record is left out."""
    theirs = LanceDBStorage(path=str(tmp_path / "theirs"), vector_dim=2)
    theirs.save([given for given in RECORDS if given.id != "annex"])
    assert (storage.count("/house"), storage.count("/hous"), storage.delete("/houses")) == (3, 0, 1)
    for scope in ("/", "/house", "/house/", "/house/kitchen", "/nothing"):
        assert storage.get_scope_info(scope) == theirs.get_scope_info(scope), scope
        assert storage.list_scopes(scope) == theirs.list_scopes(scope), scope
        assert storage.list_categories(scope) == theirs.list_categories(scope), scope
        assert storage.count(scope) == theirs.count(scope), scope
        for limit, offset in ((200, 0), (2, 0), (2, 2), (2, 9), (0, 0), (2, -1)):
            mine = storage.list_records(scope, limit, offset)
            assert ids(mine) == ids(theirs.list_records(scope, limit, offset)), (scope, limit, offset)
    assert (storage.count(), storage.list_categories()) == (theirs.count(), theirs.list_categories())


async def test_the_awaited_ways_do_the_same(product: Any) -> None:
    storage = MemorandaStorage(product)
    await storage.asave(RECORDS)
    (vector,) = MemorandaEmbedder(product)(["The kettle is green."])
    assert ids([found for found, _ in await storage.asearch(vector, "/house", limit=1)]) == ["kettle"]
    assert await storage.adelete(record_ids=["kettle"]) == 1
    assert storage.count() == 4


def test_metadata_is_compared_as_a_whole(folder: Any) -> None:
    values: list[Any] = [["x"], ["x", "y"], "x", {"x": 1}, None]
    storage = MemorandaStorage(folder)
    storage.save(
        [record(str(n), f"text {n}", metadata={"topics": topics}) for n, topics in enumerate(values)]
    )
    storage.save([record("none", "text without topics"), record("odd", "an odd key", metadata={"$x": 1})])
    (vector,) = MemorandaEmbedder(folder)(["text"])
    for n, topics in enumerate(values):
        expected = {str(n), "none", "odd"} if topics is None else {str(n)}
        found = storage.search(vector, metadata_filter={"topics": topics})
        assert set(ids([each for each, _ in found])) == expected, topics
    assert storage.delete(metadata_filter={"$x": 1}) == 1
    assert storage.delete(metadata_filter={"topics": ["x"]}) == 1
    assert storage.delete(metadata_filter={"crewai.id": "none"}) == 0
    assert left(storage) == {"1", "2", "3", "4", "none"}


def test_a_refused_record_does_not_keep_the_others_out(folder: Any) -> None:
    storage = MemorandaStorage(folder)
    with pytest.raises(InvalidInput, match=r"^content"):
        storage.save([RECORDS[0], record("blank", " "), RECORDS[1]])
    assert left(storage) == {"root", "kettle"}
    with pytest.raises(DimensionMismatch):
        storage.save([record("short", "A text.", embedding=[1.0, 0.0]), RECORDS[2]])
    assert left(storage) == {"root", "kettle", "tap"}


def test_long_texts_are_embedded_by_their_beginning_and_found_by_their_end(tmp_path: Path) -> None:
    with memoranda.open(tmp_path) as opened:  # the default model takes 512 tokens
        embedder, storage = MemorandaEmbedder(opened), MemorandaStorage(opened)
        long = "The harbour was calm all day. " * 200 + "The password of the safe is heron."
        vectors = embedder([long, "short"])
        assert [len(vector) for vector in vectors] == [384, 384]
        storage.save([record("long", long, embedding=vectors[0]), record("other", "Ships sail at noon.")])
        (vector,) = embedder(["What is the password of the safe?"])
        assert ids([found for found, _ in storage.search(vector, limit=1)]) == ["long"]


def test_many_texts_and_large_limits(folder: Any) -> None:
    storage, embedder = MemorandaStorage(folder), MemorandaEmbedder(folder)
    storage.save([record(str(n), f"text number {n}", hours=n) for n in range(1_200)])
    vectors = embedder([f"text number {n}" for n in range(300)])
    assert len(vectors) == 300
    assert len(storage.search(vectors[7], limit=2_000)) == 1_000
    assert storage.search(vectors[7], limit=0) == []
    assert ids(storage.list_records(limit=2, offset=1_198)) == ["1", "0"]
    assert storage.delete() == 1_200


async def test_a_product_of_an_event_loop_is_refused() -> None:
    async with await memoranda.Memoranda.open(":memory:", embedder=QUICK) as opened:
        for adapter in (MemorandaStorage, MemorandaEmbedder):
            for product in (opened, opened.memories):
                with pytest.raises(
                    InvalidInput, match=r"^product: belongs to an event loop.*memoranda\.open"
                ):
                    adapter(product)


def test_a_listing_survives_the_deletion_of_its_place(folder: Any) -> None:
    """The last record of the first page goes before the second page is read."""
    storage = MemorandaStorage(folder)
    storage.save([record(str(n), f"text number {n}") for n in range(1_010)])
    listed = storage._entries.listed()
    first = [next(listed) for _ in range(1_000)]
    storage._entries.delete(first[-1].id)
    rest = list(listed)
    assert len({memory.id for memory in [*first, *rest]}) == len(first) + len(rest) == 1_010


def test_a_memory_remembers_recalls_and_forgets(product: Any) -> None:
    memory = Memory(
        storage=MemorandaStorage(product),
        embedder=MemorandaEmbedder(product),
        llm=NoModel(),
        root_scope="/ana",
    )
    for text in ("The kettle is green and old.", "The garden has roses."):
        memory.remember(text, scope="/house", categories=["things"], importance=0.5, metadata={"n": 1})
    (first, *_) = memory.recall("The kettle is green and old.", depth="shallow")
    assert (first.record.content, first.record.scope) == ("The kettle is green and old.", "/ana/house")
    assert memory.forget(scope="/house") == 2
    assert memory.recall("kettle", depth="shallow") == []
    memory.close()


class NoModel(BaseLLM):
    """Fails if it is called: what is remembered is whole, so that nothing needs to be asked."""

    def __init__(self) -> None:
        super().__init__(model="none")

    def call(self, *args: Any, **kwargs: Any) -> str:
        raise AssertionError("the model was called")


def test_the_example_remembers_the_user(tmp_path: Path) -> None:
    environment = {
        **os.environ, "HOME": str(tmp_path), "OPENAI_API_KEY": "none", "CREWAI_TRACING_ENABLED": "false",
        "OTEL_SDK_DISABLED": "true", "CREWAI_DISABLE_TELEMETRY": "true",
    }  # fmt: skip
    first, second = "I am allergic to peanuts.", "What am I allergic to?"
    with chat_server.playing([{"text": "I will remember."}] * 20) as (url, model):
        for said in (first, second):
            ran = subprocess.run(
                [sys.executable, str(EXAMPLE), str(tmp_path / "data"), "ana", said],
                env={**environment, "OPENAI_BASE_URL": url, "OPENAI_API_BASE": url},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith("I will remember.\n")
    asked = [str(request.body) for request in model.received]
    assert any(first in body and second in body for body in asked)
