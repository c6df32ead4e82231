"""`MemorandaSession` and `memory_tools`: the history of the OpenAI Agents SDK, on a folder and on a server."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import agents
import pytest
from agents import Agent, Runner
from agents.memory import Session
from agents.testing import ScriptedModel
from agents.tool_context import ToolContext
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

import memoranda
from memoranda.errors import InvalidInput
from memoranda.integrations.openai_agents import MemorandaSession, memory_tools

from .conftest import QUICK

pytestmark = pytest.mark.gate("folder")
EXAMPLE = Path(__file__).parents[2] / "examples" / "agents_session.py"
ITEMS: list[Any] = [
    {"role": "user", "content": "Wie geht's? \u0000 \ud83d\ude00 \udc80"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x" * 100_000},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1e400, "b": [null]}'},
    {"type": "function_call_output", "call_id": "c1", "output": [{"n": 2**70, "f": 0.1, "e": {}}]},
    {"type": "something_new", "": "", "$key": -0.0},
]

agents.set_tracing_disabled(True)


def text(content: str) -> ResponseOutputMessage:
    """What a model says."""
    part = ResponseOutputText(text=content, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id="msg_1", type="message", role="assistant", status="completed", content=[part]
    )


async def test_items_are_kept_exactly_and_in_order(product: Any) -> None:
    session = MemorandaSession(product, "chat")
    assert isinstance(session, Session)
    await session.add_items(ITEMS[:2])
    await session.add_items(ITEMS[2:])
    await session.add_items([])
    await MemorandaSession(product, "other").add_items(ITEMS[:1])
    await MemorandaSession(product, "chat", name="other").add_items(ITEMS[:1])
    assert json.dumps(await session.get_items()) == json.dumps(ITEMS)
    assert await session.get_items(2) == ITEMS[-2:]
    assert await session.get_items(0) == []
    limited = MemorandaSession(product, "chat", session_settings={"limit": 1})
    assert await limited.get_items() == ITEMS[-1:]


async def test_items_are_kept_in_order_where_a_batch_takes_few() -> None:
    async with await memoranda.Memoranda.open(":memory:", embedder=QUICK, limits={"max_batch": 2}) as opened:
        session = MemorandaSession(opened, "chat")
        await session.add_items(ITEMS)
        assert json.dumps(await session.get_items()) == json.dumps(ITEMS)


async def test_the_last_item_is_popped_once(product: Any) -> None:
    session = MemorandaSession(product, "pop")
    await session.add_items(ITEMS)
    popped = await asyncio.gather(*(session.pop_item() for _ in range(len(ITEMS) + 2)))
    assert sorted(map(json.dumps, popped)) == sorted(map(json.dumps, [*ITEMS, None, None]))
    assert await session.get_items() == []


async def test_a_session_is_erased_by_itself_and_by_its_scope(product: Any) -> None:
    session, other = MemorandaSession(product, "erased"), MemorandaSession(product, "kept")
    memories = product if hasattr(product, "add_many") else product.memories
    for one in (session, other):
        await one.add_items(ITEMS)
    await session.clear_session()
    assert await session.get_items() == []
    assert await other.get_items() == ITEMS
    assert memories.search("a record that is not searched", scopes=["session:kept"]).results == []
    memories.forget(scopes=["session:kept"])
    assert await other.get_items() == []
    await session.clear_session()


async def test_what_is_no_json_is_refused(folder: Any) -> None:
    session = MemorandaSession(folder, "chat")
    with pytest.raises(InvalidInput, match=r"items\[1\]: must be plain JSON"):
        await session.add_items([ITEMS[0], {"role": "user", "content": object()}])  # type: ignore[list-item]
    assert await session.get_items() == []


async def test_an_agent_goes_on_where_it_was_in_a_folder_opened_again(tmp_path: Path) -> None:
    model = ScriptedModel([[text("Hello Ana.")], [text("You said hi.")]])

    async def said(message: str) -> str:
        async with await memoranda.Memoranda.open(tmp_path, embedder=QUICK) as opened:
            session = MemorandaSession(opened, "chat")
            return str((await Runner.run(Agent("a", model=model), message, session=session)).final_output)

    assert await said("Hi, I am Ana.") == "Hello Ana."
    assert await said("What did I say?") == "You said hi."
    assert [item.get("role") for item in model.calls[-1].input] == ["user", "assistant", "user"]


async def test_the_tools_remember_and_recall_for_one_user(product: Any) -> None:
    recall, remember = memory_tools(product, user_id="ana")

    async def call(tool: Any, **words: str) -> str:
        context = ToolContext(None, tool_name=tool.name, tool_call_id="c", tool_arguments="{}")
        return str(await tool.on_invoke_tool(context, json.dumps(words)))

    assert await call(recall, query="tea") == "Nothing is remembered about that."
    assert await call(remember, text="Ana likes green tea.") == "Remembered."
    assert await call(remember, text="Ana likes green tea.") == "That is remembered already."
    assert "Ana likes green tea." in await call(recall, query="which tea does Ana like?")
    others = memory_tools(product, user_id="ben")[0]
    assert await call(others, query="tea") == "Nothing is remembered about that."


@pytest.mark.slow
def test_the_example_goes_on_in_a_second_process(server: Any) -> None:
    def said(message: str) -> str:
        command = [sys.executable, str(EXAMPLE), "example", "ana", message]
        env = {**os.environ, "MEMORANDA_URL": server.url}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=env).stdout

    assert "2 items in example" in said("I am allergic to peanuts.")
    assert "4 items in example" in said("What am I allergic to?")


@pytest.mark.slow
def test_the_page_says_what_happens(tmp_path: Path) -> None:
    page = (EXAMPLE.parents[1] / "docs" / "guides" / "integrations.md").read_text("utf-8")
    (code,) = re.findall(r"## OpenAI Agents SDK\n.*?```python\n(.*?)```", page, flags=re.DOTALL)
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert told.stdout == "[{'role': 'user', 'content': 'I am allergic to peanuts.'}]\n", told.stderr
