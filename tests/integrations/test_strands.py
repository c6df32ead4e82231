"""The memory store for Strands Agents."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import InvalidInput

pytest.importorskip("strands.memory")

from strands.memory import MemoryManager

from memoranda.integrations.strands import MemorandaMemoryStore
from support import chat_server

from .conftest import QUICK

EXAMPLE = Path(__file__).parents[2] / "examples" / "strands_memory.py"


def message(role: str, *texts: str, id_: str | None = None) -> Any:
    said: dict[str, Any] = {"role": role, "content": [{"text": text} for text in texts]}
    return said if id_ is None else {**said, "tracking_id": id_}


def texts(found: list[Any]) -> list[str]:
    """The messages that were found; facts may be learned from them at any time."""
    return [entry.content for entry in found if entry.metadata["kind"] == "message"]


async def test_entries_are_kept_once_for_a_user_and_an_agent(product: Any) -> None:
    store = MemorandaMemoryStore(product, user_id="ana", agent_id="kitchen")
    first = await store.add("The kettle is green and old.", {"room": "kitchen"})
    assert (await store.add("The kettle is green and old.")).id == first.id
    for other in ({"user_id": "ben", "agent_id": "kitchen"}, {"user_id": "ana", "agent_id": "garden"}):
        await MemorandaMemoryStore(product, **other).add("The kettle is red.")
    (kettle,) = await store.search("kettle")
    assert kettle.content == "The kettle is green and old."
    assert {"id": first.id, "kind": "note", "room": "kitchen"}.items() <= kettle.metadata.items()
    assert 0 < kettle.metadata["score"] <= 1
    assert kettle.metadata["at"] == first.occurred_at.isoformat()
    assert await store.search(" ") == []


async def test_messages_are_kept_once_and_found_in_another_session(product: Any) -> None:
    store = MemorandaMemoryStore(product, user_id="ana", session_id="monday")
    said = [
        message("user", "I am allergic", "to peanuts.", id_="m1"),
        {"role": "user", "content": [{"toolResult": {"toolUseId": "t", "content": [], "status": "success"}}]},
        message("assistant", "No peanuts, then.", id_="m2"),
    ]
    await store.add_messages(said[:1])
    await store.add_messages(said)
    assert await store.search("peanuts") == []
    later = MemorandaMemoryStore(product, user_id="ana")
    assert sorted(texts(await later.search("peanuts"))) == [
        "I am allergic\n\nto peanuts.",
        "No peanuts, then.",
    ]
    assert await MemorandaMemoryStore(product, user_id="ben").search("peanuts") == []


async def test_a_manager_asks_it_and_writes_to_it(product: Any) -> None:
    store = MemorandaMemoryStore(product, name="notes", user_id="ana", max_search_results=2)
    manager = MemoryManager(stores=[store], add_tool_config=True)
    for number in range(4):
        await manager.add(f"Kettle number {number} is green.")
    found = await manager.search("green kettle")
    assert [entry.store_name for entry in found] == ["notes", "notes"]
    assert len(await store.search("green kettle", {"max_search_results": 3})) == 3


async def test_what_is_wrong_is_named(folder: Any) -> None:
    with pytest.raises(InvalidInput, match="name: must not be empty"):
        MemorandaMemoryStore(folder, name=" ")
    with pytest.raises(InvalidInput, match="max_search_results: must be at least 1"):
        MemorandaMemoryStore(folder, max_search_results=0)
    with pytest.raises(InvalidInput, match="has no sessions"):
        MemorandaMemoryStore(folder.memories)
    store = MemorandaMemoryStore(folder, writable=False)
    with pytest.raises(InvalidInput, match="max_search_results: must be at least 1"):
        await store.search("kettle", {"max_search_results": 0})
    with pytest.raises(InvalidInput, match="writable: is false"):
        await store.add("The kettle is green.")
    with pytest.raises(InvalidInput, match="writable: is false"):
        await store.add_messages([message("user", "The kettle is green.")])
    with pytest.raises(InvalidInput, match="content"):
        await MemorandaMemoryStore(folder).add(" ")


async def test_in_an_event_loop() -> None:
    async with await memoranda.Memoranda.open(":memory:", embedder=QUICK) as opened:
        store = MemorandaMemoryStore(opened, agent_id="kitchen")
        await store.add("The kettle is green.")
        assert [entry.content for entry in await store.search("kettle")] == ["The kettle is green."]


def test_the_example_remembers_the_user(tmp_path: Path) -> None:
    with chat_server.playing([{"text": "I will remember."}, {"text": "Peanuts."}]) as (url, model):
        for said in ("I am allergic to peanuts.", "What am I allergic to?"):
            ran = subprocess.run(
                [sys.executable, str(EXAMPLE), str(tmp_path / "data"), "ana", said],
                env={**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "Peanuts.\n\n"
    assert "I am allergic to peanuts." in str(model.received[-1].body)
