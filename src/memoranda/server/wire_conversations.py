"""What `/v1/conversations` takes and answers: OpenAI's shapes. Unknown fields are ignored, as OpenAI's clients expect.

Times are whole seconds since 1970."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memoranda.knowledge.checks import StoreMetadata
from memoranda.responses.conversations import MAX_ITEMS
from memoranda.responses.items import SentItem
from memoranda.responses.values import Item, Summary

Limit = Annotated[int, Meta(ge=1, le=100)]
FewItems = Annotated[
    list[SentItem], Meta(max_length=MAX_ITEMS, description="items as `/v1/responses` takes them in `input`")
]
SomeItems = Annotated[
    list[SentItem],
    Meta(min_length=1, max_length=MAX_ITEMS, description="items as `/v1/responses` takes them in `input`"),
]


class ConversationBody(msgspec.Struct, kw_only=True):
    """A conversation to be made, and what it begins with."""

    items: FewItems | None = None
    metadata: StoreMetadata | None = None


class ConversationChangeBody(msgspec.Struct, kw_only=True):
    """The metadata that a conversation has from now on; null empties it."""

    metadata: StoreMetadata | None


class ItemsBody(msgspec.Struct, kw_only=True):
    """Items to be added at the end."""

    items: SomeItems


class IncludeQuery(msgspec.Struct, kw_only=True):
    """What items are shown with: `file_search_call.results`."""

    include: list[str] | None = None


class ConversationItemsQuery(msgspec.Struct, kw_only=True):
    """A page of the items in a conversation."""

    limit: Limit = 20
    after: str | None = None
    order: Literal["asc", "desc"] = "desc"
    include: list[str] | None = None


class ConversationObject(msgspec.Struct, kw_only=True, tag_field="object", tag="conversation"):
    """A conversation. `extensions.conversation_summary` is a summary of its beginning, if there is one."""

    id: str
    created_at: int
    metadata: dict[str, str]
    extensions: dict[str, Summary] = {}


class DeletedConversation(msgspec.Struct, kw_only=True, tag_field="object", tag="conversation.deleted"):
    """The conversation that is gone."""

    id: str
    deleted: bool = True


class ConversationItemPage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """Items of a conversation; `after=last_id` asks for the next page. Of no items the ids are empty."""

    data: list[Item]
    first_id: str
    last_id: str
    has_more: bool
