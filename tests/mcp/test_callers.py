"""Tools and resources as callers see them, without a connection."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import memoranda
from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import InvalidInput
from memoranda.mcp import documents, resources
from memoranda.mcp.caller import Caller
from memoranda.mcp.remembering import Recall, recall
from memoranda.mcp.sets import SETS
from memoranda.types import Subject

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture
def product() -> Iterator[BlockingMemoranda]:
    with memoranda.open(":memory:", embedder={"url": "hash:64"}) as opened:
        yield opened


def caller(product: BlockingMemoranda, role: Any = "admin", user: str | None = None) -> Caller:
    return Caller(product.inner.core, Subject(role=role, user_id=user))


@pytest.mark.parametrize(
    ("role", "user", "scopes"),
    [
        ("admin", None, ["all"]),
        ("service", None, ["global"]),
        ("reader", None, ["global"]),
        ("member", "ada", ["user:ada", "global"]),
    ],
)
def test_recall_reports_the_scopes_that_it_searched(
    product: BlockingMemoranda, role: str, user: str | None, scopes: list[str]
) -> None:
    product.memories.add("The kettle is Ada's.", user_id="ada")
    product.memories.add("The kettle is in the kitchen.")
    found = product.portal.call(recall(caller(product, role, user), Recall(query="kettle")))
    assert found.scopes == scopes
    of_ada = any("Ada" in memory.text for memory in found.results)
    assert of_ada == (scopes != ["global"])


def test_recall_reports_the_configured_scope() -> None:
    with memoranda.open(
        ":memory:", embedder={"url": "hash:64"}, search={"default_scope": "global"}
    ) as opened:
        opened.memories.add("The kettle is Ada's.", user_id="ada")
        found = opened.portal.call(recall(caller(opened), Recall(query="kettle")))
        assert (found.scopes, found.results) == (["global"], [])


def test_a_probability_is_that_of_the_library(product: BlockingMemoranda) -> None:
    product.memories.add("The kettle is in the kitchen.")
    found = product.portal.call(recall(caller(product), Recall(query="Where is the kettle?")))
    answer = product.memories.search("Where is the kettle?")
    assert (found.evidence, found.evidence_probability) == (answer.evidence, answer.evidence_probability)
    assert answer.evidence_probability > 0


def test_stores_are_found_by_name_behind_a_hundred_newer_ones(product: BlockingMemoranda) -> None:
    stores = product.knowledge.stores
    oldest = stores.create(name="handbook")
    for number in range(101):
        stores.create(name=f"store {number}")
    asked = documents.SearchDocuments(query="leave", stores=["handbook"])
    assert product.portal.call(documents.search_documents(caller(product), asked)).stores == ["handbook"]
    [by_id] = product.portal.call(documents.named_stores(caller(product), [oldest.id]))
    assert by_id.id == oldest.id
    newest = product.portal.call(documents.newest_stores(caller(product)))
    assert len(newest) == 100
    assert oldest.id not in [store.id for store in newest]
    shown = product.portal.call(documents.list_stores(caller(product), documents.ListStores()))
    assert ([store.id for store in shown.stores], shown.omitted) == ([store.id for store in newest], 2)
    with pytest.raises(
        InvalidInput, match=r"'cookbook' is no store here; use one of: store 100, .+ and 82 more"
    ):
        product.portal.call(documents.named_stores(caller(product), ["handbook", "cookbook"]))


def test_a_text_goes_into_the_newest_store_that_the_caller_may_fill(product: BlockingMemoranda) -> None:
    ben, ada = (
        product.inner.as_subject(Subject(role="member", user_id=user)).knowledge.stores
        for user in ("ben", "ada")
    )
    own = product.portal.call(ada.create(name="own"))
    product.portal.call(ben.create(name="shared to be read", sharing="tenant"))
    asked = documents.IndexText(text="The kettle is green.", filename="kettle.md")
    member = caller(product, "member", "ada")
    assert product.portal.call(documents.index_text(member, asked)).store_id == own.id
    joint = product.portal.call(ben.create(name="joint", writers=["ada"]))
    assert product.portal.call(documents.index_text(member, asked)).store_id == joint.id
    admin = product.portal.call(documents.index_text(caller(product), asked))
    assert admin.store_id not in (own.id, joint.id), "the stores of users are theirs"


def test_a_text_that_is_indexed_again_is_there_twice(product: BlockingMemoranda) -> None:
    """So `index_text` is not idempotent, and clients are not told that it is."""
    asked = documents.IndexText(text="The kettle is green.", filename="kettle.md")
    for _ in range(2):
        product.portal.call(documents.index_text(caller(product), asked))
    [store] = product.knowledge.stores.list().data
    assert store.file_counts.completed == 2
    hints = {tool.name: tool.definition.annotations for tool in SETS["full"].values()}
    assert [name for name, hint in hints.items() if hint and not hint.idempotent_hint] == ["index_text"]


def test_summaries_are_found_behind_many_sessions_without_one(product: BlockingMemoranda) -> None:
    def session(name: str, days: int) -> None:
        times = [NOON + timedelta(days=days, minutes=minute) for minute in range(5)]
        texts = [f"The {name} is painted on day {number}." for number in range(5)]
        product.observe(
            [{"content": text, "occurred_at": at} for text, at in zip(texts, times, strict=True)],
            session_id=name,
        )

    session("boat", 0)
    product.sessions.save_summary("boat", "They paint the boat.")
    for number in range(12):
        session(f"fence {number}", 1 + number)
    text = product.portal.call(resources.recent(caller(product)))
    assert text.startswith("## 2026-03-02")
    assert text.endswith("They paint the boat.")
