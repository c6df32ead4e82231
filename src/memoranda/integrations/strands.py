"""Strands Agents: `MemorandaMemoryStore`, the long-term memory of an agent in Memoranda."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from memoranda.integrations.frameworks import require

require("strands.memory", "strands-agents")

from strands.memory import MemoryEntry, MemoryStore  # noqa: E402 - says first what is missing

from memoranda.errors import InvalidInput  # noqa: E402
from memoranda.integrations.conversing import QUERY_CHARS  # noqa: E402
from memoranda.integrations.products import Product, memories_of, whole_of  # noqa: E402
from memoranda.types import Hit, Memory  # noqa: E402

if TYPE_CHECKING:
    from strands.memory import AddMessagesContext, ExtractionConfig, SearchOptions
    from strands.types.content import Message

DEFAULT_RESULTS = 10
"""Entries of a search that names no number."""


class MemorandaMemoryStore(MemoryStore):
    """A memory store of Strands in a folder or on a server of Memoranda, for a `MemoryManager`.

    `add` stores an entry verbatim, the same text once. With `extraction`, the messages of the agent are stored in the
    message log, each once, with the product's summaries and facts; no model of the agent is called. Both belong to the
    user `user_id` and the agent `agent_id`, and so do the results of a search, best first. `session_id` is where the
    messages are stored; without one, each store begins a session of its own. Messages of that session are not found,
    since they are in the agent's context. Methods run in worker threads.

    Raises:
        InvalidInput: the product has memories only, the name is empty, or the number of results is not positive.
    """

    def __init__(
        self,
        product: Product,
        *,
        name: str = "memoranda",
        description: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        max_search_results: int | None = None,
        writable: bool = True,
        extraction: ExtractionConfig | bool | None = None,
    ) -> None:
        if not name.strip():
            raise InvalidInput("name", "must not be empty")
        _check_number(max_search_results)
        self.name = name
        self.description = description
        self.max_search_results = max_search_results
        self.writable = writable
        self.extraction = extraction
        self._whole = whole_of(product)
        self._memories = memories_of(product)
        named = {"user_id": user_id, "agent_id": agent_id}
        self._owner: dict[str, Any] = {field: id_ for field, id_ in named.items() if id_ is not None}
        self._scopes: list[str] | None = None
        if user_id is not None:
            self._scopes = [f"user:{user_id}"]
        elif agent_id is not None:
            self._scopes = [f"agent:{agent_id}"]
        self._session_id = session_id or f"strands:{uuid4()}"

    async def search(self, query: str, options: SearchOptions | None = None) -> list[MemoryEntry]:
        """The memories that bear on a question, best first. Their metadata have `id`, `kind`, `score` and time
        (`at`), in place of the caller's of these names.

        Raises:
            InvalidInput: the number of results is not positive.
        """
        asked = (options or {}).get("max_search_results")
        _check_number(asked)
        if not query.strip():
            return []
        limit = asked or self.max_search_results or DEFAULT_RESULTS
        return [_entry(hit) for hit in await asyncio.to_thread(self._search, query[:QUERY_CHARS], limit)]

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> Memory:
        """Stores one entry; returns the memory that has it.

        Raises:
            InvalidInput: the store is not writable, or the text is empty.
        """
        self._must_be_writable()
        fields: dict[str, Any] = {**self._owner, "metadata": metadata or {}}
        added = await asyncio.to_thread(lambda: self._memories.add(content, **fields))
        return added.memory

    async def add_messages(
        self, messages: Sequence[Message], context: AddMessagesContext | None = None
    ) -> None:
        """Stores the texts of messages in the message log. `context` is not needed: messages have ids of their own.

        Raises:
            InvalidInput: the store is not writable.
        """
        self._must_be_writable()
        logged = [self._logged(message) for message in messages]
        texts = [message for message in logged if message["content"].strip()]
        if texts:
            await asyncio.to_thread(self._observe, texts)

    def _search(self, query: str, limit: int) -> list[Hit]:
        filters: dict[str, Any] = {"type": "ne", "key": "$session_id", "value": self._session_id}
        if "agent_id" in self._owner:
            of_agent = {"type": "eq", "key": "$agent_id", "value": self._owner["agent_id"]}
            filters = {"type": "and", "filters": [filters, of_agent]}
        return self._memories.search(query, limit=limit, scopes=self._scopes, filters=filters).results

    def _observe(self, messages: list[dict[str, Any]]) -> None:
        self._whole.sessions.observe(messages, session_id=self._session_id, **self._owner)

    def _logged(self, message: Message) -> dict[str, Any]:
        texts = [block["text"] for block in message["content"] if "text" in block]
        logged = {"role": message["role"], "content": "\n\n".join(texts)}
        if "tracking_id" in message:
            logged["id"] = f"{self._session_id}:{message['tracking_id']}"
        return logged

    def _must_be_writable(self) -> None:
        if not self.writable:
            raise InvalidInput("writable", "is false: create the store with writable=True")


def _check_number(results: int | None) -> None:
    if results is not None and results < 1:
        raise InvalidInput("max_search_results", "must be at least 1")


def _entry(hit: Hit) -> MemoryEntry:
    memory = hit.memory
    own = {"id": memory.id, "kind": memory.kind, "score": hit.score, "at": memory.occurred_at.isoformat()}
    return MemoryEntry(content=memory.content, metadata={**memory.metadata, **own})
