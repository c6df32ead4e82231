"""The operations on sessions and messages that servers, clients and interfaces have, with what they read and answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import Message, NewMessage, NewSummary, Observed, Status
from memoranda.store.operations import Deleted, EmptyBody, Operation, completed_texts
from memoranda.types import Id, configured
from memoranda.validation.constraints import Constraint, OneOf


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

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a body for the arguments of a call: a text is a message."""
        said = values["messages"]
        return values | {
            "messages": completed_texts([said] if isinstance(said, str | NewMessage | Mapping) else said)
        }


class ObserveBody(SaidBody, kw_only=True, forbid_unknown_fields=True):
    """What was said in a channel (`channel_id`), or in a session of a name (`session_id`)."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        OneOf(("channel_id", "session_id"), "name the channel it was said in, or a session_id"),
    )
    session_id: Id | None = None


class StatusQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The statuses of sessions; the parameter may be repeated."""

    status: list[Status] | None = None

    @classmethod
    def completed(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a query for the arguments of a call: one status is a list of it."""
        status = values.get("status")
        listed = [status] if isinstance(status, str) else status and [*status]
        return values | {"status": listed}


class ObservedMessage(Message, kw_only=True):
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

    @classmethod
    def of(cls, result: Sequence[Observed], given: Mapping[str, Any]) -> ObservedList:
        """Return the messages with their counts."""
        created = sum(one.created for one in result)
        return cls(
            data=[_observed(one) for one in result],
            first_id=result[0].message.id,
            last_id=result[-1].message.id,
            created=created,
            present=len(result) - created,
        )

    def result(self, given: Mapping[str, Any]) -> list[Observed]:
        """Return what became of each message."""
        return [Observed(message=_message(one), created=one.created) for one in self.data]


class DeletedSession(Deleted, kw_only=True, tag_field="object", tag="session.deleted"):
    """The session that is gone, with what was said in it."""


class DeletedMessage(Deleted, kw_only=True, tag_field="object", tag="message.deleted"):
    """The message that is gone."""


def _observed(one: Observed) -> ObservedMessage:
    fields = {name: getattr(one.message, name) for name in Message.__struct_fields__}
    return ObservedMessage(**fields, created=one.created)


def _message(one: ObservedMessage) -> Message:
    return Message(**{name: getattr(one, name) for name in Message.__struct_fields__})


AT = "/v1/sessions"
ONE = f"{AT}/{{session_id}}"
SAID = f"{ONE}/messages"
MESSAGE = f"{SAID}/{{message_id}}"
NOT_OFFERED = ("response_id",)
"""Parameters that stay with the server's own responses."""
OPERATIONS = (
    Operation(
        Sessions.observe,
        "POST",
        "/v1/messages",
        "write",
        ObserveBody,
        ObservedList,
        local=NOT_OFFERED,
        long=True,
    ),
    Operation(Sessions.list, "GET", AT, "read", StatusQuery),
    Operation(Sessions.get, "GET", ONE, "read", command="show"),
    Operation(Sessions.delete, "DELETE", ONE, "write", shows=DeletedSession, long=True, command="delete"),
    Operation(Sessions.close, "POST", f"{ONE}/close", "write", command="close"),
    Operation(
        Sessions.summarize, "POST", f"{ONE}/summarize", "write", EmptyBody, long=True, command="summarize"
    ),
    Operation(Sessions.save_summary, "POST", f"{ONE}/summary", "write", NewSummary),
    Operation(Sessions.fail_summary, "POST", f"{ONE}/summary/failure", "write"),
    Operation(Sessions.observe, "POST", SAID, "write", SaidBody, ObservedList, local=NOT_OFFERED, long=True),
    Operation(Sessions.messages, "GET", SAID, "read"),
    Operation(Sessions.update_message, "POST", MESSAGE, "write", command="update-message"),
    Operation(
        Sessions.delete_message, "DELETE", MESSAGE, "write", shows=DeletedMessage, command="delete-message"
    ),
)
