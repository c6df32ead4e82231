"""Pages of memories in the order they were stored."""

from __future__ import annotations

from memoranda.errors import InvalidInput
from memoranda.filters import Filter, matches
from memoranda.storage.sql.base import Connection
from memoranda.store import listing
from memoranda.store.access import visible_to
from memoranda.store.paging import Paging, left_place
from memoranda.store.rows import attributes, fetch_ids, to_memory
from memoranda.types import Page, Subject


def read_page(c: Connection, subject: Subject, where: Filter, place: Paging) -> Page:
    """Return one page of the memories that pass.

    Raises:
        InvalidInput: there are two cursors, or one names no memory that the subject may see.
    """
    after, before = place.after, place.before
    if after is not None and before is not None:
        raise InvalidInput("before", "goes without `after`: a page is read in one direction")
    backwards = before is not None
    cursor = None
    if after or before:
        cursor = seq_of(c, subject, "after", after) if after else seq_of(c, subject, "before", str(before))
    rows = listing.page(
        c,
        subject.tenant_id,
        where,
        limit=place.limit + 1,
        after=cursor,
        descending=place.descending != backwards,
    )
    more = len(rows) > place.limit
    rows = rows[: place.limit]
    if backwards:
        rows.reverse()
    return Page(
        data=[to_memory(row) for row in rows],
        first_id=rows[0].id if rows else None,
        last_id=rows[-1].id if rows else None,
        has_more=more,
    )


def seq_of(c: Connection, subject: Subject, field: str, id: str) -> int:
    row = fetch_ids(c, subject.tenant_id, [id]).get(id)
    if row is None and (seq := left_place(c, subject, "memories", id)) is not None:
        return seq
    if row is None or not matches(visible_to(subject), attributes(row)):
        raise InvalidInput(field, f"{id!r} is no memory, or was deleted; begin again without a cursor")
    return row.seq
