"""Tools with which an agent of the OpenAI Agents SDK searches and writes memories."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Tool, function_tool

from memoranda.integrations.products import Product, memories_of
from memoranda.types import Hit

NOTHING = "Nothing is remembered about that."


def memory_tools(product: Product, *, user_id: str | None = None, limit: int = 5) -> list[Tool]:
    """The tools `recall` and `remember` over the memories of one user: `user_id`, or the user of the product's subject.
    `recall` returns the `limit` best memories, each with its date."""
    memories = memories_of(product)
    scopes = None if user_id is None else [f"user:{user_id}", "global"]
    owner: dict[str, Any] = {} if user_id is None else {"user_id": user_id}

    def search(query: str) -> list[Hit]:
        return memories.search(query, limit=limit, scopes=scopes).results

    def add(text: str) -> bool:
        return memories.add(text, **owner).created

    async def recall(query: str) -> str:
        """Search long-term memory: what is known about the user, earlier conversations, decisions and preferences.

        Args:
            query: What to look for, as a question or a few words.
        """
        hits = await asyncio.to_thread(search, query)
        lines = [f"- {hit.memory.occurred_at:%Y-%m-%d}: {hit.memory.content}" for hit in hits]
        return "\n".join(lines) or NOTHING

    async def remember(text: str) -> str:
        """Keep one lasting fact for later conversations.

        Args:
            text: The fact, as a whole sentence that can be understood without this conversation.
        """
        created = await asyncio.to_thread(add, text)
        return "Remembered." if created else "That is remembered already."

    return [function_tool(recall), function_tool(remember)]
