"""The adapters for Microsoft's Agent Framework."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import memoranda
from memoranda.client import Client
from memoranda.errors import InvalidInput

pytest.importorskip("agent_framework")

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, Message

from memoranda.integrations.agent_framework import MemorandaContextProvider, MemorandaHistoryProvider
from support.chat_server import serving

from .conftest import QUICK

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent_framework_memory.py"


class Echo(BaseChatClient):
    """A chat client that repeats what it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[list[str]] = []

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        async def answered() -> ChatResponse:
            self.sent.append([message.text for message in messages])
            return ChatResponse(messages=[Message("assistant", [f"I heard: {messages[-1].text}"])])

        return answered()


async def test_an_agent_remembers_its_user(product: Any) -> None:
    client = Echo()
    ana, ben = (
        Agent(client, context_providers=[MemorandaContextProvider(product, user_id=user)])
        for user in ("ana", "ben")
    )
    session = ana.create_session()
    await ana.run("My bike is blue and fast.", session=session)
    await ana.run("Which colour has my bike?", session=ana.create_session())
    told = " ".join(client.sent[-1])
    assert "What is remembered from earlier conversations" in told
    assert "My bike is blue and fast." in told
    await ana.run("What did I say of bikes?", session=session)
    told = " ".join(text for text in client.sent[-1] if text.startswith("What is remembered"))
    assert "My bike is blue and fast." not in told
    await ben.run("Which colour has my bike?", session=ben.create_session())
    assert client.sent[-1] == ["Which colour has my bike?"]
    silent = MemorandaContextProvider(product, user_id="eva", observe=False)
    await Agent(client, context_providers=[silent]).run("My boat is red and slow.", session=session)
    memories = product if isinstance(product, Client) else product.memories
    assert memories.count(scopes=["user:eva"]) == 0
    assert memories.count(scopes=["user:ana"], kinds=["message"]) == 6


async def test_a_history_goes_on_in_another_process(product: Any) -> None:
    client = Echo()
    for text in ("The kettle is green.", "Which colour has it?"):
        agent = Agent(client, context_providers=[MemorandaHistoryProvider(product, user_id="ana")])
        await agent.run(text, session=agent.create_session(session_id="s1"))
    assert client.sent[-1] == [
        "The kettle is green.",
        "I heard: The kettle is green.",
        "Which colour has it?",
    ]
    provider = MemorandaHistoryProvider(product, user_id="ana")
    assert [message.role for message in await provider.get_messages("s1")] == ["user", "assistant"] * 2
    assert await MemorandaHistoryProvider(product).get_messages("s1") == []
    await provider.delete_messages("s1")
    assert await provider.get_messages("s1") == []


async def test_a_message_comes_back_whatever_it_holds(folder: Any) -> None:
    provider = MemorandaHistoryProvider(folder)
    call = Content.from_function_call("c1", "look", arguments={"at": ["ä", None, 1.5]})
    image = Content.from_uri(f"data:image/png;base64,{'AAAA' * 20_000}", media_type="image/png")
    messages = [
        Message("user", ["What is this?", image], author_name="Ana", message_id="m1"),
        Message("assistant", [call], additional_properties={"sure": True}),
        Message("assistant", ["A kettle, \x00 I think."]),
    ]
    await provider.save_messages("s1", messages)
    await provider.save_messages("s1", [])
    loaded = await provider.get_messages("s1")
    assert [message.to_dict() for message in loaded] == [message.to_dict() for message in messages]
    (hit,) = folder.memories.search("kettle", kinds=["item"], limit=1).results
    assert hit.memory.content == "A kettle,  I think."
    with pytest.raises(InvalidInput, match="session_id: is missing"):
        await provider.get_messages(None)


async def test_the_providers_in_an_event_loop() -> None:
    async with await memoranda.Memoranda.open(":memory:", embedder=QUICK) as opened:
        providers = [MemorandaHistoryProvider(opened), MemorandaContextProvider(opened)]
        agent = Agent(Echo(), context_providers=providers)
        await agent.run("My kettle is green.", session=agent.create_session(session_id="s1"))
        assert len(await providers[0].get_messages("s1")) == 2
        assert len((await opened.memories.search("kettle", kinds=["message"])).results) == 2


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
    assert ran.stdout == "Peanuts.\n"
    assert "I am allergic to peanuts." in str(received[1])
