"""The conversation of a question, from the message log: recent messages and a running summary."""

from __future__ import annotations

from typing import Literal

import msgspec

from memoranda.clock import micros, now_micros
from memoranda.contexts.values import ContextQuery, RecentMessage
from memoranda.sessions.records import MessageRow, SessionRow, message_page, sees, session_of
from memoranda.storage.sql.base import Connection
from memoranda.store.access import sees_all
from memoranda.store.core import Core
from memoranda.types import MACHINES, Subject

SILENT = frozenset({"developer", "function", "tool"})
"""Roles whose messages are not shown."""


def continued(core: Core, subject: Subject, asked: ContextQuery) -> ContextQuery:
    """Return the query, which names a session or a channel, with the last messages and the summary of this session, or
    of the open one of the channel, if the subject sees it and the query has none of its own."""
    most = core.config.sessions.recent_messages
    given = asked.recent is not None and asked.summary is not None
    if given or not most:
        return asked

    def read(c: Connection) -> ContextQuery:
        session = _session(c, subject, asked)
        if session is None:
            return asked
        until = None if asked.as_of is None else micros(asked.as_of)
        rows, _ = message_page(
            c,
            subject.tenant_id,
            session.id,
            limit=most,
            cursor=None,
            backwards=False,
            descending=True,
            until=until,
        )
        said = [_said(row) for row in reversed(rows)]
        return msgspec.structs.replace(
            asked,
            recent=[message for message in said if message is not None]
            if asked.recent is None
            else asked.recent,
            summary=session.summary if asked.summary is None and until is None else asked.summary,
        )

    return core.store.db.read(read, subject.tenant_id)


def _session(c: Connection, subject: Subject, asked: ContextQuery) -> SessionRow | None:
    if asked.session_id:
        session = session_of(c, subject.tenant_id, asked.session_id)
        return session if session is not None and sees(subject, session) else None
    place = [subject.tenant_id, asked.channel_id, now_micros()]
    rows = [c.one("session_before", [*place, 0, None])]  # a shared one
    if not sees_all(subject):
        rows.append(c.one("session_before", [*place, 1, subject.user_id]))
    sessions = [SessionRow._make(row) for row in rows if row is not None]
    seen = [session for session in sessions if session.status == "open" and sees(subject, session)]
    return max(seen, key=lambda session: session.ended_at, default=None)


def _said(row: MessageRow) -> RecentMessage | None:
    role = row.role.lower()
    if role in SILENT:
        return None
    spoken: Literal["user", "assistant", "system"] = (
        "system" if role == "system" else "assistant" if role in MACHINES else "user"
    )
    name = row.speaker or (row.user_id if row.personal else None)
    return RecentMessage(role=spoken, content=row.content, id=row.id, name=name)
