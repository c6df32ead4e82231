"""Conversations at a server."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from memoranda.client.remote import Remote
from memoranda.client.wire import query_of
from memoranda.responses.conversations import Conversation, Conversations
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


class RemoteConversations(Remote, Conversations):
    """The conversations of a server; see `conversations.Conversations`. Their `user_id` is not sent, and None."""

    async def create(
        self, items: Sequence[Item] | None = None, *, metadata: dict[str, str] | None = None
    ) -> Conversation:
        """See `Conversations.create`."""
        body: dict[str, Any] = {"items": items, "metadata": metadata}
        return _conversation(await self._wire.call("POST", AT, body=body))

    async def get(self, id: str) -> Conversation:
        """See `Conversations.get`."""
        return _conversation(await self._wire.call("GET", _path(id)))

    async def update(self, id: str, *, metadata: dict[str, str] | None) -> Conversation:
        """See `Conversations.update`."""
        return _conversation(await self._wire.call("POST", _path(id), body={"metadata": metadata}))

    async def delete(self, id: str) -> None:
        """See `Conversations.delete`."""
        await self._wire.call("DELETE", _path(id))

    async def items(
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
        return _page(await self._wire.call("GET", f"{_path(id)}/items", query=query_of(asked)))

    async def add_items(self, id: str, items: Sequence[Item], *, include: Sequence[str] = ()) -> Listed[Item]:
        """See `Conversations.add_items`."""
        query = query_of({"include": [*include] or None})
        return _page(await self._wire.call("POST", f"{_path(id)}/items", body={"items": items}, query=query))

    async def get_item(self, id: str, item_id: str, *, include: Sequence[str] = ()) -> Item:
        """See `Conversations.get_item`."""
        query = query_of({"include": [*include] or None})
        item: Item = msgspec.json.decode(await self._wire.call("GET", _item_path(id, item_id), query=query))
        return item

    async def delete_item(self, id: str, item_id: str) -> Conversation:
        """See `Conversations.delete_item`."""
        return _conversation(await self._wire.call("DELETE", _item_path(id, item_id)))


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
