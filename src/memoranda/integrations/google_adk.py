"""Google's Agent Development Kit: `MemorandaMemoryService`, its long-term memory in Memoranda."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from memoranda.integrations.frameworks import require

require("google.adk.memory.base_memory_service", "google-adk")

from google.adk.memory.base_memory_service import (  # noqa: E402 - says first what is missing
    BaseMemoryService,
    SearchMemoryResponse,
)
from google.adk.memory.memory_entry import MemoryEntry  # noqa: E402
from google.genai import types  # noqa: E402

from memoranda.errors import InvalidInput, NotFound  # noqa: E402
from memoranda.integrations import entries  # noqa: E402
from memoranda.integrations.entries import Entries  # noqa: E402
from memoranda.integrations.products import Product, memories_of, whole_of  # noqa: E402
from memoranda.store.rows import memory_speaker  # noqa: E402
from memoranda.types import Hit  # noqa: E402

if TYPE_CHECKING:
    from google.adk.events.event import Event
    from google.adk.sessions.session import Session

USER = "user"
"""The author of a user's events, and the role of a user's messages."""
OWN = "google_adk."
"""Begins the metadata keys that are not the caller's."""


class MemorandaMemoryService(BaseMemoryService):
    """ADK's memory of sessions in a folder or on a server of Memoranda.

    The messages of events are stored in the product's message log, with its summaries and facts, for the user `user_id`
    and the agent `app_name`. An event is stored once, however often its session is added; one whose memory was deleted
    is not stored again. A search returns the `limit` best memories. Methods run in worker threads.
    """

    def __init__(self, product: Product, *, limit: int = 10) -> None:
        self._whole = whole_of(product)
        self._memories = memories_of(product)
        self._limit = limit

    async def add_session_to_memory(self, session: Session) -> None:
        """Stores the messages of a session."""
        await self.add_events_to_memory(
            app_name=session.app_name,
            user_id=session.user_id,
            events=session.events,
            session_id=session.id,
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Stores the messages of events; `custom_metadata` becomes metadata of the messages."""
        session = ":".join([app_name, user_id, session_id or "events"])
        said = [_message(event, session, dict(custom_metadata or {})) for event in events]
        await asyncio.to_thread(self._observe, app_name, user_id, session, said)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Stores entries verbatim: memories of kind `note`.

        Raises:
            InvalidInput: one has no text, or its metadata cannot be stored.
        """
        drafts = [
            {
                "content": _text(memory.content),
                "user_id": user_id,
                "agent_id": app_name,
                "metadata": _metadata({**(custom_metadata or {}), **memory.custom_metadata}, memory.author),
                **({} if memory.timestamp is None else {"occurred_at": _moment(memory.timestamp)}),
            }
            for memory in memories
        ]
        if drafts:
            await asyncio.to_thread(self._memories.add_many, drafts)

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """The memories of a user and an app that bear on a question, best first. The score is in their metadata."""
        if not query.strip():
            return SearchMemoryResponse()
        hits = await asyncio.to_thread(self._search, app_name, user_id, query)
        return SearchMemoryResponse(memories=[_entry(hit) for hit in hits])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Deletes a memory; does nothing if it does not exist, or belongs to another user or app."""
        if memory_id is not None:
            await asyncio.to_thread(self._delete, app_name, user_id, memory_id)

    def _observe(self, app: str, user: str, session: str, said: list[dict[str, Any]]) -> None:
        deleted = {
            memory.metadata["deleted"] for memory in self._deletions(user).listed(filters=_of(app, user))
        }
        new = [message for message in said if message["content"].strip() and message["id"] not in deleted]
        if new:
            self._whole.sessions.observe(new, session_id=session, user_id=user, agent_id=app)

    def _search(self, app: str, user: str, query: str) -> list[Hit]:
        result = self._memories.search(
            query, limit=self._limit, scopes=[f"user:{user}"], filters=_of(app, user)
        )
        return result.results

    def _delete(self, app: str, user: str, memory_id: str) -> None:
        try:
            memory = self._memories.get(memory_id)
        except NotFound:
            return
        if (memory.user_id, memory.agent_id) != (user, app):
            return
        deletion = {
            "id": entries.id_of("deleted", app, user, memory_id),
            "content": f"{memory_id} was deleted",
            "agent_id": app,
            "metadata": {"deleted": memory_id},
        }
        self._deletions(user).put([deletion], "memory_id")
        self._memories.delete(memory_id)

    def _deletions(self, user: str) -> Entries:
        """The ids of deleted memories, which are not written again."""
        return Entries(self._memories, "google-adk", user_id=user)


def _of(app: str, user: str) -> dict[str, Any]:
    return {"$agent_id": app, "$user_id": user}


def _message(event: Event, session: str, metadata: dict[str, Any]) -> dict[str, Any]:
    author = event.author or USER
    said = {
        "id": f"{session}:{event.id}",
        "role": USER if author == USER else "assistant",
        "content": _text(event.content),
        "occurred_at": datetime.fromtimestamp(event.timestamp, UTC),
        "metadata": metadata,
    }
    return said if author == USER else {**said, "speaker": author}


def _entry(hit: Hit) -> MemoryEntry:
    memory = hit.memory
    metadata = {name: value for name, value in memory.metadata.items() if not name.startswith(OWN)}
    return MemoryEntry(
        id=memory.id,
        content=types.Content(
            role=USER if memory.role in (None, USER) else "model", parts=[types.Part(text=memory.content)]
        ),
        author=memory.metadata.get(f"{OWN}author") or memory_speaker(memory),
        timestamp=memory.occurred_at.isoformat(),
        custom_metadata={**metadata, "kind": memory.kind, "score": hit.score},
    )


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content is not None else None) or []
    return "\n\n".join(part.text for part in parts if part.text and not part.thought)


def _metadata(given: Mapping[str, Any], author: str | None) -> dict[str, Any]:
    return dict(given) if author is None else {**given, f"{OWN}author": author}


def _moment(timestamp: str) -> datetime:
    try:
        return datetime.fromisoformat(timestamp)
    except ValueError as exc:
        raise InvalidInput("timestamp", f"{timestamp!r} is no moment as 2026-05-01T12:00:00Z") from exc
