"""The blocking client for conversations of a server: the interface that `memoranda.open` returns for a folder."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from memoranda.client.wire import Wire, query_of
from memoranda.responses.conversations import Conversation
from memoranda.responses.values import Item, Summary
from memoranda.store.operations import segment
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

    def update(self, id: str, *, metadata: dict[str, str] | None) -> Conversation:
        """See `Conversations.update`."""
        return _conversation(self._wire.call("POST", _path(id), body={"metadata": metadata}))

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
        return _page(self._wire.call("GET", f"{_path(id)}/items", query=query_of(asked)))

    def add_items(self, id: str, items: Sequence[Item], *, include: Sequence[str] = ()) -> Listed[Item]:
        """See `Conversations.add_items`."""
        query = query_of({"include": [*include] or None})
        return _page(self._wire.call("POST", f"{_path(id)}/items", body={"items": items}, query=query))

    def get_item(self, id: str, item_id: str, *, include: Sequence[str] = ()) -> Item:
        """See `Conversations.get_item`."""
        query = query_of({"include": [*include] or None})
        item: Item = msgspec.json.decode(self._wire.call("GET", _item_path(id, item_id), query=query))
        return item

    def delete_item(self, id: str, item_id: str) -> Conversation:
        """See `Conversations.delete_item`."""
        return _conversation(self._wire.call("DELETE", _item_path(id, item_id)))


def _path(id: str) -> str:
    return f"{AT}/{segment(id)}"


def _item_path(id: str, item_id: str) -> str:
    return f"{_path(id)}/items/{segment(item_id)}"


def _page(body: bytes) -> Listed[Item]:
    page = msgspec.json.decode(body, type=Listed[Item])
    return msgspec.structs.replace(page, first_id=page.first_id or None, last_id=page.last_id or None)


def _conversation(body: bytes) -> Conversation:
    sent = msgspec.json.decode(body, type=_SentConversation)
    return Conversation(
        id=sent.id,
        metadata=sent.metadata,
        user_id=None,
        created_at=datetime.fromtimestamp(sent.created_at, UTC),
        summary=sent.extensions.get("conversation_summary"),
    )
