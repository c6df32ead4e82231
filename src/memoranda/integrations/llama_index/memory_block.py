"""A block of LlamaIndex's memory that is a product."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemoryBlock
from pydantic import Field, PrivateAttr

from memoranda.integrations.products import Product, whole_of
from memoranda.integrations.retrieval import Search

ROLES = {MessageRole.USER: "user", MessageRole.ASSISTANT: "assistant"}
"""The roles whose messages are stored; messages of tools and the system are not."""


class MemorandaMemoryBlock(BaseMemoryBlock[str]):
    """Long-term memory for LlamaIndex's `Memory`: messages that leave the short-term memory are observed in the session
    `session_id`, from which summaries and facts are made as configured; and for each turn the `limit` best memories for
    the last message of the user are returned, one a line. `search` has further fields of that search; without them it
    is over the memories of `user_id` and of everyone.
    """

    name: str = "memoranda"
    user_id: str | None = None
    session_id: str | None = None
    limit: int = Field(default=5, ge=1)
    search: dict[str, Any] = Field(default_factory=dict)
    _sessions: Any = PrivateAttr()
    _search: Search = PrivateAttr()

    def __init__(self, product: Product, **settings: Any) -> None:
        super().__init__(**settings)
        scopes = {} if self.user_id is None else {"scopes": [f"user:{self.user_id}", "global"]}
        self._sessions = whole_of(product).sessions
        self._search = Search(product, None, {**scopes, **self.search})

    async def _aget(self, messages: Sequence[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        questions = [
            text
            for message in messages or []
            if message.role == MessageRole.USER and (text := _text(message))
        ]
        if not questions:
            return ""
        results = await asyncio.to_thread(self._search.run, questions[-1], self.limit)
        return "\n".join(f"- {result.text}" for result in results)

    async def _aput(self, messages: Sequence[ChatMessage]) -> None:
        observed = [
            {"role": ROLES[MessageRole(message.role)], "content": text}
            for message in messages
            if message.role in ROLES and (text := _text(message))
        ]
        place: dict[str, Any] = {"session_id": self.session_id, "user_id": self.user_id}
        named = {name: value for name, value in place.items() if value is not None}
        if observed:
            await asyncio.to_thread(self._sessions.observe, observed, **named)


def _text(message: ChatMessage) -> str:
    return (message.content or "").strip()
