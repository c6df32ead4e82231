"""Memory stores: named containers of an agent's memories at paths."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from memoranda.clock import now_micros
from memoranda.memory_stores.memories import StoreMemories
from memoranda.memory_stores.removal import drop_step
from memoranda.memory_stores.rows import (
    StoreRow,
    alone,
    newest_first,
    store_open,
    store_owned,
    store_seen,
    store_value,
)
from memoranda.memory_stores.values import (
    MemoryStore,
    NewStore,
    Page,
    StoreChange,
    checked_limit,
    merged,
)
from memoranda.memory_stores.versions import MemoryVersions
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write, sees_all
from memoranda.store.core import Core
from memoranda.store.ids import new_id
from memoranda.store.transaction import Writing
from memoranda.text.stored import compact_json
from memoranda.types import Subject
from memoranda.validation import checked

T = TypeVar("T")
COLUMNS = ", ".join(f"s.{name}" for name in StoreRow._fields)


class MemoryStores:
    """The memory stores that one subject sees: its own, and those of its tenant without a user, in which it may write,
    too."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject
        self._tenant = subject.tenant_id

    def memories(self, store_id: str) -> StoreMemories:
        """Return the memories of a store. Nothing is read yet."""
        return StoreMemories(self._core, self.subject, store_id)

    def versions(self, store_id: str) -> MemoryVersions:
        """Return the versions of the memories of a store. Nothing is read yet."""
        return MemoryVersions(self._core, self.subject, store_id)

    async def create(self, new: NewStore) -> MemoryStore:
        """Create a store, of the subject's user or of the tenant.

        Raises:
            InvalidInput: names the field and the fix.
            Forbidden: the role writes nothing.
        """
        must_write(self.subject)
        new = checked(new)
        now, metadata = now_micros(), compact_json(new.metadata)
        row = StoreRow(
            self._tenant, new_id("memstore_"), 0, new.name, new.description, metadata, self.subject.user_id, None, now,
            now,
        )  # fmt: skip

        def work(w: Writing) -> MemoryStore:
            w.c.run("add_tenant", [self._tenant, now])
            w.c.run("add_memory_store", row._replace(seq=w.draw(1)))
            return store_value(row)

        return await self._write(work)

    async def list(
        self,
        *,
        limit: int | None = None,
        page: str | None = None,
        include_archived: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[MemoryStore]:
        """Return a page of the stores, newest first; `since` and `until` limit when they were created, inclusive.

        Raises:
            InvalidInput: names the field.
        """
        where, values = "TRUE", list[object]([self._tenant])
        if not sees_all(self.subject):
            where, values = "(s.user_id IS NULL OR s.user_id = ?)", [*values, self.subject.user_id]
        if not include_archived:
            where += " AND s.archived_at IS NULL"
        select = f"SELECT {COLUMNS} FROM memory_stores s WHERE s.tenant_id = ? AND {where}"
        most = checked_limit(limit)

        def read(c: Connection) -> Page[MemoryStore]:
            return newest_first(
                c, select, values, StoreRow._make, store_value, alias="s", limit=most, page=page, since=since,
                until=until,
            )  # fmt: skip

        return await self._read(read)

    async def get(self, id: str) -> MemoryStore:
        """Return one store.

        Raises:
            NotFound: no such store for this subject.
        """
        return store_value(await self._read(lambda c: store_seen(c, self.subject, id)))

    async def update(self, id: str, change: StoreChange) -> MemoryStore:
        """Change the named fields of a store.

        Raises:
            NotFound: no such store for this subject.
            Forbidden: it is not the subject's own.
            Conflict: it is archived.
            InvalidInput: names the field and the fix.
        """
        must_write(self.subject)
        change = checked(change)

        def work(w: Writing) -> MemoryStore:
            store_owned(w.c, self.subject, id)
            row = store_open(w.c, self.subject, id)
            after = row._replace(
                name=row.name if change.name is None else change.name,
                description=row.description if change.description is None else change.description,
                metadata=compact_json(merged(json.loads(row.metadata), change.metadata)),
            )
            return self._set(w.c, after) if after != row else store_value(row)

        return await self._write(work)

    async def archive(self, id: str) -> MemoryStore:
        """Make a store read-only, for good; its memories can be read and deleted.

        Raises:
            NotFound: no such store for this subject.
            Forbidden: it is not the subject's own.
        """
        must_write(self.subject)

        def work(w: Writing) -> MemoryStore:
            row = store_owned(w.c, self.subject, id)
            return (
                store_value(row)
                if row.archived_at
                else self._set(w.c, row._replace(archived_at=now_micros()))
            )

        return await self._write(work)

    async def delete(self, id: str) -> None:
        """Delete a store with its memories and their versions, in steps; it is read-only until the last one.

        Raises:
            NotFound: no such store for this subject.
            Forbidden: it is not the subject's own.
        """
        must_write(self.subject)
        await self._read(lambda c: store_owned(c, self.subject, id))
        while await self._read(lambda c: c.one("get_memory_store", [self._tenant, id])):
            await self._write(lambda w: drop_step(w, id))

    def _set(self, c: Connection, row: StoreRow) -> MemoryStore:
        row = row._replace(updated_at=now_micros())
        values = [row.name, row.description, row.metadata, row.archived_at, row.updated_at]
        c.run("set_memory_store", [*values, self._tenant, row.id])
        return store_value(row)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.run(self._core.store.db.read, work, self._tenant)

    async def _write(self, work: Callable[[Writing], T]) -> T:
        return await self._core.transact(self._tenant, alone(work))
