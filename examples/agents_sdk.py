"""An agent of the OpenAI Agents SDK: it searches a vector store, has a tool that runs here, and a conversation.

python examples/agents_sdk.py STORE QUESTION
"""

import asyncio
import os
import sys

from agents import (
    Agent,
    FileSearchTool,
    OpenAIConversationsSession,
    OpenAIResponsesModel,
    Runner,
    function_tool,
    set_tracing_disabled,
)
from openai import AsyncOpenAI


@function_tool
def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"sunny in {city}"


async def main(store: str, question: str) -> None:
    set_tracing_disabled(True)  # traces go to OpenAI
    url = os.environ.get("MEMORANDA_URL", "http://127.0.0.1:8377")
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    agent = Agent(
        name="helper",
        instructions="Use the manuals.",
        model=OpenAIResponsesModel(os.environ.get("MEMORANDA_MODEL", "extractive"), client),
        tools=[FileSearchTool([store], include_search_results=True), get_weather],
    )
    session = OpenAIConversationsSession(openai_client=client)
    answer = Runner.run_streamed(agent, question, session=session)
    async for event in answer.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            print(event.data.delta, end="", flush=True)
    print()
    for note in answer.new_items[-1].raw_item.content[0].annotations:
        print(note.filename)
    print((await Runner.run(agent, "And in one sentence?", session=session)).final_output)


if len(sys.argv) != 3:
    sys.exit(__doc__)
asyncio.run(main(*sys.argv[1:]))
