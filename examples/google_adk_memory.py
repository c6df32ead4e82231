"""An ADK agent that remembers its users from one process to the next.

GOOGLE_API_KEY=... python examples/google_adk_memory.py FOLDER USER MESSAGE
"""

import asyncio
import sys

from google.adk.agents import LlmAgent
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types

import memoranda
from memoranda.integrations.google_adk import MemorandaMemoryService

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, user, message = sys.argv[1:]


async def main() -> None:
    agent = LlmAgent(
        name="helper",
        model="gemini-2.5-flash",
        instruction="Help the user with what you remember.",
        tools=[PreloadMemoryTool()],
    )
    async with await memoranda.Memoranda.open(folder) as product:
        sessions, memory = InMemorySessionService(), MemorandaMemoryService(product)
        runner = Runner(app_name="kitchen", agent=agent, session_service=sessions, memory_service=memory)
        session = await sessions.create_session(app_name="kitchen", user_id=user)
        said = types.Content(role="user", parts=[types.Part(text=message)])
        async for event in runner.run_async(user_id=user, session_id=session.id, new_message=said):
            if event.is_final_response() and event.content and event.content.parts:
                print(event.content.parts[0].text)

        held = await sessions.get_session(app_name="kitchen", user_id=user, session_id=session.id)
        await memory.add_session_to_memory(held)


asyncio.run(main())
