"""The memory service for Google's Agent Development Kit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import memoranda
from memoranda.errors import InvalidInput

pytest.importorskip("google.adk.memory.base_memory_service")

from google.adk.events.event import Event
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.genai.types import Blob, Content, Part

from memoranda.integrations.google_adk import MemorandaMemoryService
from support.chat_server import running

from .conftest import QUICK

EXAMPLE = Path(__file__).parents[2] / "examples" / "google_adk_memory.py"
ANA: dict[str, Any] = {"app_name": "kitchen", "user_id": "ana"}


def event(id_: str, author: str, *texts: str, at: float = 1_700_000_000.0) -> Event:
    parts = [Part(text=text) for text in texts]
    role = "user" if author == "user" else "model"
    return Event(id=id_, author=author, timestamp=at, content=Content(role=role, parts=parts))


def session(*events: Event, user: str = "ana", app: str = "kitchen") -> Session:
    return Session(id="s1", app_name=app, user_id=user, events=list(events))


def texts(found: Any) -> list[str]:
    """The messages that were found; facts may be learned from them at any time."""
    said = [memory for memory in found.memories if memory.custom_metadata["kind"] == "message"]
    return [memory.content.parts[0].text for memory in said]


async def test_a_session_is_remembered_once_for_its_user_and_app(product: Any) -> None:
    service = MemorandaMemoryService(product)
    first = event("e1", "user", "The kettle is green and old.")
    answer = event("e2", "helper", "A green kettle", "is a fine kettle.")
    silent = Event(id="e3", author="helper", content=Content(parts=[Part(inline_data=Blob(data=b"x"))]))
    thought = Event(
        id="e4", author="helper", content=Content(parts=[Part(text="Which kettle?", thought=True)])
    )
    await service.add_session_to_memory(session(first))
    await service.add_session_to_memory(
        session(first, answer, silent, thought, Event(id="e5", author="user"))
    )
    for other in (session(first, user="ben"), session(first, app="garden")):
        await service.add_session_to_memory(other)
    found = await service.search_memory(**ANA, query="kettle")
    assert sorted(texts(found)) == ["A green kettle\n\nis a fine kettle.", "The kettle is green and old."]
    mine = next(memory for memory in found.memories if memory.author == "user")
    assert mine.timestamp == "2023-11-14T22:13:20+00:00"
    assert mine.content.role == "user"
    assert mine.custom_metadata["kind"] == "message"
    assert {memory.author for memory in found.memories} >= {"user", "helper"}
    assert (await service.search_memory(**ANA, query=" ")).memories == []
    assert (await service.search_memory(app_name="kitchen", user_id="eva", query="kettle")).memories == []


async def test_events_and_entries_are_added_with_their_metadata(product: Any) -> None:
    service = MemorandaMemoryService(product)
    await service.add_events_to_memory(
        **ANA, events=[event("e1", "user", "The fence is red again.")], custom_metadata={"room": "garden"}
    )
    entry = MemoryEntry(
        content=Content(parts=[Part(text="Ana is allergic to peanuts.")]),
        author="doctor",
        timestamp="2024-05-01T12:00:00Z",
        custom_metadata={"sure": True},
    )
    await service.add_memory(**ANA, memories=[entry], custom_metadata={"source": "file"})
    await service.add_memory(**ANA, memories=[])
    (fence, *_) = (await service.search_memory(**ANA, query="fence")).memories
    assert fence.custom_metadata["room"] == "garden"
    (peanuts, *_) = (await service.search_memory(**ANA, query="allergic to peanuts")).memories
    assert peanuts.author == "doctor"
    assert peanuts.timestamp == "2024-05-01T12:00:00+00:00"
    assert {"sure": True, "source": "file", "kind": "note"}.items() <= peanuts.custom_metadata.items()
    with pytest.raises(InvalidInput, match="'soon' is no moment"):
        await service.add_memory(**ANA, memories=[entry.model_copy(update={"timestamp": "soon"})])


async def test_a_deleted_memory_does_not_come_back(product: Any) -> None:
    service = MemorandaMemoryService(product)
    events = [
        event("e1", "user", "The kettle is green and old."),
        event("e2", "user", "The fence is red again."),
    ]
    await service.add_session_to_memory(session(*events))
    (kettle, *_) = (await service.search_memory(**ANA, query="kettle")).memories
    await service.delete_memory(app_name="kitchen", user_id="ben", memory_id=kettle.id)
    await service.delete_memory(**ANA, memory_id="unknown")
    await service.delete_memory(**ANA)
    assert len(texts(await service.search_memory(**ANA, query="kettle and fence"))) == 2
    await service.delete_memory(**ANA, memory_id=kettle.id)
    await service.add_session_to_memory(session(*events))
    assert texts(await service.search_memory(**ANA, query="kettle and fence")) == ["The fence is red again."]


async def test_the_limit_is_kept_in_an_event_loop() -> None:
    async with await memoranda.Memoranda.open(":memory:", embedder=QUICK) as opened:
        service = MemorandaMemoryService(opened, limit=2)
        events = [
            event(f"e{n}", "user", f"Kettle number {n} is green.", at=1_700_000_000.0 + n) for n in range(4)
        ]
        await service.add_session_to_memory(session(*events))
        assert len((await service.search_memory(**ANA, query="kettle")).memories) == 2
        with pytest.raises(InvalidInput, match="has no sessions"):
            MemorandaMemoryService(opened.memories)


def test_the_example_remembers_the_user(tmp_path: Path) -> None:
    asked: list[str] = []

    async def answered(request: Request) -> JSONResponse:
        asked.append((await request.body()).decode())
        text = "I will remember." if len(asked) == 1 else "Peanuts."
        content = {"role": "model", "parts": [{"text": text}]}
        return JSONResponse({"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]})

    with running(Starlette(routes=[Route("/{path:path}", answered, methods=["POST"])])) as url:
        for message in ("I am allergic to peanuts.", "What am I allergic to?"):
            ran = subprocess.run(
                [sys.executable, str(EXAMPLE), str(tmp_path / "data"), "ana", message],
                env={**os.environ, "GOOGLE_GEMINI_BASE_URL": url, "GOOGLE_API_KEY": "none"},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "Peanuts.\n"
    assert "I am allergic to peanuts." in asked[1]
