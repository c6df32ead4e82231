"""The adapters for Pydantic AI; its own store of conversations in memory is what ours is compared with."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.errors import InvalidInput

pytest.importorskip("pydantic_ai.conversation_store")

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import ConversationConflict, ConversationStore, InMemoryConversationStore
from pydantic_ai.embeddings import Embedder
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from memoranda.integrations.pydantic_ai import (
    MemorandaConversationStore,
    MemorandaEmbeddingModel,
    MemorandaMemory,
)
from support.chat_server import serving

from .conftest import QUICK

EXAMPLE = Path(__file__).parents[2] / "examples" / "pydantic_ai_memory.py"
WHEN = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = 60
"""Operations of one story."""


def request(*content: Any) -> ModelRequest:
    prompt = list(content) if len(content) > 1 else content[0]
    return ModelRequest(parts=[UserPromptPart(prompt, timestamp=WHEN)])


def response(text: str) -> ModelResponse:
    return ModelResponse(parts=[TextPart(text)], timestamp=WHEN)


async def outcome(store: ConversationStore, step: tuple[Any, ...], held: dict[str, Conversation]) -> Any:
    """What an operation does to a store; `held` are the conversations that a client has loaded from it."""
    verb, id_, number, scope = step
    mine = held.get(id_)
    try:
        if verb == "save":
            mine = mine or Conversation(conversation_id=id_)
            mine.messages = [
                *mine.messages[: number + 3],
                request(f"question {number}"),
                response(f"answer {number}"),
            ]
            held[id_] = mine
            return len(await store.save(mine, scope=scope))
        if verb == "load":
            loaded = await store.load(id_, limit=number or None, scope=scope)
            if loaded is not None:
                held[id_] = loaded
            return None if loaded is None else loaded.messages
        if verb == "branch":
            revision = None if mine is None else mine.revision
            held[id_] = await store.branch(id_, at=number, expected_revision=revision, scope=scope)
            return held[id_].messages
        if verb == "fork":
            name = f"{id_}-{number}"
            held[name] = await store.fork(id_, at=number, new_conversation_id=name, source_scope=scope)
            return held[name].messages
        await store.delete(id_, scope=scope)
    except UserError as exc:
        return type(exc), str(exc)
    return None


async def state(store: ConversationStore) -> list[Any]:
    """Everything that a store tells, without the ids that it gives out."""
    told = []
    for record in await store.list_conversations():
        entries = await store.load_entries(record.conversation_id) or []
        lines = [[entry.message for entry in await store.read_history(tip)] for tip in record.branches]
        messages = [entry.message for entry in entries]
        told.append((record.conversation_id, record.scope, record.forked_from, messages, lines))
    return told


async def compare(ours: ConversationStore, seed: int, steps: int) -> None:
    theirs, draw = InMemoryConversationStore(), random.Random(seed)
    held: tuple[dict[str, Conversation], dict[str, Conversation]] = {}, {}
    for _ in range(steps):
        verb = draw.choice(["save", "save", "save", "load", "branch", "fork", "delete"])
        step = (
            verb,
            draw.choice(["a", "b", "a-1"]),
            draw.randrange(4),
            draw.choice([None, None, "ana", "ben"]),
        )
        expected = await outcome(theirs, step, held[0])
        assert await outcome(ours, step, held[1]) == expected, step
    assert await state(ours) == await state(theirs)


async def test_conversations_are_kept_as_by_the_store_of_the_framework(product: Any) -> None:
    await compare(MemorandaConversationStore(product), seed=1, steps=STEPS)


async def test_a_message_comes_back_whatever_it_holds(folder: Any) -> None:
    store = MemorandaConversationStore(folder)
    call = ToolCallPart("look", {"at": ["ä", 1, None]}, tool_call_id="c1")
    messages: list[ModelMessage] = [
        request("What is this?", BinaryContent(bytes(range(256)) * 200, media_type="application/pdf")),
        ModelResponse(parts=[TextPart("\x00 A kettle. " * 3_000), call], timestamp=WHEN),
    ]
    conversation = Conversation(conversation_id="c", messages=list(messages))
    entries = await store.save(conversation, scope="ana")
    assert [entry.message for entry in entries] == messages
    loaded = await store.load("c")
    assert loaded is not None
    assert loaded.messages == messages
    hits = folder.memories.search("kettle", kinds=["item"]).results
    assert any("A kettle. " in hit.memory.content for hit in hits)
    await store.delete("c")
    assert folder.memories.count(kinds=["item"]) == 2  # the rows of the conversation, without what was said
    with pytest.raises(KeyError):
        await store.read_entry(entries[0].id)


async def test_of_two_writers_one_has_a_conflict(folder: Any) -> None:
    first, second = MemorandaConversationStore(folder), MemorandaConversationStore(folder)
    await first.save(Conversation(conversation_id="c", messages=[request("one")]))
    copies = [await store.load("c") for store in (first, second)]
    for number, copy in enumerate(copies):
        assert copy is not None
        copy.messages.append(response(f"answer {number}"))
    saves = [
        store.save(copy) for store, copy in zip((first, second), copies, strict=True) if copy is not None
    ]
    ended = await asyncio.gather(*saves, return_exceptions=True)
    assert sorted(type(one).__name__ for one in ended) == ["ConversationConflict", "list"]
    other = MemorandaConversationStore(folder, user_id="ben")
    assert await other.load("c") is None
    with pytest.raises(ConversationConflict):
        await second.save(Conversation(conversation_id="c", messages=[request("new")]))


async def test_texts_are_embedded_by_the_product(product: Any) -> None:
    embedder = Embedder(MemorandaEmbeddingModel(product))
    result = await embedder.embed_documents([f"text {n}" for n in range(300)])
    assert len(result.embeddings) == 300
    assert result["text 7"] == pytest.approx(
        (await embedder.embed_documents("text 7")).embeddings[0], abs=1e-6
    )
    assert len((await embedder.embed_query("text")).embeddings[0]) == 64
    with pytest.raises(UserError, match="dimensions is not supported"):
        await embedder.embed_query("text", settings={"dimensions": 8})
    with pytest.raises(InvalidInput, match="must hold some text"):
        await embedder.embed_query("")


def answering(seen: list[list[ModelMessage]]) -> FunctionModel:
    """A model that remembers what it is asked to, recalls, and answers."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append(messages)
        asked = str(getattr(messages[-1].parts[-1], "content", ""))
        if asked.endswith("keep it.") and {tool.name for tool in info.function_tools} == {
            "recall",
            "remember",
        }:
            return ModelResponse(parts=[ToolCallPart("remember", {"text": "Ana likes tea."})])
        if asked.startswith("look up"):
            return ModelResponse(parts=[ToolCallPart("recall", {"query": "What does Ana like?"})])
        return response(f"I heard: {asked}")

    return FunctionModel(answer)


async def test_an_agent_remembers(product: Any) -> None:
    seen: list[list[ModelMessage]] = []
    memory = MemorandaMemory(product, user_id=lambda deps: deps["user"])
    agent = Agent(answering(seen), deps_type=dict, capabilities=[memory])
    ana, ben = {"user": "ana"}, {"user": "ben"}
    first = await agent.run("My bike is blue and I like tea, keep it.", deps=ana)
    assert "Remembered." in first.output
    later = await agent.run("Which colour has my bike?", deps=ana)
    told = str(seen[-1][0].parts[0].content)
    assert "What is remembered" in told
    assert "My bike is blue" in told
    assert "What is remembered" not in str(later.all_messages())
    found = await agent.run("look up tea", deps=ana)
    assert "Ana likes tea." in found.output
    assert len(seen[-1]) == 3
    assert "What is remembered" in str(seen[-1][0])
    await agent.run("Which colour has my bike?", deps=ben)
    assert "blue" not in str(seen[-1])


async def test_an_agent_without_tools_observation_and_context(folder: Any) -> None:
    folder.memories.add("Bikes are blue.")
    seen: list[list[ModelMessage]] = []
    memory = MemorandaMemory(folder, budget=0, observe=False, tools=False)
    agent = Agent(answering(seen), capabilities=[memory])
    result = await agent.run("Which colour have bikes? keep it.")
    assert result.output.startswith("I heard:")
    assert "blue" not in str(seen)
    assert folder.memories.count() == 1
    with pytest.raises(InvalidInput, match="has no sessions"):
        MemorandaMemory(folder.memories)


async def test_pydantic_ai_in_an_event_loop() -> None:
    async with await memoranda.Memoranda.open(":memory:", embedder=QUICK) as opened:
        agent = Agent(answering([]), capabilities=[MemorandaMemory(opened)])
        store = MemorandaConversationStore(opened)
        result = await agent.run("Hello, my kettle is green.")
        await store.save(result)
        assert len(await store.list_conversations()) == 1
        hits = (await opened.memories.search("kettle", kinds=["message"])).results
        assert {hit.memory.role for hit in hits} == {"user", "assistant"}


def test_the_example_remembers_the_user(tmp_path: Path) -> None:
    with serving([{"text": "I will remember."}, {"text": "Peanuts."}]) as (url, received):
        for message in ("I am allergic to peanuts.", "What am I allergic to?"):
            ran = subprocess.run(
                [sys.executable, str(EXAMPLE), str(tmp_path / "data"), "ana", message],
                env={**os.environ, "OPENAI_BASE_URL": url, "OPENAI_API_KEY": "none"},
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "Peanuts.\n2 conversations of ana\n"
    assert "I am allergic to peanuts." in str(received[1])
