"""Memory stores by Anthropic's client, over HTTP, with its answers checked against its types."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anthropic.types.beta.memory_stores")

import anthropic

from memoranda.client import Client
from support.server_process import Process

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "compatible-apis.md"


@pytest.fixture
def client(server: Process) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        api_key="none", base_url=server.url, max_retries=0, _strict_response_validation=True
    ) as opened:
        yield opened


@pytest.fixture
def stores(client: anthropic.Anthropic) -> Any:
    return client.beta.memory_stores


def test_a_store_and_its_memories_live_and_go(stores: Any, server: Process) -> None:
    store = stores.create(name="Preferences", description="how things are done", metadata={"user": "ana"})
    assert store.id.startswith("memstore_")
    assert stores.update(store.id, metadata={"user": None, "a": "b"}).metadata == {"a": "b"}
    note = stores.memories.create(store.id, path="/style/reports.md", content="in metric units", view="full")
    assert (note.type, note.content) == ("memory", "in metric units")
    assert note.content_sha256 == sha256(b"in metric units").hexdigest()
    met = {"type": "content_sha256", "content_sha256": note.content_sha256}
    moved = stores.memories.update(
        note.id, memory_store_id=store.id, path="/reports.md", content="in English", precondition=met
    )
    assert (moved.id, moved.path, moved.content) == (note.id, "/reports.md", None)
    with pytest.raises(anthropic.ConflictError) as failed:
        stores.memories.update(note.id, memory_store_id=store.id, content="x", precondition=met)
    assert failed.value.body["error"]["type"] == "memory_precondition_failed_error"
    with pytest.raises(anthropic.ConflictError) as taken:
        stores.memories.create(store.id, path="/reports.md/a", content=None)
    assert taken.value.body["error"]["conflicting_memory_id"] == note.id
    assert stores.memories.retrieve(note.id, memory_store_id=store.id).content == "in English"
    with Client(server.url) as product:
        assert product.search("English reports").results[0].memory.id == note.id
    deleted = stores.memories.delete(note.id, memory_store_id=store.id)
    assert (deleted.id, deleted.type) == (note.id, "memory_deleted")
    with pytest.raises(anthropic.NotFoundError):
        stores.memories.retrieve(note.id, memory_store_id=store.id)
    assert stores.delete(store.id).type == "memory_store_deleted"
    with pytest.raises(anthropic.NotFoundError):
        stores.retrieve(store.id)


def test_lists_are_read_page_by_page(stores: Any) -> None:
    made = [stores.create(name=f"list {n}") for n in range(3)]
    ids = [store.id for store in stores.list(limit=1)]
    assert ids[:3] == [store.id for store in reversed(made)]
    stores.archive(made[0].id)
    assert made[0].id not in [store.id for store in stores.list()]
    between = stores.list(
        include_archived=True, created_at_gte=made[0].created_at, created_at_lte=made[1].created_at
    )
    assert [store.id for store in between] == [made[1].id, made[0].id]
    store = made[2].id
    for path in ("/a/1", "/a/2", "/b", "/c/d/e"):
        stores.memories.create(store, path=path, content=path)
    listed = list(stores.memories.list(store, limit=1, view="full"))
    assert [(item.path, item.content) for item in listed] == [
        (path, path) for path in ("/a/1", "/a/2", "/b", "/c/d/e")
    ]
    level = [(item.type, item.path) for item in stores.memories.list(store, depth=1, limit=2)]
    assert level == [("memory_prefix", "/a/"), ("memory", "/b"), ("memory_prefix", "/c/")]
    assert [item.path for item in stores.memories.list(store, path_prefix="/c/", depth=1)] == ["/c/d/"]


def test_versions_are_listed_and_redacted(stores: Any) -> None:
    store = stores.create(name="versions").id
    note = stores.memories.create(store, path="/a", content="first")
    second = stores.memories.update(note.id, memory_store_id=store, content="second")
    stores.memories.delete(note.id, memory_store_id=store)
    versions = list(stores.memory_versions.list(store, memory_id=note.id, limit=1, view="full"))
    assert [(version.operation, version.content) for version in versions] == [
        ("deleted", None), ("modified", "second"), ("created", "first"),
    ]  # fmt: skip
    (modified,) = stores.memory_versions.list(store, operation="modified")
    assert modified.id == second.memory_version_id
    after = modified.created_at + timedelta(microseconds=1)
    assert [version.operation for version in stores.memory_versions.list(store, created_at_gte=after)] == [
        "deleted"
    ]
    redacted = stores.memory_versions.redact(note.memory_version_id, memory_store_id=store)
    assert (redacted.path, redacted.content, redacted.redacted_at is None) == (None, None, False)
    assert stores.memory_versions.retrieve(redacted.id, memory_store_id=store) == redacted


async def _async_life(url: str) -> list[str]:
    async with anthropic.AsyncAnthropic(
        api_key="none", base_url=url, _strict_response_validation=True
    ) as client:
        stores = client.beta.memory_stores
        store = await stores.create(name="async")
        await stores.memories.create(store.id, path="/a", content="text")
        return [item.path async for item in stores.memories.list(store.id)]


def test_the_async_client_works(server: Process) -> None:
    assert asyncio.run(_async_life(server.url)) == ["/a"]


def test_the_program_of_the_documentation_runs(server: Process) -> None:
    text = PAGE.read_text("utf-8")
    program = next(
        code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "anthropic" in code
    )
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(program.replace("http://127.0.0.1:8377", server.url), {})
    assert printed.getvalue() == "['modified', 'created']\n"
