"""Messages and sessions as rows and as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from memoranda.clock import ZONE, local, moment
from memoranda.errors import Forbidden, InvalidInput, NotFound
from memoranda.sessions.values import Message, Session, author_of, is_person, label_of, name_of
from memoranda.storage.sql.base import Connection
from memoranda.store.access import owns, sees_all
from memoranda.store.ids import nameable
from memoranda.text.stored import compact_json
from memoranda.types import Subject

ENOUGH = 1_000
"""The most messages of a session that are read at once."""
ADMINS = "an admin, or a service key without a user,"
"""Who may change what belongs to another user, in an error."""


class MessageRow(NamedTuple):
    """One row of `messages`. Times are microseconds since 1970."""

    tenant_id: str
    seq: int
    id: str
    key: str
    session_id: str
    channel_id: str | None
    user_id: str | None
    agent_id: str | None
    role: str
    speaker: str | None
    content: str
    tokens: int
    metadata: str
    response_id: str | None
    indexed: int
    extract: int
    occurred_at: int
    created_at: int

    @property
    def name(self) -> str:
        """The name of the speaker, see `name_of`."""
        return name_of(self.speaker, self.user_id, self.role)

    @property
    def label(self) -> str:
        """The name as a prompt shows it, see `label_of`."""
        return label_of(self.speaker, self.user_id, self.role)

    @property
    def author(self) -> str | None:
        """The name of the person who sent it, if known, see `author_of`."""
        return author_of(self.speaker, self.role)

    @property
    def personal(self) -> bool:
        """Return True if a person sent it, not an assistant or a tool."""
        return is_person(self.role)


class SessionRow(NamedTuple):
    """One row of `sessions`. Lists are JSON, times microseconds since 1970."""

    tenant_id: str
    id: str
    seq: int
    rev: int
    named: int
    private: int
    channel_id: str | None
    user_id: str | None
    agent_id: str | None
    metadata: str
    started_at: int
    ended_at: int
    last_seen_at: int
    due_at: int
    message_count: int
    participants: str
    users: str
    status: str
    summary: str | None
    topics: str
    decisions: str
    open_questions: str
    action_items: str
    entities: str
    summary_id: str | None
    summary_model: str | None
    summary_version: int | None
    summary_created_at: int | None
    summary_rev: int | None
    failure: str | None
    pending: int
    attempts: int
    next_try_at: int
    extraction: str
    facts_seq: int
    facts_rev: int
    facts_failure: str | None
    facts_attempts: int
    facts_next_try_at: int
    created_at: int
    updated_at: int


LISTS = ("topics", "decisions", "open_questions", "action_items", "entities")
_MESSAGES = f"SELECT {', '.join('m.' + name for name in MessageRow._fields)} FROM messages m"
_SESSIONS = f"SELECT {', '.join('s.' + name for name in SessionRow._fields)} FROM sessions s"


def texts_of(encoded: str) -> list[str]:
    """Return a list of strings from its JSON in a row."""
    return [] if encoded == "[]" else list(msgspec.json.decode(encoded))


def to_message(row: MessageRow) -> Message:
    """Return the message as the caller sees it, at the offset from UTC that its time was given with."""
    metadata = {} if row.metadata == "{}" else msgspec.json.decode(row.metadata)
    zone = {key: metadata.pop(key) for key in list(metadata) if key.startswith("$")}.get(ZONE)
    return Message(
        id=row.id,
        session_id=row.session_id,
        channel_id=row.channel_id,
        user_id=row.user_id,
        agent_id=row.agent_id,
        role=row.role,
        speaker=row.speaker,
        content=row.content,
        tokens=row.tokens,
        metadata=metadata,
        response_id=row.response_id,
        indexed=bool(row.indexed),
        occurred_at=moment(row.occurred_at) if zone is None else local(moment(row.occurred_at), zone),
        created_at=moment(row.created_at),
    )


def to_session(row: SessionRow) -> Session:
    """Return the session as the caller sees it."""
    summarized_at = row.summary_created_at
    return Session(
        id=row.id,
        named=bool(row.named),
        channel_id=row.channel_id,
        user_id=row.user_id,
        agent_id=row.agent_id,
        metadata=msgspec.json.decode(row.metadata),
        started_at=moment(row.started_at),
        ended_at=moment(row.ended_at),
        message_count=row.message_count,
        participants=texts_of(row.participants),
        status=row.status,  # type: ignore[arg-type]
        summary=row.summary,
        topics=texts_of(row.topics),
        decisions=texts_of(row.decisions),
        open_questions=texts_of(row.open_questions),
        action_items=texts_of(row.action_items),
        entities=texts_of(row.entities),
        summary_id=row.summary_id,
        summary_model=row.summary_model,
        summary_version=row.summary_version,
        summary_created_at=None if summarized_at is None else moment(summarized_at),
        failure=row.failure,
        attempts=row.attempts,
        extraction=row.extraction,  # type: ignore[arg-type]
        facts_failure=row.facts_failure,
        created_at=moment(row.created_at),
        updated_at=moment(row.updated_at),
    )


# --- messages --------------------------------------------------------------------------------------


def messages_by_id(c: Connection, tenant: str, ids: Iterable[str]) -> dict[str, MessageRow]:
    """Return the existing messages of these ids, by id."""
    listed = json.dumps([id_ for id_ in ids if nameable(id_)])
    return {row[2]: MessageRow._make(row) for row in c.all("messages_by_id", [tenant, listed])}


def messages_of(
    c: Connection, tenant: str, session_id: str, first: int = ENOUGH, last: int = 0
) -> list[MessageRow]:
    """Return the messages of a session, in order: of a long one its `first` and its `last` messages."""
    rows = [MessageRow._make(row) for row in c.all("first_messages", [tenant, session_id, first])]
    if len(rows) < first or not last:
        return rows
    ends = [MessageRow._make(row) for row in c.all("last_messages", [tenant, session_id, last])]
    there = {row.seq for row in rows}
    return rows + [row for row in reversed(ends) if row.seq not in there]


def messages_to_learn_from(
    c: Connection, tenant: str, session_id: str, after: int = 0, limit: int = ENOUGH
) -> list[MessageRow]:
    """Return the messages of a session from which facts may be extracted, by request or by switch, in order of arrival,
    beginning after the one at `after`."""
    values = [tenant, session_id, after, limit]
    return [MessageRow._make(row) for row in c.all("messages_to_learn_from", values)]


def message_page(
    c: Connection,
    tenant: str,
    session_id: str,
    *,
    limit: int,
    cursor: MessageRow | None,
    backwards: bool,
    descending: bool,
    until: int | None = None,
) -> tuple[list[MessageRow], bool]:
    """Return the next `limit` messages of a session in order of time, and whether there are more; with `until`, in
    microseconds, those of that moment and before."""
    down = descending != backwards
    beyond = "" if cursor is None else f" AND (m.occurred_at, m.seq) {'<' if down else '>'} (?, ?)"
    beyond += "" if until is None else " AND m.occurred_at <= ?"
    values: list[Any] = [tenant, session_id]
    values += [] if cursor is None else [cursor.occurred_at, cursor.seq]
    values += [] if until is None else [until]
    way = "DESC" if down else "ASC"
    rows = c.select(
        f"{_MESSAGES} WHERE m.tenant_id = ? AND m.session_id = ?{beyond}"
        f" ORDER BY m.occurred_at {way}, m.seq {way} LIMIT ?",
        [*values, limit + 1],
    )
    page = rows[:limit][::-1] if backwards else rows[:limit]
    return [MessageRow._make(row) for row in page], len(rows) > limit


# --- sessions --------------------------------------------------------------------------------------


def session_of(c: Connection, tenant: str, id_: str) -> SessionRow | None:
    """Return the session of this id, without a check of access; None if there is none."""
    row = c.one("get_session", [tenant, id_]) if nameable(id_) else None
    return None if row is None else SessionRow._make(row)


def sessions_by_id(c: Connection, tenant: str, ids: Iterable[str]) -> dict[str, SessionRow]:
    """Return the existing sessions of these ids, by id."""
    listed = json.dumps([id_ for id_ in ids if nameable(id_)])
    return {row[1]: SessionRow._make(row) for row in c.all("sessions_by_id", [tenant, listed])}


def sees(subject: Subject, row: SessionRow) -> bool:
    """Return True if a session of the subject's tenant is its own, without a user, or one in which it has spoken."""
    if sees_all(subject) or row.user_id is None or row.user_id == subject.user_id:
        return True
    return subject.user_id in texts_of(row.users)


def session_seen(c: Connection, subject: Subject, id_: str) -> SessionRow:
    """Return a session that the subject may see.

    Raises:
        NotFound: there is none for this subject.
    """
    row = session_of(c, subject.tenant_id, id_)
    if row is None or not sees(subject, row):
        raise NotFound(f"no session {id_!r}")
    return row


def own_session(c: Connection, subject: Subject, id_: str) -> SessionRow:
    """Return a session that the subject may see, and whose summary it may write.

    Raises:
        NotFound: there is none for this subject.
        Forbidden: it is another user's.
    """
    row = session_seen(c, subject, id_)
    if not owns(subject, row.user_id):
        raise Forbidden(f"session {id_!r} is another user's; {ADMINS} may write its summary")
    return row


def erasable(subject: Subject, row: SessionRow) -> SessionRow:
    """Return the session.

    Raises:
        Forbidden: another user has spoken in it.
    """
    if any(not owns(subject, user) for user in texts_of(row.users)):
        raise Forbidden(
            f"another user has spoken in session {row.id!r}: delete your own messages in it; only {ADMINS} may"
            " delete the session"
        )
    return row


def own_message(c: Connection, subject: Subject, session_id: str, id_: str) -> MessageRow:
    """Return a message of a session that the subject may see, and which it may change.

    Raises:
        NotFound: there is none for this subject.
        Forbidden: it is another user's.
    """
    session_seen(c, subject, session_id)
    row = messages_by_id(c, subject.tenant_id, [id_]).get(id_)
    if row is None or row.session_id != session_id:
        raise NotFound(f"no message {id_!r} in session {session_id!r}")
    if not owns(subject, row.user_id):
        raise Forbidden(f"message {id_!r} is another user's; {ADMINS} may change or delete it")
    return row


def _names(column: str) -> str:
    """Return a condition: the JSON list of strings in `column` contains a name. It takes two values, see `_in_list`."""
    return f"(replace(s.{column}, ?, '') <> s.{column} OR replace(s.{column}, ?, '') <> s.{column})"


def _in_list(name: str) -> list[str]:
    """Return the two forms of a name in a JSON list of strings: as the first item, or after another."""
    return [f"[{compact_json(name)}", f",{compact_json(name)}"]


class Wanted(msgspec.Struct, kw_only=True):
    """Which sessions a listing is of; times are microseconds since 1970."""

    channel_id: str | None = None
    status: Sequence[str] = ()
    participant: str | None = None
    since: int | None = None
    until: int | None = None


def session_condition(subject: Subject, wanted: Wanted) -> tuple[str, list[Any]]:
    """Return a condition for the requested sessions that a subject sees, as SQL over `sessions s`."""
    parts: list[str] = ["s.tenant_id = ?"]
    values: list[Any] = [subject.tenant_id]
    if not sees_all(subject):
        parts.append(f"(s.user_id IS NULL OR s.user_id = ? OR {_names('users')})")
        values += [subject.user_id, *_in_list(subject.user_id or "")]
    if wanted.channel_id is not None:
        parts.append("s.channel_id = ?")
        values.append(wanted.channel_id)
    if wanted.status:
        parts.append(f"s.status IN ({', '.join('?' * len(wanted.status))})")
        values += wanted.status
    if wanted.participant is not None:
        parts.append(f"({_names('participants')} OR {_names('users')})")
        values += _in_list(wanted.participant) * 2
    if wanted.since is not None:
        parts.append("s.ended_at >= ?")
        values.append(wanted.since)
    if wanted.until is not None:
        parts.append("s.started_at < ?")
        values.append(wanted.until)
    return " AND ".join(parts), values


def session_page(
    c: Connection,
    subject: Subject,
    wanted: Wanted,
    *,
    limit: int,
    cursor: SessionRow | None,
    backwards: bool,
    descending: bool,
) -> tuple[list[SessionRow], bool]:
    """Return the next `limit` sessions in the order in which they began, and whether there are more."""
    where, values = session_condition(subject, wanted)
    down = descending != backwards
    if cursor is not None:
        where += f" AND s.seq {'<' if down else '>'} ?"
        values.append(cursor.seq)
    rows = c.select(
        f"{_SESSIONS} WHERE {where} ORDER BY s.seq {'DESC' if down else 'ASC'} LIMIT ?", [*values, limit + 1]
    )
    page = rows[:limit][::-1] if backwards else rows[:limit]
    return [SessionRow._make(row) for row in page], len(rows) > limit


def kept_owner(row: SessionRow, users: Sequence[str]) -> str | None:
    """Return the user of a session that has messages of `users`: the present one if it is among them, if there are
    none, or if the session is private; else the first."""
    return row.user_id if row.private or not users or row.user_id in users else users[0]


def set_session(c: Connection, row: SessionRow) -> None:
    """Write the fields of a session that change with its messages."""
    c.run(
        "set_session",
        [
            row.rev, row.channel_id, row.user_id, row.agent_id, row.started_at, row.ended_at, row.last_seen_at,
            row.due_at, row.message_count, row.participants, row.users, row.status, row.failure, row.pending,
            row.attempts, row.next_try_at, row.extraction, row.facts_seq, row.updated_at, row.tenant_id, row.id,
        ],
    )  # fmt: skip


def check_cursor(name: str, cursor: str, row: object | None) -> None:
    """Refuse a cursor without a row.

    Raises:
        InvalidInput: there is none.
    """
    if row is None:
        raise InvalidInput(
            name, f"{cursor!r} is not in this list, or was deleted; begin again without a cursor"
        )
