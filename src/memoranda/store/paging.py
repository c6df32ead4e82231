"""Pages of lists: limits, cursors, and the page as a value."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from memoranda.clock import now_micros
from memoranda.errors import InvalidInput
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.ids import nameable
from memoranda.text.hashing import digest
from memoranda.text.stored import compact_json
from memoranda.types import Subject

T = TypeVar("T")
V = TypeVar("V")
KEPT = 3_600_000_000
"""Microseconds for which the place of a deleted row is known."""


class Listed(msgspec.Struct, Generic[T], kw_only=True, tag_field="object", tag="list"):
    """One page of a listing. `after=last_id` asks for the next one."""

    data: list[T]
    first_id: str | None
    last_id: str | None
    has_more: bool

    def each(self, value: Callable[[T], V]) -> Listed[V]:
        """Return the page with the `value` of each of its rows."""
        data = list(map(value, self.data))
        return Listed(data=data, first_id=self.first_id, last_id=self.last_id, has_more=self.has_more)


class Paging(NamedTuple):
    """Which page to read: at most `limit` rows beyond the one with id `after`, or up to the one with id `before`."""

    limit: int
    after: str | None
    before: str | None
    descending: bool


def page(
    c: Connection,
    select: str,
    params: Sequence[Any],
    place: str,
    seq_of: Callable[[str], int | None],
    request: Paging,
) -> tuple[list[Row], bool]:
    """Return the rows of a page of `select` (which ends in its WHERE clause) by `place`, and True if there are more in
    the direction of travel. `seq_of` returns the place of an id, None if it is in no page of the listing.

    Raises:
        InvalidInput: there are two cursors, or one names nothing.
    """
    after, before = cursors(request.after, request.before, seq_of)
    backwards = before is not None
    down = request.descending != backwards
    cursor = before if backwards else after
    beyond = "" if cursor is None else f" AND {place} {'<' if down else '>'} ?"
    rows = c.select(
        f"{select}{beyond} ORDER BY {place} {'DESC' if down else 'ASC'} LIMIT ?",
        [*params, *([] if cursor is None else [cursor]), request.limit + 1],
    )
    shown = rows[: request.limit][::-1] if backwards else rows[: request.limit]
    return shown, len(rows) > request.limit


def cursors(
    after: str | None, before: str | None, seq_of: Callable[[str], int | None]
) -> tuple[int | None, int | None]:
    """Return the seqs of the cursors of a listing.

    Raises:
        InvalidInput: both are given, or one names nothing.
    """
    if after is not None and before is not None:
        raise InvalidInput("before", "goes without `after`: a page is read in one direction")
    seqs: list[int | None] = []
    for name, cursor in (("after", after), ("before", before)):
        seq = None if cursor is None else seq_of(cursor)
        if cursor is not None and seq is None:
            raise InvalidInput(
                name, f"{cursor!r} is not in this list, or was deleted; begin again without a cursor"
            )
        seqs.append(seq)
    return seqs[0], seqs[1]


async def all_rows(list_page: Callable[..., Awaitable[Listed[T]]], limit: int) -> AsyncIterator[T]:
    """Yield the rows of every page of a listing, `limit` a page."""
    after: str | None = None
    more = True
    while more:
        listed = await list_page(limit=limit, after=after)
        for row in listed.data:
            yield row
        after, more = listed.last_id, listed.has_more


def leave_place(c: Connection, subject: Subject, of: str, id_: str, seq: int) -> None:
    """Keep the place of a row in the list `of` that the subject deletes, so that it can ask for the page after it. Only
    a hash of the id is kept, for an hour, or until something is forgotten."""
    now = now_micros()
    c.run("drop_left_places", [subject.tenant_id, now - KEPT])
    c.run("leave_place", [subject.tenant_id, _key(subject, of, id_), seq, now])


def left_place(c: Connection, subject: Subject, of: str, id_: str) -> int | None:
    """Return the place of a row that the subject has deleted; None if it has not, or too long ago."""
    key = [subject.tenant_id, _key(subject, of, id_), now_micros() - KEPT] if nameable(id_) else None
    row = None if key is None else c.one("left_place", key)
    return None if row is None else int(row[0])


def _key(subject: Subject, of: str, id_: str) -> str:
    return digest(of, compact_json([subject.user_id, subject.role]), id_)


def check_limit(limit: Any, most: int, field: str = "limit") -> None:
    """Check the limit of a listing, from 1 to `most`.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= most:
        raise InvalidInput(field, f"must be a whole number between 1 and {most}")


def check_page(limit: Any, order: Any, most: int) -> None:
    """Check the limit and the order of a listing.

    Raises:
        InvalidInput: names the field.
    """
    check_limit(limit, most)
    if order not in ("asc", "desc"):
        raise InvalidInput("order", "must be asc or desc")


def as_page(values: list[T], ids: Sequence[str], more: bool) -> Listed[T]:
    """Return a page of values with the cursors of its ends."""
    return Listed(
        data=values, first_id=ids[0] if ids else None, last_id=ids[-1] if ids else None, has_more=more
    )
