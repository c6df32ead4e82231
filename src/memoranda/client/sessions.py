"""The blocking client for sessions of a server: the interface that `sync` has for a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from typing_extensions import Unpack

from memoranda.client.wire import Wire, query_of
from memoranda.sessions.sessions import Said
from memoranda.sessions.values import (
    Around,
    Message,
    MessagePage,
    NewMessage,
    NewSummary,
    Observed,
    Session,
    SessionPage,
    SummaryFields,
)
from memoranda.store.operations import segment
from memoranda.validation import merged

AT = "/v1/sessions"


class _ObservedMessage(Message, kw_only=True):
    """An observed message as the server returns it."""

    created: bool


class _Many(msgspec.Struct):
    """The answer to observed messages."""

    data: list[_ObservedMessage]


class ClientSessions:
    """The sessions of a server, and their messages."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def observe(self, messages: Said, **place: Unpack[Around]) -> list[Observed]:
        """See `Sessions.observe`; `response_id` stays with the server's own responses."""
        if isinstance(messages, str | NewMessage | Mapping):
            messages = [messages]
        items = [{"content": message} if isinstance(message, str) else message for message in messages]
        given = {name: value for name, value in place.items() if value is not msgspec.UNSET}
        body: dict[str, Any] = {"messages": items, **given}
        answer = msgspec.json.decode(self._wire.call("POST", "/v1/messages", body=body), type=_Many)
        return [Observed(message=_message(observed), created=observed.created) for observed in answer.data]

    def get(self, id: str) -> Session:
        """See `Sessions.get`."""
        return msgspec.json.decode(self._wire.call("GET", _path(id)), type=Session)

    def list(
        self,
        *,
        channel_id: str | None = None,
        status: str | Sequence[str] | None = None,
        participant: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "desc",
    ) -> SessionPage:
        """See `Sessions.list`."""
        asked = {
            "channel_id": channel_id,
            "status": [status] if isinstance(status, str) else None if status is None else [*status],
            "participant": participant,
            "since": since,
            "until": until,
            "limit": limit,
            "after": after,
            "before": before,
            "order": order,
        }
        return msgspec.json.decode(self._wire.call("GET", AT, query=query_of(asked)), type=SessionPage)

    def messages(
        self,
        id: str,
        *,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "asc",
    ) -> MessagePage:
        """See `Sessions.messages`."""
        asked = {"limit": limit, "after": after, "before": before, "order": order}
        answer = self._wire.call("GET", f"{_path(id)}/messages", query=query_of(asked))
        return msgspec.json.decode(answer, type=MessagePage)

    def close(self, id: str) -> Session:
        """See `Sessions.close`."""
        return msgspec.json.decode(self._wire.call("POST", f"{_path(id)}/close"), type=Session)

    def summarize(self, id: str) -> Session:
        """See `Sessions.summarize`."""
        return msgspec.json.decode(self._wire.call("POST", f"{_path(id)}/summarize"), type=Session)

    def save_summary(self, id: str, summary: str | NewSummary, **fields: Unpack[SummaryFields]) -> Session:
        """See `Sessions.save_summary`."""
        body = summary if isinstance(summary, NewSummary) else merged("summary", summary, {**fields})
        return msgspec.json.decode(self._wire.call("POST", f"{_path(id)}/summary", body=body), type=Session)

    def fail_summary(self, id: str, reason: str) -> Session:
        """See `Sessions.fail_summary`."""
        answer = self._wire.call("POST", f"{_path(id)}/summary/failure", body={"reason": reason})
        return msgspec.json.decode(answer, type=Session)

    def update_message(self, session_id: str, id: str, content: str) -> Message:
        """See `Sessions.update_message`."""
        answer = self._wire.call("POST", _message_path(session_id, id), body={"content": content})
        return msgspec.json.decode(answer, type=Message)

    def delete_message(self, session_id: str, id: str) -> None:
        """See `Sessions.delete_message`."""
        self._wire.call("DELETE", _message_path(session_id, id))

    def delete(self, id: str) -> None:
        """See `Sessions.delete`."""
        self._wire.call("DELETE", _path(id))


def _message(observed: _ObservedMessage) -> Message:
    return Message(**{name: getattr(observed, name) for name in Message.__struct_fields__})


def _path(id: str) -> str:
    return f"{AT}/{segment(id)}"


def _message_path(session_id: str, id: str) -> str:
    return f"{_path(session_id)}/messages/{segment(id)}"
