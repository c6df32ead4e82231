"""A CrewAI agent that remembers its users from one process to the next.

OPENAI_API_KEY=... python examples/crewai_memory.py FOLDER USER MESSAGE
"""

import sys

from crewai import Agent, Crew, Task
from crewai.memory import Memory

import memoranda
from memoranda.integrations.crewai import MemorandaEmbedder, MemorandaStorage

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, user, message = sys.argv[1:]

with memoranda.open(folder) as product:
    memory = Memory(
        storage=MemorandaStorage(product),
        embedder=MemorandaEmbedder(product),
        llm="openai/gpt-5-mini",
        root_scope=f"/users/{user}",
    )
    helper = Agent(
        role="Helper",
        goal="Help the user with what you remember",
        backstory="You know the user well.",
        llm="openai/gpt-5-mini",
    )
    task = Task(description=message, expected_output="A short answer", agent=helper)
    print(Crew(agents=[helper], tasks=[task], memory=memory).kickoff())
    memory.close()
