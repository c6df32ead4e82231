"""Session transcripts of the Claude Agent SDK in a product, and the SDK's own conformance tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from memoranda.client import Client

pytest.importorskip("claude_agent_sdk.testing")

from claude_agent_sdk import (
    get_session_messages_from_store,
    list_sessions_from_store,
    project_key_for_directory,
)
from claude_agent_sdk.testing import run_session_store_conformance

from memoranda.integrations.claude_agent_sdk import MemorandaSessionStore

EXAMPLE = Path(__file__).parents[2] / "examples" / "claude_sessions.py"
KEY: Any = {"project_key": "p", "session_id": "s"}


async def test_the_store_conforms(product: Any) -> None:
    names = iter(range(100))
    await run_session_store_conformance(lambda: MemorandaSessionStore(product, name=f"store {next(names)}"))


async def test_entries_come_back_whatever_they_hold(product: Any) -> None:
    store = MemorandaSessionStore(product)
    entries: list[Any] = [
        {
            "type": "user",
            "uuid": "u1",
            "message": {"role": "user", "content": "What is descaled with vinegar?"},
        },
        {"type": "x", "uuid": "long", "data": 'ä€😀"\\' * 20_000},
        {"type": "x", "text": "a\x00b\ud83d", "nested": {"$key": [None, True, 1.5, {}]}, "extracted_by": "x"},
        {
            "type": "x",
            "uuid": "u2",
            "message": {"content": [{"type": "text", "text": "\x00"}, {"type": "image"}]},
        },
    ]
    await store.append(KEY, entries[:2])
    await store.append(KEY, [*entries[:2], *entries[2:]])
    assert await store.load(KEY) == entries
    changed = [
        {"type": "user", "uuid": "u1", "message": {"content": "something else"}},
        {"type": "last", "uuid": "u3"},
    ]
    await store.append(KEY, changed)
    assert await store.load(KEY) == [*entries, changed[1]]
    memories = product if isinstance(product, Client) else product.memories
    (hit,) = memories.search("vinegar", kinds=["item"], scopes=["session:s"], limit=1).results
    assert hit.memory.content == "What is descaled with vinegar?"
    assert memories.search("vinegar").results == []


async def test_users_have_sessions_of_their_own(folder: Any) -> None:
    ana, ben = (MemorandaSessionStore(folder, user_id=user) for user in ("ana", "ben"))
    await ana.append(KEY, [{"type": "x", "uuid": "1"}])
    await ben.append(KEY, [{"type": "x", "uuid": "1", "of": "ben"}])
    await ana.append({**KEY, "subpath": "subagents/a"}, [{"type": "x"}])
    assert await ben.list_subkeys(KEY) == []
    await ana.delete(KEY)
    assert await ana.load(KEY) is None
    assert await ana.list_sessions("p") == []
    assert await ben.load(KEY) == [{"type": "x", "uuid": "1", "of": "ben"}]


async def test_the_sdk_reads_sessions_from_the_store(folder: Any, tmp_path: Path) -> None:
    session, project = str(uuid4()), project_key_for_directory(str(tmp_path))
    store = MemorandaSessionStore(folder)
    await store.append({"project_key": project, "session_id": session}, transcript(session, tmp_path))
    (listed,) = await list_sessions_from_store(store, str(tmp_path))
    assert (listed.session_id, listed.first_prompt) == (session, "Remember that I like tea.")
    messages = await get_session_messages_from_store(store, session, str(tmp_path))
    assert [message.type for message in messages] == ["user", "assistant"]


def test_the_example_copies_sessions_and_finds_what_was_said(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    session, config = str(uuid4()), tmp_path / "config"
    written = config / "projects" / project_key_for_directory(str(work)) / f"{session}.jsonl"
    written.parent.mkdir(parents=True)
    written.write_text("".join(f"{json.dumps(entry)}\n" for entry in transcript(session, work)))
    words = [str(tmp_path / "data"), str(work), "Which drink?"]
    for _ in range(2):  # the second time the entries are there already
        ran = subprocess.run(
            [sys.executable, str(EXAMPLE), *words],
            env={**os.environ, "CLAUDE_CONFIG_DIR": str(config)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.stdout.splitlines() == [
            f"{session} Remember that I like tea.",
            "You like tea: noted as your drink.",
        ], ran.stderr


def transcript(session: str, folder: Path) -> list[Any]:
    """Two messages as the SDK writes them."""
    first, second = str(uuid4()), str(uuid4())
    common = {"sessionId": session, "cwd": str(folder), "isSidechain": False, "version": "2.0.0"}
    answer = [{"type": "text", "text": "You like tea: noted as your drink."}]
    return [
        {
            **common,
            "type": "user",
            "uuid": first,
            "parentUuid": None,
            "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"role": "user", "content": "Remember that I like tea."},
        },
        {
            **common,
            "type": "assistant",
            "uuid": second,
            "parentUuid": first,
            "timestamp": "2026-01-01T00:00:01.000Z",
            "message": {"role": "assistant", "content": answer},
        },
    ]
