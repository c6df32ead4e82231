"""The rows that a request selects and that its subject may see, as one filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memoranda.clock import in_zone, micros
from memoranda.errors import Forbidden, InvalidInput
from memoranda.filters import (
    EVERYTHING,
    OWN_KEYS,
    AllOf,
    Compare,
    Filter,
    all_of,
    any_of,
    check_unicode,
    parse,
)
from memoranda.store.origins import selected
from memoranda.store.rows import CHUNK, ITEM
from memoranda.types import KINDS, Selection, Subject

PLACES = {"session": "$session_id", "user": "$user_id", "agent": "$agent_id", "channel": "$channel_id"}
"""Scopes with an id, narrowest first."""
GLOBAL = AllOf(tuple(Compare(key, "eq", None) for key in PLACES.values()))

MEMORIES = Compare("$kind", "ne", CHUNK)
"""Every row that is a memory: chunks of documents are searched in their stores only."""


def visible_to(subject: Subject) -> Filter:
    """Return the memories of the tenant that a subject may see. A service sees what it names (see `scope_filter`),
    unless it acts for one user: then, like a member, it sees that user's rows and rows without a user."""
    if sees_all(subject):
        return MEMORIES
    return all_of(MEMORIES, Compare("$user_id", "in", (subject.user_id, None)))


def sees_all(subject: Subject) -> bool:
    """Return True if a subject sees what belongs to any user: an admin, and a service that is bound to no user."""
    return subject.role == "admin" or (subject.role == "service" and subject.user_id is None)


def scope_filter(scope: str, subject: Subject, where: str = "scopes", *, any_id: bool = False) -> Filter:
    """Return the rows of one scope: `session:X`, `channel:X`, `agent:X`, `user:X`, `global` or `all`; with `any_id`
    also `session`, `channel`, `agent` and `user`: the rows that carry such an id, whichever it is.

    Raises:
        InvalidInput: the scope is none of these.
        Forbidden: the subject may not name `all`, or every session, user, agent or channel.
    """
    if scope == "global":
        return GLOBAL
    if scope == "all":
        if subject.role != "admin":
            raise Forbidden(f"{where}: `all` needs the admin role; name the scopes you mean")
        return EVERYTHING
    place, colon, name = scope.partition(":")
    if any_id and place in PLACES and not colon:
        if sees_all(subject) and subject.role != "admin":
            raise Forbidden(f"{where}: {place!r} without an id needs the admin role; name the ids you mean")
        return Compare(PLACES[place], "ne", None)
    if place not in PLACES or not name:
        raise InvalidInput(
            where, f"{scope!r} is no scope; use session:ID, user:ID, agent:ID, channel:ID, global or all"
        )
    return Compare(PLACES[place], "eq", name)


def default_scopes(subject: Subject, configured: str | None = None) -> list[str]:
    """Return the scopes of a search that names none: the configured one if it applies (`session` without an id does
    not), else everything for an admin, else the user's own rows and global."""
    if configured == "user" and subject.user_id is not None:
        return [f"user:{subject.user_id}"]
    if configured == "global" or (configured == "all" and subject.role == "admin"):
        return [configured]
    if subject.role == "admin" and subject.user_id is None:
        return ["all"]
    return ["global"] if subject.user_id is None else [f"user:{subject.user_id}", "global"]


def selection_filter(selection: Selection, subject: Subject, now: int | None) -> Filter:
    """Return the filter of a selection without its scopes, restricted to what the subject may see.

    `now` (microseconds) decides which rows are valid if the selection names no `as_of`; with None, valid, superseded
    and archived rows pass, as forgetting and export require. Entries of key-value stores (kind `item`) are included by
    a selection that names the kind, and with `now` None. Days without a zone are those of the subject.
    """
    since, until, as_of = (
        None if at is None else in_zone(at, subject.time_zone)
        for at in (selection.since, selection.until, selection.as_of)
    )
    return all_of(
        visible_to(subject),
        _kinds(selection.kinds, None if now is None else Compare("$kind", "ne", ITEM)),
        None if selection.roles is None else Compare("$role", "in", tuple(_names(selection.roles, "roles"))),
        *(Compare("$tags", "eq", tag) for tag in _names(selection.tags, "tags")),
        *(selected(source) for source in _names(_listed(selection.source), "source")),
        None if since is None else Compare("$occurred_at", "gte", micros(since)),
        None if until is None else Compare("$occurred_at", "lt", micros(until)),
        _valid(as_of, now),
        None if selection.include_archived or now is None else Compare("$archived_at", "eq", None),
        None if selection.filters is None else parse(selection.filters, own=OWN_KEYS),
    )


def scopes_filter(scopes: Sequence[str] | None, subject: Subject, *, any_id: bool = False) -> Filter:
    """Return the filter for any of the scopes, see `scope_filter`."""
    named = default_scopes(subject) if scopes is None else _names(scopes, "scopes")
    if not named:
        raise InvalidInput("scopes", "must name at least one scope, or be left out")
    return any_of(*(scope_filter(scope, subject, any_id=any_id) for scope in named))


def hierarchy_scopes(context: Mapping[str, str]) -> list[str]:
    """Return the scopes of a context, narrowest first, `global` last.

    Raises:
        InvalidInput: a key is no scope with an id.
    """
    for key, value in context.items():
        if key.removesuffix("_id") not in PLACES or not isinstance(value, str) or not value:
            raise InvalidInput(f"hierarchy.{key}", f"use {', '.join(PLACES)}, each with an id")
        check_unicode(value, f"hierarchy.{key}")
    ids = {key.removesuffix("_id"): value for key, value in context.items()}
    return [f"{place}:{ids[place]}" for place in PLACES if place in ids] + ["global"]


def _kinds(kinds: Sequence[str] | None, default: Filter | None) -> Filter | None:
    if kinds is None:
        return default
    for kind in kinds:
        if kind not in KINDS:
            raise InvalidInput("kinds", f"{kind!r} is unknown; use {', '.join(KINDS)}")
    return Compare("$kind", "in", tuple(kinds))


def _names(names: Sequence[str] | None, where: str) -> list[str]:
    if names is None:
        return []
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise InvalidInput(where, "must be a list of strings")
    for name in names:
        check_unicode(name, where)
    return list(names)


def _listed(name: str | None) -> list[str] | None:
    return None if name is None else [name]


def _valid(as_of: datetime | None, now: int | None) -> Filter | None:
    """Return the rows valid at `as_of`, or now: begun, and not ended. The past includes rows superseded since. A row
    with `valid_from` is valid from then on, even if it was written later; any other row begins when it occurred."""
    if as_of is None and now is None:
        return None
    at = micros(as_of) if as_of is not None else now
    undated = Compare("$valid_from", "eq", None)
    said = undated if as_of is None else all_of(undated, Compare("$occurred_at", "lte", at))
    begun = any_of(said, Compare("$valid_from", "lte", at))
    going = any_of(Compare("$invalid_at", "eq", None), Compare("$invalid_at", "gt", at))
    return all_of(begun, going)


def must_write(subject: Subject) -> None:
    """Check that a subject may write.

    Raises:
        Forbidden: the role is reader.
    """
    if subject.role == "reader":
        raise Forbidden("role: a reader writes nothing; use a key with the member role or above")


def must_be_admin(subject: Subject, what: str) -> None:
    """Check that a subject is an admin; `what` is named in the error.

    Raises:
        Forbidden: the role is another one.
    """
    if subject.role != "admin":
        raise Forbidden(f"{what}: needs the admin role")


def owns(subject: Subject, user_id: str | None) -> bool:
    """Return True if the subject may change what belongs to `user_id` (None: to the tenant)."""
    return sees_all(subject) or user_id is None or user_id == subject.user_id
