"""An agent of Microsoft's Agent Framework that remembers its users from one process to the next.

OPENAI_API_KEY=... python examples/agent_framework_memory.py FOLDER USER MESSAGE
"""

import asyncio
import sys

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

import memoranda
from memoranda.integrations.agent_framework import MemorandaContextProvider

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, user, message = sys.argv[1:]


async def main() -> None:
    async with await memoranda.Memoranda.open(folder) as product:
        agent = Agent(
            OpenAIChatCompletionClient(model="gpt-5-mini"),
            context_providers=[MemorandaContextProvider(product, user_id=user)],
        )
        print((await agent.run(message, session=agent.create_session())).text)


asyncio.run(main())
