"""Tools with which an agent of the OpenAI Agents SDK searches and writes memories."""

from __future__ import annotations

import asyncio

from agents import FunctionTool, Tool, function_tool

from memoranda.integrations.products import Product, memories_of

NOTHING = "Nothing is remembered about that."


def memory_tools(product: Product, *, user_id: str | None = None, limit: int = 5) -> list[Tool]:
    """The tools `recall` and `remember` over the memories of one user: `user_id`, or the user of the product's subject.
    `recall` returns the `limit` best memories, each with its date."""
    memories = memories_of(product)
    scopes = None if user_id is None else [f"user:{user_id}", "global"]

    async def recall(query: str) -> str:
        """Search long-term memory: what is known about the user, earlier conversations, decisions and preferences.

        Args:
            query: What to look for, as a question or a few words.
        """
        found = await asyncio.to_thread(memories.search, query, limit=limit, scopes=scopes)
        lines = [f"- {hit.memory.occurred_at:%Y-%m-%d}: {hit.memory.content}" for hit in found.results]
        return "\n".join(lines) or NOTHING

    async def remember(text: str) -> str:
        """Keep one lasting fact for later conversations.

        Args:
            text: The fact, as a whole sentence that can be understood without this conversation.
        """
        owner = {} if user_id is None else {"user_id": user_id}
        added = await asyncio.to_thread(memories.add, text, **owner)
        return "Remembered." if added.created else "That is remembered already."

    tools: list[FunctionTool] = [function_tool(recall), function_tool(remember)]
    return list(tools)
