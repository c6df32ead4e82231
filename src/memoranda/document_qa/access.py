"""The user of a question: a member itself, or the user that a service or an admin names."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from memoranda.errors import Forbidden
from memoranda.storage.sql.base import Connection
from memoranda.store.access import sees_all
from memoranda.store.ids import nameable
from memoranda.store.validation import check_name
from memoranda.text.hashing import digest
from memoranda.types import Subject

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def acting(subject: Subject, user_id: str | None) -> Subject:
    """Return the subject that acts for `user_id`; the caller itself if none is named. What is done for a user is bound
    to that user, whichever key asks for it.

    Raises:
        Forbidden: the key is bound to another user.
        InvalidInput: the name is invalid.
    """
    check_name(user_id, "userId")
    if user_id is None or user_id == subject.user_id:
        return subject
    if not sees_all(subject):
        raise Forbidden(f"userId: this key asks as {subject.user_id!r}; leave userId out")
    return replace(subject, user_id=user_id, role="service")


def owner_of(subject: Subject) -> str:
    """Return the owner of documents and memories as a key: the id of the user, or '' without one."""
    return subject.user_id or ""


def is_own(subject: Subject, user_id: str | None) -> bool:
    """Return True if the subject owns what belongs to `user_id` (None: no user)."""
    return user_id == subject.user_id


def sees(subject: Subject, user_id: str | None) -> bool:
    """Return True if the subject sees what belongs to `user_id`: its own, or all of the tenant's for an admin without a
    user."""
    return is_own(subject, user_id) or (subject.role == "admin" and subject.user_id is None)


def whose(subject: Subject, alias: str) -> tuple[str, list[Any]]:
    """Return the condition `sees` for the rows of a table with `user_id`, as SQL."""
    if subject.user_id is not None:
        return f"{alias}.user_id = ?", [subject.user_id]
    return ("TRUE", []) if subject.role == "admin" else (f"{alias}.user_id IS NULL", [])


# --- sessions that callers name ----------------------------------------------------------------------


def is_uuid(session_id: str) -> bool:
    """Return True if an id is a UUID: a caller may begin a session with one."""
    return _UUID.fullmatch(session_id) is not None


def stored_id_of(c: Connection, subject: Subject, session_id: str) -> str:
    """Return the id under which the session is stored that the subject's user calls `session_id`. If another user's
    session has that UUID already, it is another one, which does not reveal that session."""
    if not is_uuid(session_id):
        return session_id
    apart = session_id + _mark(subject)
    known = c.one("session_known", [subject.tenant_id, session_id])
    if known is not None:
        return session_id if is_own(subject, known[0]) else apart
    return session_id if c.one("session_known", [subject.tenant_id, apart]) is None else apart


def seen_as(c: Connection, subject: Subject, session_id: str) -> str:
    """Return the id under which a session is stored that the subject reads: an admin without a user sees those of
    all."""
    if not is_uuid(session_id) or not nameable(session_id):
        return session_id
    where, params = whose(subject, "a")
    sql = f"SELECT 1 FROM ask_sessions a WHERE a.tenant_id = ? AND a.id = ? AND {where}"
    known = c.select(sql, [subject.tenant_id, session_id, *params])
    return session_id if known else session_id + _mark(subject)


def ids_of(subject: Subject, session_id: str) -> list[str]:
    """Return the ids under which a session may be stored that the subject's user calls `session_id`."""
    return [session_id, session_id + _mark(subject)] if is_uuid(session_id) else [session_id]


def called(subject: Subject, session_id: str) -> str:
    """Return what the subject's user calls a session that is stored under this id."""
    own = session_id.removesuffix(_mark(subject))
    return own if is_uuid(own) else session_id


def _mark(subject: Subject) -> str:
    return f".{digest(owner_of(subject))[:16]}"
