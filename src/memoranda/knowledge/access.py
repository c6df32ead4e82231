"""Access to files and stores: who may see, fill and delete them. Missing and not visible are deliberately
indistinguishable (404)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from memoranda.errors import Forbidden, NotFound
from memoranda.knowledge.records import FileRow, StoreRow
from memoranda.storage.sql.base import Connection
from memoranda.store.access import owns, sees_all
from memoranda.store.ids import listed
from memoranda.store.paging import left_place
from memoranda.types import Subject


def sees_file(subject: Subject, row: FileRow) -> bool:
    """Return True if a file of the subject's tenant is its own or has no owner."""
    return owns(subject, row.user_id)


def file_condition(subject: Subject) -> tuple[str, list[Any]]:
    """Return a condition for the files that a subject sees, as SQL over `files f`."""
    if sees_all(subject):
        return "TRUE", []
    return "(f.user_id IS NULL OR f.user_id = ?)", [subject.user_id]


def store_condition(subject: Subject) -> tuple[str, list[Any]]:
    """Return a condition for the stores of its tenant that a subject sees, as SQL over `vector_stores v`."""
    if sees_all(subject):
        return "TRUE", []
    sql = (
        "(v.user_id IS NULL OR v.user_id = ? OR v.sharing <> 'private' OR EXISTS (SELECT 1 FROM store_writers w"
        " WHERE w.tenant_id = v.tenant_id AND w.store_id = v.id AND w.user_id = ?))"
    )
    return sql, [subject.user_id, subject.user_id]


def place_of_store(c: Connection, subject: Subject, id_: str) -> int | None:
    """Return the place of a store of the subject's tenant in the list of stores, also of one that it has deleted."""
    row = stores_seen(c, subject, [id_]).get(id_)
    if row is None:
        return left_place(c, subject, "vector_stores", id_)
    return row.seq if row.tenant_id == subject.tenant_id else None


def stores_seen(c: Connection, subject: Subject, ids: Sequence[str]) -> dict[str, StoreRow]:
    """Return the stores among `ids` that the subject may read, by id: those of its tenant, then those shared with
    everyone, for which the transaction must not be bound to one tenant."""
    rows = (StoreRow._make(row) for row in c.all("stores_by_id", [subject.tenant_id, listed(ids)]))
    stores = {row.id: row for row in _visible(c, subject, rows)}
    rest = [id_ for id_ in ids if id_ not in stores]
    if rest:
        shared = (StoreRow._make(row) for row in c.all("shared_stores", [listed(rest)]))
        stores |= {row.id: row for row in shared}
    return stores


def _visible(c: Connection, subject: Subject, rows: Iterable[StoreRow]) -> list[StoreRow]:
    stores = list(rows)
    if sees_all(subject):
        return stores
    open_ = [row for row in stores if owns(subject, row.user_id) or row.sharing != "private"]
    closed = [row for row in stores if row not in open_]
    return open_ + [row for row in closed if is_writer(c, subject, row)]


def is_writer(c: Connection, subject: Subject, row: StoreRow) -> bool:
    """Return True if the store's owner lets the subject write."""
    if subject.user_id is None or row.tenant_id != subject.tenant_id:
        return False
    writers = c.all("writers_of", [row.tenant_id, listed([row.id])])
    return any(user == subject.user_id for _, user in writers)


def store_seen(c: Connection, subject: Subject, id_: str) -> StoreRow:
    """Return a store that the subject may read.

    Raises:
        NotFound: there is none for this subject.
    """
    row = stores_seen(c, subject, [id_]).get(id_)
    if row is None:
        raise NotFound(f"no vector store {id_!r}")
    return row


def store_local(c: Connection, subject: Subject, id_: str) -> StoreRow:
    """Return a store of the subject's own tenant.

    Raises:
        NotFound: there is none for this subject.
        Forbidden: it is another tenant's, shared to be read.
    """
    row = store_seen(c, subject, id_)
    if row.tenant_id != subject.tenant_id:
        raise Forbidden(f"the vector store {id_!r} is another tenant's, shared to be read")
    return row


def store_filled(c: Connection, subject: Subject, id_: str) -> StoreRow:
    """Return a store whose files the subject may add and remove.

    Raises:
        NotFound: there is none for this subject.
        Forbidden: it is another's, shared to be read.
    """
    row = store_seen(c, subject, id_)
    own = row.tenant_id == subject.tenant_id and owns(subject, row.user_id)
    if not own and not is_writer(c, subject, row):
        raise Forbidden(f"the vector store {id_!r} is shared to be read; its owner can make you a writer")
    return row


def store_owned(c: Connection, subject: Subject, id_: str) -> StoreRow:
    """Return a store that the subject may change and delete.

    Raises:
        NotFound: there is none for this subject.
        Forbidden: it is another's, or the tenant's.
    """
    row = store_seen(c, subject, id_)
    mine = row.user_id is not None and row.user_id == subject.user_id
    if row.tenant_id != subject.tenant_id or not (sees_all(subject) or mine):
        raise Forbidden(f"only the owner of the vector store {id_!r}, or an admin, may do this")
    return row
