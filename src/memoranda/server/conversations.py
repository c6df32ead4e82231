"""`/v1/conversations`: stored conversations and their items."""

from __future__ import annotations

from memoranda.responses.conversations import Conversation
from memoranda.responses.values import Item
from memoranda.server import wire_conversations as wire
from memoranda.server.route import Call, Route
from memoranda.store.paging import Listed


def _shown(conversation: Conversation) -> wire.ConversationObject:
    return wire.ConversationObject(
        id=conversation.id,
        created_at=int(conversation.created_at.timestamp()),
        metadata=conversation.metadata,
        extensions={} if conversation.summary is None else {"conversation_summary": conversation.summary},
    )


def _page(listed: Listed[Item]) -> wire.ConversationItemPage:
    return wire.ConversationItemPage(
        data=listed.data,
        first_id=listed.first_id or "",
        last_id=listed.last_id or "",
        has_more=listed.has_more,
    )


async def create(call: Call[wire.ConversationBody, None]) -> wire.ConversationObject:
    body = call.body
    return _shown(await call.workspace.conversations.create(body.items, metadata=body.metadata))


async def get(call: Call[None, None]) -> wire.ConversationObject:
    return _shown(await call.workspace.conversations.get(call.id))


async def update(call: Call[wire.ConversationChangeBody, None]) -> wire.ConversationObject:
    return _shown(await call.workspace.conversations.update(call.id, metadata=call.body.metadata))


async def delete(call: Call[None, None]) -> wire.DeletedConversation:
    await call.workspace.conversations.delete(call.id)
    return wire.DeletedConversation(id=call.id)


async def add_items(call: Call[wire.ItemsBody, wire.IncludeQuery]) -> wire.ConversationItemPage:
    include = call.query.include or ()
    return _page(await call.workspace.conversations.add_items(call.id, call.body.items, include=include))


async def items(call: Call[None, wire.ConversationItemsQuery]) -> wire.ConversationItemPage:
    query = call.query
    listed = await call.workspace.conversations.items(
        call.id, limit=query.limit, after=query.after, order=query.order, include=query.include or ()
    )
    return _page(listed)


async def get_item(call: Call[None, wire.IncludeQuery]) -> Item:
    ids = call.parameters
    include = call.query.include or ()
    return await call.workspace.conversations.get_item(
        ids["conversation_id"], ids["item_id"], include=include
    )


async def delete_item(call: Call[None, None]) -> wire.ConversationObject:
    ids = call.parameters
    return _shown(await call.workspace.conversations.delete_item(ids["conversation_id"], ids["item_id"]))


AT = "/v1/conversations"
ONE = f"{AT}/{{conversation_id}}"
ITEM = f"{ONE}/items/{{item_id}}"
SHOWN = wire.ConversationObject
ROUTES = (
    Route("POST", AT, "Make a conversation", create, "write", SHOWN, wire.ConversationBody),
    Route("GET", ONE, "One conversation", get, "read", SHOWN),
    Route("POST", ONE, "Change a conversation", update, "write", SHOWN, wire.ConversationChangeBody),
    Route("DELETE", ONE, "Delete a conversation", delete, "write", wire.DeletedConversation),
    Route(
        "POST", f"{ONE}/items", "Add items to a conversation", add_items, "write", wire.ConversationItemPage,
        wire.ItemsBody, wire.IncludeQuery,
    ),
    Route(
        "GET", f"{ONE}/items", "A page of a conversation", items, "read", wire.ConversationItemPage,
        query=wire.ConversationItemsQuery,
    ),
    Route("GET", ITEM, "One item of a conversation", get_item, "read", Item, query=wire.IncludeQuery),
    Route("DELETE", ITEM, "Take an item out of a conversation", delete_item, "write", SHOWN),
)  # fmt: skip
