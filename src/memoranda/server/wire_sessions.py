"""What `/v1/messages` and `/v1/sessions` take and answer: library values with their `object`."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.sessions.values import Message, NewMessage, NewSummary, Session
from memoranda.types import Content, Id, Moment, configured, some_text
from memoranda.validation.constraints import Constraint, OneOf

Limit = Annotated[int, Meta(ge=1, le=1_000)]


class SaidBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What was said in a session. `user_id` holds for messages that name none; `extraction` says whether facts are
    taken out of it, null leaves that to the configuration."""

    messages: Annotated[
        list[NewMessage],
        Meta(min_length=1, max_length=100_000, extra_json_schema=configured(maxItems="limits.max_batch")),
    ]
    channel_id: Id | None = None
    user_id: Id | None | UnsetType = UNSET
    agent_id: Id | None = None
    extraction: bool | None = None


class ObserveBody(SaidBody, kw_only=True, forbid_unknown_fields=True):
    """What was said in a channel (`channel_id`), or in a session of a name (`session_id`)."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        OneOf(("channel_id", "session_id"), "name the channel it was said in, or a session_id"),
    )
    session_id: Id | None = None


class MessageChangeBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The text that a message has from now on."""

    content: Content


class SummarizeBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Nothing: a summary that was made elsewhere goes to `/v1/sessions/{session_id}/summary`."""


class SummaryBody(NewSummary, kw_only=True, forbid_unknown_fields=True):
    """A summary that was made elsewhere."""


class FailureBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Why a summary could not be made elsewhere."""

    reason: Annotated[str, some_text(10_000)]


class SessionsQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of sessions: of a channel, of a status (may be repeated), in which a user spoke, that reach beyond
    `since` and began before `until`."""

    channel_id: str | None = None
    status: list[Literal["open", "closed", "summarized", "failed"]] | None = None
    participant: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: Limit = 20
    after: str | None = None
    before: str | None = None
    order: Literal["asc", "desc"] = "desc"


class MessagesQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of what was said in a session."""

    limit: Limit = 20
    after: str | None = None
    before: str | None = None
    order: Literal["asc", "desc"] = "asc"


class SessionObject(Session, kw_only=True, tag_field="object", tag="session"):
    """A session, and what was made of it."""


class SessionList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of sessions; `after=last_id` asks for the next one."""

    data: list[SessionObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedSession(msgspec.Struct, kw_only=True, tag_field="object", tag="session.deleted"):
    """The session that is gone, with what was said in it."""

    id: str
    deleted: bool = True


class MessageObject(Message, kw_only=True, tag_field="object", tag="message"):
    """Something that was said."""


class ObservedMessage(Message, kw_only=True, tag_field="object", tag="message"):
    """Something that was said, as it is kept; `created` is false when it was there already."""

    created: bool


class ObservedList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """What was sent, in its order; how many were new, and how many were there already."""

    data: list[ObservedMessage]
    first_id: str | None
    last_id: str | None
    has_more: bool = False
    created: int
    present: int


class MessageList(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """A page of messages; `after=last_id` asks for the next one."""

    data: list[MessageObject]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DeletedMessage(msgspec.Struct, kw_only=True, tag_field="object", tag="message.deleted"):
    """The message that is gone."""

    id: str
    deleted: bool = True
