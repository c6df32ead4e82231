"""The blocking client for conversations of a server: the interface that `memoranda.open` returns for a folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from memoranda.client.wire import Wire, query_of
from memoranda.responses.conversations import Conversation
from memoranda.responses.values import Item, Summary
from memoranda.store.paging import Listed

AT = "/v1/conversations"


class _SentConversation(msgspec.Struct):
    """A conversation as the server returns it."""

    id: str
    created_at: int
    metadata: dict[str, str]
    extensions: dict[str, Summary]


class ClientConversations:
    """The conversations of a server; see `conversations.Conversations`. Their `user_id` is not sent, and None."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def create(
        self, items: Sequence[Item] | None = None, *, metadata: dict[str, str] | None = None
    ) -> Conversation:
        """See `Conversations.create`."""
        body: dict[str, Any] = {"items": items, "metadata": metadata}
        return _conversation(self._wire.call("POST", AT, body=body))

    def get(self, id: str) -> Conversation:
        """See `Conversations.get`."""
        return _conversation(self._wire.call("GET", _path(id)))

    def delete(self, id: str) -> None:
        """See `Conversations.delete`."""
        self._wire.call("DELETE", _path(id))

    def items(
        self,
        id: str,
        *,
        limit: int = 20,
        after: str | None = None,
        order: str = "desc",
        include: Sequence[str] = (),
    ) -> Listed[Item]:
        """See `Conversations.items`."""
        asked = {"limit": limit, "after": after, "order": order, "include": [*include] or None}
        answer = self._wire.call("GET", f"{_path(id)}/items", query=query_of(asked))
        page = msgspec.json.decode(answer, type=Listed[Item])
        return msgspec.structs.replace(page, first_id=page.first_id or None, last_id=page.last_id or None)


def _path(id: str) -> str:
    return f"{AT}/{quote(id, safe='')}"


def _conversation(body: bytes) -> Conversation:
    sent = msgspec.json.decode(body, type=_SentConversation)
    return Conversation(
        id=sent.id,
        metadata=sent.metadata,
        user_id=None,
        created_at=datetime.fromtimestamp(sent.created_at, UTC),
        summary=sent.extensions.get("conversation_summary"),
    )
