"""A Pydantic AI agent that remembers its users from one process to the next, and keeps their conversations.

OPENAI_API_KEY=... python examples/pydantic_ai_memory.py FOLDER USER MESSAGE
"""

import asyncio
import sys

from pydantic_ai import Agent

import memoranda
from memoranda.integrations.pydantic_ai import MemorandaConversationStore, MemorandaMemory

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, user, message = sys.argv[1:]


async def main() -> None:
    async with await memoranda.Memoranda.open(folder) as product:
        memory = MemorandaMemory(product, user_id=lambda user: user)
        agent = Agent("openai-chat:gpt-5-mini", deps_type=str, capabilities=[memory])
        result = await agent.run(message, deps=user)
        print(result.output)

        store = MemorandaConversationStore(product)
        await store.save(result, scope=user)
        print(len(await store.list_conversations(scope=user)), "conversations of", user)


asyncio.run(main())
