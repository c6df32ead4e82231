"""An agent of the OpenAI Agents SDK whose conversation and memories outlive the process: both are on a server.

python examples/agents_session.py SESSION USER MESSAGE
"""

import asyncio
import os
import sys

from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI

from memoranda.client import Client
from memoranda.integrations.openai_agents import MemorandaSession, memory_tools


async def main(session_id: str, user: str, message: str) -> None:
    set_tracing_disabled(True)  # traces go to OpenAI
    url = os.environ.get("MEMORANDA_URL", "http://127.0.0.1:8377")
    model = os.environ.get("MEMORANDA_MODEL", "extractive")
    with Client(url) as product:
        agent = Agent(
            name="helper",
            instructions="Recall before you answer, and remember what will matter later.",
            model=OpenAIResponsesModel(model, AsyncOpenAI(base_url=f"{url}/v1", api_key="none")),
            tools=memory_tools(product, user_id=user),
        )
        session = MemorandaSession(product, session_id)
        print((await Runner.run(agent, message, session=session)).final_output)
        print(f"{len(await session.get_items())} items in {session_id}")


if len(sys.argv) != 4:
    sys.exit(__doc__)
asyncio.run(main(*sys.argv[1:]))
