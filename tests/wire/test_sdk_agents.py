"""The OpenAI Agents SDK against a server as users run it: tools, hand-offs, sessions, approvals, streamed and not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import agents
import openai
import pytest
from agents import (
    Agent,
    CustomTool,
    FileSearchTool,
    HostedMCPTool,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    OpenAIResponsesModel,
    Runner,
    SQLiteSession,
    function_tool,
)
from pydantic import BaseModel

agents.set_tracing_disabled(True)


class Thing(BaseModel):
    """What the model is asked to fill in."""

    name: str
    price: int


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


class Desk:
    """Agents whose model is the server's."""

    def __init__(self, kitchen: Any, client: openai.AsyncOpenAI) -> None:
        self.kitchen = kitchen
        self.client = client
        self.model = OpenAIResponsesModel("scripted", client)

    def agent(self, **settings: Any) -> Agent[Any]:
        """An agent with these settings."""
        return Agent(**{"name": "cook", "instructions": "Be kind.", "model": self.model, **settings})

    @property
    def search(self) -> FileSearchTool:
        """The search of the manuals."""
        return FileSearchTool([self.kitchen.store], max_num_results=3, include_search_results=True)


@pytest.fixture(scope="module")
def run(kitchen: Any) -> Callable[[Callable[[Desk], Awaitable[None]]], None]:
    """Runs a function with a desk, in a loop of its own."""

    @asynccontextmanager
    async def desk() -> AsyncIterator[Desk]:
        async with openai.AsyncOpenAI(base_url=f"{kitchen.url}/v1", api_key="none", max_retries=0) as client:
            yield Desk(kitchen, client)

    def go(use: Callable[[Desk], Awaitable[None]]) -> None:
        async def main() -> None:
            async with desk() as made:
                await use(made)

        asyncio.run(main())

    return go


async def streamed(agent: Agent[Any], said: Any, **settings: Any) -> tuple[Any, list[Any]]:
    """A run that is streamed, to its end, and the events of the API in it."""
    result = Runner.run_streamed(agent, said, **settings)
    events = [event.data async for event in result.stream_events() if event.type == "raw_response_event"]
    return result, events


def kinds(result: Any) -> list[str]:
    return [item.type for item in result.new_items]


def test_an_answer(run: Any) -> None:
    async def use(desk: Desk) -> None:
        result = await Runner.run(desk.agent(), "Where is the kettle?")
        assert result.final_output == "It is in the kitchen."
        assert result.context_wrapper.usage.output_tokens > 0
        assert desk.kitchen.told("Where is the kettle?")[-1] == ["Be kind.", "Where is the kettle?"]
        result, events = await streamed(desk.agent(), "Where is the kettle?")
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert len(deltas) > 1
        assert "".join(deltas) == result.final_output == "It is in the kitchen."

    run(use)


@pytest.mark.parametrize("settings", [{}, {"store": False}], ids=["stored", "not stored"])
def test_function_tools(run: Any, settings: dict[str, Any]) -> None:
    async def use(desk: Desk) -> None:
        agent = desk.agent(tools=[get_weather], model_settings=ModelSettings(**settings))
        result = await Runner.run(agent, "What is the weather?")
        assert result.final_output == "It is sunny in Paris."
        assert kinds(result) == [
            "reasoning_item",
            "tool_call_item",
            "tool_call_output_item",
            "message_output_item",
        ]
        result, _ = await streamed(agent, "The weather in two cities?")
        assert result.final_output == "Sunny in both."
        outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
        assert outputs == ["sunny in Paris", "sunny in Rome"]

    run(use)


@pytest.mark.parametrize("settings", [{}, {"store": False}], ids=["stored", "not stored"])
def test_tools_that_run_at_the_server_and_here(run: Any, settings: dict[str, Any]) -> None:
    async def use(desk: Desk) -> None:
        agent = desk.agent(tools=[desk.search, get_weather], model_settings=ModelSettings(**settings))
        for result in (
            await Runner.run(agent, "How is the kettle cleaned in Paris?"),
            (await streamed(agent, "How is the kettle cleaned in Paris?"))[0],
        ):
            assert result.final_output == "With vinegar [1], in the sun."
            cited = result.new_items[-1].raw_item.content[0].annotations
            assert [one.filename for one in cited] == ["manual.txt"]

    run(use)


def test_file_search(run: Any) -> None:
    async def use(desk: Desk) -> None:
        agent = desk.agent(tools=[desk.search])
        result = await Runner.run(agent, "How is the kettle cleaned?")
        call, message = (item.raw_item for item in result.new_items)
        assert [found.filename for found in call.results] == ["manual.txt"]
        assert message.content[0].annotations[0].file_id == call.results[0].file_id
        result, events = await streamed(agent, "How is the kettle cleaned?")
        assert "response.file_search_call.searching" in {event.type for event in events}
        again = [*result.to_input_list(), {"role": "user", "content": "Where is the kettle?"}]
        assert (await Runner.run(agent, again)).final_output == "It is in the kitchen."

    run(use)


def test_a_hand_off(run: Any) -> None:
    async def use(desk: Desk) -> None:
        italian = desk.agent(name="italian", instructions="Rispondi.")
        agent = desk.agent(handoffs=[italian])
        result = await Runner.run(agent, "Che tempo fa a Roma?")
        assert (result.final_output, result.last_agent.name) == ("Fa bel tempo.", "italian")
        result, _ = await streamed(agent, "Che tempo fa a Roma?")
        assert (result.final_output, result.last_agent.name) == ("Fa bel tempo.", "italian")

    run(use)


def test_an_agent_as_a_tool(run: Any) -> None:
    async def use(desk: Desk) -> None:
        inner = desk.agent(name="forecaster", tools=[get_weather])
        agent = desk.agent(tools=[inner.as_tool("forecaster", "Knows what is to come.")])
        result = await Runner.run(agent, "Ask the forecaster")
        assert result.final_output == "She says it is sunny."

    run(use)


def test_a_custom_tool(run: Any) -> None:
    async def answer(_: Any, said: str) -> str:
        return f"ran {said}"

    async def use(desk: Desk) -> None:
        agent = desk.agent(tools=[CustomTool("write_sql", "Runs SQL.", answer)])
        for result in (await Runner.run(agent, "Write SQL"), (await streamed(agent, "Write SQL"))[0]):
            assert result.final_output == "There are three."
            assert [item.output for item in result.new_items if item.type == "tool_call_output_item"] == [
                "ran select 1"
            ]

    run(use)


def test_structured_output(run: Any) -> None:
    async def use(desk: Desk) -> None:
        agent = desk.agent(output_type=Thing)
        assert (await Runner.run(agent, "The kettle as JSON")).final_output == Thing(name="kettle", price=30)
        result, _ = await streamed(agent, "The kettle as JSON")
        assert result.final_output == Thing(name="kettle", price=30)

    run(use)


def test_turns_by_the_response_before(run: Any) -> None:
    async def use(desk: Desk) -> None:
        first = await Runner.run(desk.agent(), "My name is Ada, run.")
        result, _ = await streamed(
            desk.agent(), "What is my name, run?", previous_response_id=first.last_response_id
        )
        assert result.final_output == "You are Ada."
        told = ["Be kind.", "My name is Ada, run.", "Hello Ada.", "What is my name, run?"]
        assert desk.kitchen.told("What is my name, run?") == [told]

    run(use)


def test_tools_over_turns_that_the_server_holds(run: Any) -> None:
    async def use(desk: Desk) -> None:
        agent = desk.agent(tools=[desk.search, get_weather])
        result = await Runner.run(agent, "What is the weather?", auto_previous_response_id=True)
        assert result.final_output == "It is sunny in Paris."
        held = (await desk.client.conversations.create()).id
        result, _ = await streamed(agent, "How is the kettle cleaned in Paris?", conversation_id=held)
        assert result.final_output == "With vinegar [1], in the sun."
        items = [item.type async for item in desk.client.conversations.items.list(held, order="asc")]
        assert sorted(items[1:3]) == ["file_search_call", "function_call"]
        assert items[3:] == ["function_call_output", "message"]

    run(use)


def test_a_session_that_is_a_conversation(run: Any) -> None:
    async def use(desk: Desk) -> None:
        agent = desk.agent(tools=[get_weather])
        session = OpenAIConversationsSession(openai_client=desk.client)
        await Runner.run(agent, "My name is Ada, session.", session=session)
        await Runner.run(agent, "What is the weather?", session=session)
        result, _ = await streamed(agent, "What is my name, session?", session=session)
        assert result.final_output == "You are Ada."
        (told,) = desk.kitchen.told("What is my name, session?")
        assert told[:3] == ["Be kind.", "My name is Ada, session.", "Hello Ada."]
        assert "sunny in Paris" in told
        items: Any = await session.get_items()
        assert [item.get("role") for item in items if item["type"] == "message"] == ["user", "assistant"] * 3
        last: Any = await session.pop_item()
        assert last["content"][0]["text"] == "You are Ada."
        assert len(await session.get_items()) == len(items) - 1
        await session.clear_session()

    run(use)


def test_a_session_that_is_compacted(run: Any) -> None:
    async def use(desk: Desk) -> None:
        session = OpenAIResponsesCompactionSession(
            "ada",
            SQLiteSession("ada"),
            client=desk.client,
            model="gpt-4.1",
            should_trigger_compaction=lambda _: True,
        )
        await Runner.run(desk.agent(), "My name is Ada, compacted.", session=session)
        items: Any = await session.get_items()
        assert "compaction" in [item.get("type") for item in items]
        result = await Runner.run(desk.agent(), "What is my name, compacted?", session=session)
        assert result.final_output == "You are Ada."
        assert "Ada" in " ".join(desk.kitchen.told("What is my name, compacted?")[-1][:-1])

    run(use)


def test_reasoning_is_passed_on(run: Any) -> None:
    async def use(desk: Desk) -> None:
        for settings in (
            ModelSettings(),
            ModelSettings(store=False, response_include=["reasoning.encrypted_content"]),
        ):
            agent = desk.agent(model_settings=settings)
            result, events = await streamed(agent, "Think")
            assert "response.reasoning_text.delta" in {event.type for event in events}
            assert kinds(result) == ["reasoning_item", "message_output_item"]
            again = [*result.to_input_list(), {"role": "user", "content": "Where is the kettle?"}]
            assert (await Runner.run(agent, again)).final_output == "It is in the kitchen."

    run(use)


def test_remote_tools(run: Any) -> None:
    async def use(desk: Desk) -> None:
        config: Any = {"type": "mcp", "server_label": "small", "server_url": desk.kitchen.mcp}
        never = HostedMCPTool({**config, "require_approval": "never"})
        result, _ = await streamed(desk.agent(tools=[never]), "Please echo")
        assert result.final_output == "It said tiny."
        asked: list[str] = []

        def approve(request: Any) -> Any:
            asked.append(request.data.name)
            return {"approve": True}

        always = HostedMCPTool({**config, "require_approval": "always"}, on_approval_request=approve)
        result = await Runner.run(desk.agent(tools=[always]), "Please echo")
        assert (result.final_output, asked) == ("It said tiny.", ["echo"])

    run(use)


def test_an_image(run: Any, kitchen: Any) -> None:
    async def use(desk: Desk) -> None:
        content = [
            {"type": "input_text", "text": "What is in the picture?"},
            {"type": "input_image", "image_url": "data:image/png;base64,aGVsbG8=", "detail": "auto"},
        ]
        result = await Runner.run(desk.agent(), [{"role": "user", "content": content}])  # type: ignore[list-item]
        assert result.final_output == "A pixel."

    run(use)


def test_errors(run: Any) -> None:
    async def use(desk: Desk) -> None:
        with pytest.raises(openai.BadRequestError) as caught:
            await Runner.run(desk.agent(), "hello", previous_response_id="resp_none")
        assert caught.value.code == "previous_response_not_found"
        with pytest.raises(openai.APIStatusError) as away:
            await Runner.run(desk.agent(), "Model away")
        assert away.value.status_code == 503
        with pytest.raises(agents.ModelBehaviorError, match="loading"):
            await streamed(desk.agent(), "Model away")
        with pytest.raises(agents.ModelBehaviorError, match="broke off"):
            await Runner.run(desk.agent(), "Break off")

    run(use)


def test_one_socket_for_a_session(run: Any) -> None:
    async def use(desk: Desk) -> None:
        base = f"{desk.kitchen.url}/v1"
        async with agents.responses_websocket_session(base_url=base, api_key="none") as session:
            agent = Agent(name="cook", model="scripted", tools=[get_weather])
            result = await session.run(agent, "What is the weather?")
            assert result.final_output == "It is sunny in Paris."

    run(use)


def test_the_example(kitchen: Any) -> None:
    printed = kitchen.example("agents_sdk.py", kitchen.store, "How is the kettle cleaned?")
    assert printed.splitlines() == ["Fill it with vinegar [1].", "manual.txt", "Vinegar does it."]
