"""Rows of memory stores, who may use them, and pages of their lists."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from memoranda.clock import micros, moment
from memoranda.errors import Conflict, Forbidden, InvalidInput, NotFound
from memoranda.memory_stores.values import (
    MemoryStore,
    MemoryVersion,
    Operation,
    Page,
    StoreMemory,
    UserActor,
    View,
)
from memoranda.storage.sql.base import Connection
from memoranda.store.access import owns, sees_all
from memoranda.store.ids import listed, nameable
from memoranda.store.transaction import Writing
from memoranda.types import Subject

NEXT = chr(ord("/") + 1)
"""The character after `/`: a path below another one is between it with `/` and with this."""
R = TypeVar("R", bound="StoreRow | VersionRow")
T = TypeVar("T")


class StoreRow(NamedTuple):
    """One row of `memory_stores`."""

    tenant_id: str
    id: str
    seq: int
    name: str
    description: str
    metadata: str
    user_id: str | None
    archived_at: int | None
    created_at: int
    updated_at: int


class MemoryRow(NamedTuple):
    """One row of `store_memories`, with its latest version; without content in the basic view of a list."""

    id: str
    store_id: str
    path: str
    version_id: str
    created_at: int
    updated_at: int
    sha256: str
    size: int
    content: str | None


class VersionRow(NamedTuple):
    """One row of `memory_versions`; without content in the basic view of a list."""

    id: str
    seq: int
    memory_id: str
    operation: Operation
    written_by: str | None
    created_at: int
    redacted_by: str | None
    redacted_at: int | None
    path: str | None
    sha256: str | None
    size: int | None
    content: str | None


# --- who may use them ------------------------------------------------------------------------------


def store_seen(c: Connection, subject: Subject, id_: str) -> StoreRow:
    """Return a store of the subject, or of its tenant.

    Raises:
        NotFound: no such store for this subject.
    """
    row = c.one("get_memory_store", [subject.tenant_id, id_]) if nameable(id_) else None
    store = None if row is None else StoreRow._make(row)
    if store is None or not owns(subject, store.user_id):
        raise NotFound(f"no memory store {id_!r}")
    return store


def store_open(c: Connection, subject: Subject, id_: str) -> StoreRow:
    """Return a store whose memories may be created and changed.

    Raises:
        NotFound: no such store for this subject.
        Conflict: it is archived.
    """
    store = store_seen(c, subject, id_)
    if store.archived_at is not None:
        raise Conflict(f"the memory store {id_!r} is archived: its memories can be read and deleted only")
    return store


def store_owned(c: Connection, subject: Subject, id_: str) -> StoreRow:
    """Return a store that the subject may change and delete.

    Raises:
        NotFound: no such store for this subject.
        Forbidden: it is the tenant's, and the subject is bound to a user.
    """
    store = store_seen(c, subject, id_)
    if not sees_all(subject) and store.user_id is None:
        raise Forbidden(f"only the owner of the memory store {id_!r}, or an admin, may do this")
    return store


def memory_seen(c: Connection, tenant: str, store_id: str, id_: str) -> MemoryRow:
    """Return a memory of a store.

    Raises:
        NotFound: there is no such memory.
    """
    row = c.one("get_store_memory", [tenant, id_]) if nameable(id_) else None
    memory = None if row is None else MemoryRow._make(row)
    if memory is None or memory.store_id != store_id:
        raise NotFound(f"no memory {id_!r} in this store")
    return memory


def path_taken(
    c: Connection, tenant: str, store_id: str, path: str, id_: str | None = None
) -> tuple[str, str] | None:
    """Return id and path of a memory at a path, above or below it, other than that of an id; None if there is none."""
    segments = path.split("/")
    above = ["/".join(segments[:end]) for end in range(2, len(segments) + 1)]
    key = [tenant, store_id]
    found = [
        *c.all("memories_at", [*key, listed(above)]),
        *c.all("memories_below", [*key, f"{path}/", f"{path}{NEXT}"]),
    ]
    return next(((memory_id, taken) for memory_id, taken in found if memory_id != id_), None)


def overlap(path: str, other: str) -> bool:
    """Return True if two paths are the same, or one is above the other."""
    return f"{path}/".startswith(f"{other}/") or f"{other}/".startswith(f"{path}/")


def alone(work: Callable[[Writing], T]) -> Callable[[Writing], T]:
    """Return a change of rows that reads them while writers of other processes wait."""

    def change(w: Writing) -> T:
        w.draw(1)
        return work(w)

    return change


# --- values ----------------------------------------------------------------------------------------


def store_value(row: StoreRow) -> MemoryStore:
    """Return the row as callers receive it."""
    return MemoryStore(
        id=row.id,
        name=row.name,
        description=row.description,
        metadata=json.loads(row.metadata),
        created_at=moment(row.created_at),
        updated_at=moment(row.updated_at),
        archived_at=_maybe(row.archived_at),
    )


def memory_value(row: MemoryRow, view: View) -> StoreMemory:
    """Return the row as callers receive it."""
    return StoreMemory(
        id=row.id,
        memory_store_id=row.store_id,
        memory_version_id=row.version_id,
        path=row.path,
        content=row.content if view == "full" else None,
        content_sha256=row.sha256,
        content_size_bytes=row.size,
        created_at=moment(row.created_at),
        updated_at=moment(row.updated_at),
    )


def version_value(row: VersionRow, store_id: str, view: View) -> MemoryVersion:
    """Return the row as callers receive it."""
    return MemoryVersion(
        id=row.id,
        memory_id=row.memory_id,
        memory_store_id=store_id,
        operation=row.operation,
        path=row.path,
        content=row.content if view == "full" else None,
        content_sha256=row.sha256,
        content_size_bytes=row.size,
        created_at=moment(row.created_at),
        created_by=_actor(row.written_by),
        redacted_at=_maybe(row.redacted_at),
        redacted_by=_actor(row.redacted_by),
    )


def _maybe(at: int | None) -> datetime | None:
    return None if at is None else moment(at)


def _actor(user_id: str | None) -> UserActor | None:
    return None if user_id is None else UserActor(user_id=user_id)


# --- pages -----------------------------------------------------------------------------------------


def newest_first(
    c: Connection,
    select: str,
    params: Sequence[Any],
    make: Callable[[Sequence[Any]], R],
    value: Callable[[R], T],
    *,
    alias: str,
    limit: int,
    page: str | None,
    since: datetime | None,
    until: datetime | None,
) -> Page[T]:
    """Return a page of the rows of `select`, which ends in its WHERE clause, newest first. `since` and `until` limit
    `created_at`, both inclusive.

    Raises:
        InvalidInput: `page` is none of this list.
    """
    values = list(params)
    for sign, at in ((">=", since), ("<=", until)):
        if at is not None:
            select, values = f"{select} AND {alias}.created_at {sign} ?", [*values, micros(at)]
    if page is not None:
        select, values = f"{select} AND {alias}.seq < ?", [*values, _seq(page)]
    found = c.select(f"{select} ORDER BY {alias}.seq DESC LIMIT ?", [*values, limit + 1])
    rows = [make(row) for row in found[:limit]]
    more = len(found) > limit
    return Page(data=[value(row) for row in rows], next_page=cursor(str(rows[-1].seq)) if more else None)


def cursor(place: str) -> str:
    """Return the place in a list as the name of a page."""
    return base64.urlsafe_b64encode(place.encode()).decode().rstrip("=")


def place_of(page: str) -> str:
    """Return the place in a list that `cursor` was given.

    Raises:
        InvalidInput: it is none.
    """
    try:
        place = base64.b64decode(page + "=" * (-len(page) % 4), b"-_", validate=True).decode()
    except (ValueError, binascii.Error) as exc:
        raise no_page() from exc
    if not nameable(place):
        raise no_page()
    return place


def _seq(page: str) -> int:
    place = place_of(page)
    if not (place.isascii() and place.isdigit() and len(place) < 19):
        raise no_page()
    return int(place)


def no_page() -> InvalidInput:
    """Return the error for a page that is none of the list."""
    return InvalidInput("page", "is no page of this list; send the `next_page` of an answer, or leave it out")
