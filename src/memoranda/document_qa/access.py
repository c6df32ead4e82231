"""For whom questions are asked: a member for itself, a service or an admin for the user it names."""

from __future__ import annotations

from typing import Any

from memoranda.errors import Forbidden
from memoranda.store.access import sees_all
from memoranda.store.validation import check_name
from memoranda.types import Subject


def acting(subject: Subject, user_id: str | None) -> Subject:
    """The subject that acts for `user_id`; the caller itself when none is named. What is done for a user is bound to
    that user, whoever asks for it.

    Raises:
        Forbidden: the key is bound to another user.
        InvalidInput: the name cannot be one.
    """
    check_name(user_id, "userId")
    if user_id is None or user_id == subject.user_id:
        return subject
    if not sees_all(subject):
        raise Forbidden(f"userId: this key asks as {subject.user_id!r}; leave userId out")
    return Subject(tenant_id=subject.tenant_id, user_id=user_id, role="service")


def owner_of(subject: Subject) -> str:
    """Whose documents and memories these are, as a key: the user's id, or '' for nobody's."""
    return subject.user_id or ""


def is_own(subject: Subject, user_id: str | None) -> bool:
    """Whether what belongs to `user_id` (None: nobody) is the subject's."""
    return user_id == subject.user_id


def whose(subject: Subject, alias: str) -> tuple[str, list[Any]]:
    """The rows of a subject's user, as SQL over a table with `user_id`; all of the tenant's for an admin that is nobody
    in particular."""
    if subject.user_id is not None:
        return f"{alias}.user_id = ?", [subject.user_id]
    return ("TRUE", []) if subject.role == "admin" else (f"{alias}.user_id IS NULL", [])
