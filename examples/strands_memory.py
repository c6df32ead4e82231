"""A Strands agent that remembers its users from one process to the next.

OPENAI_API_KEY=... python examples/strands_memory.py FOLDER USER MESSAGE
"""

import sys

from strands import Agent
from strands.memory import MemoryManager
from strands.models.openai import OpenAIModel

import memoranda
from memoranda.integrations.strands import MemorandaMemoryStore

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, user, message = sys.argv[1:]

with memoranda.open(folder) as product:
    store = MemorandaMemoryStore(product, user_id=user, extraction=True)
    agent = Agent(
        model=OpenAIModel(model_id="gpt-5-mini"),
        system_prompt="Help the user with what you remember.",
        memory_manager=MemoryManager(stores=[store]),
        callback_handler=None,
    )
    print(agent(message))
