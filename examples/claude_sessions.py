"""Sessions of Claude Code in a product: copies those of a directory, lists them, and finds what was said in them.

python examples/claude_sessions.py FOLDER DIRECTORY QUESTION
"""

import asyncio
import sys

from claude_agent_sdk import import_session_to_store, list_sessions, list_sessions_from_store

import memoranda
from memoranda.integrations.claude_agent_sdk import MemorandaSessionStore

if len(sys.argv) != 4:
    sys.exit(__doc__)
folder, directory, question = sys.argv[1:]


async def main() -> None:
    async with await memoranda.Memoranda.open(folder) as product:
        store = MemorandaSessionStore(product)
        for session in list_sessions(directory):
            await import_session_to_store(session.session_id, store, directory=directory)
        for session in await list_sessions_from_store(store, directory):
            print(session.session_id, session.first_prompt)
        found = await product.memories.search(
            question, kinds=["item"], scopes=["channel:claude-sessions"], limit=1
        )
        for hit in found.results:
            print(hit.memory.content)


asyncio.run(main())
