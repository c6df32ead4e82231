"""The versions of memories in a store: who changed what, and when."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from memoranda.clock import now_micros
from memoranda.errors import Conflict, NotFound
from memoranda.memory_stores.rows import VersionRow, alone, newest_first, store_seen, version_value
from memoranda.memory_stores.values import MemoryVersion, Operation, Page, View, checked_limit
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write
from memoranda.store.core import Core
from memoranda.store.ids import listed, nameable
from memoranda.store.transaction import Writing
from memoranda.types import Subject

T = TypeVar("T")


class MemoryVersions:
    """The versions of the memories of one store, for one subject. They stay when their memory is deleted in its store;
    they go with the store, and with what is forgotten."""

    def __init__(self, core: Core, subject: Subject, store_id: str) -> None:
        self._core = core
        self.subject = subject
        self._tenant = subject.tenant_id
        self.store_id = store_id

    async def list(
        self,
        *,
        memory_id: str | None = None,
        operation: Operation | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        page: str | None = None,
        view: View = "basic",
    ) -> Page[MemoryVersion]:
        """Return a page of versions, newest first; `since` and `until` limit when they were written, inclusive.

        Raises:
            InvalidInput: names the field.
            NotFound: no such store for this subject.
        """
        content = "v.content" if view == "full" else "NULL"
        select = (
            "SELECT v.id, v.seq, v.memory_id, v.operation, v.written_by, v.created_at, v.redacted_by, v.redacted_at,"
            f" v.path, v.content_sha256, v.content_bytes, {content} FROM memory_versions v"
            " JOIN store_memories m ON m.tenant_id = v.tenant_id AND m.id = v.memory_id"
            " WHERE v.tenant_id = ? AND v.store_id = ?"
        )
        values = list[object]([self._tenant, self.store_id])
        for column, value in (("memory_id", memory_id), ("operation", operation)):
            if value is not None:
                select, values = f"{select} AND v.{column} = ?", [*values, value]
        most = checked_limit(limit, view)

        def read(c: Connection) -> Page[MemoryVersion]:
            store_seen(c, self.subject, self.store_id)
            if memory_id is not None and not nameable(memory_id):
                return Page(data=[], next_page=None)
            return newest_first(
                c, select, values, VersionRow._make, lambda row: version_value(row, self.store_id, view), alias="v",
                limit=most, page=page, since=since, until=until,
            )  # fmt: skip

        return await self._read(read)

    async def get(self, id: str, *, view: View = "full") -> MemoryVersion:
        """Return one version.

        Raises:
            NotFound: no such store for this subject, or no such version in it.
        """
        return version_value(await self._read(lambda c: self._seen(c, id)), self.store_id, view)

    async def redact(self, id: str) -> MemoryVersion:
        """Erase the content and path of a version, for good: when and by whom it was written stays. A version that was
        redacted stays as it is.

        Raises:
            NotFound: no such store for this subject, or no such version in it.
            Conflict: it is the latest version of a memory.
        """
        must_write(self.subject)

        def work(w: Writing) -> VersionRow:
            row = self._seen(w.c, id)
            if (id, row.memory_id) in w.c.all("latest_among", [self._tenant, listed([row.memory_id])]):
                raise Conflict(
                    f"{id} is the latest version of {row.memory_id}; change or delete that memory first"
                )
            if row.redacted_at is None:
                values = [self.subject.user_id, now_micros(), self._tenant, id]
                w.c.run("redact_memory_version", values)
            return self._seen(w.c, id)

        row = await self._core.transact(self._tenant, alone(work))
        await self._core.threads.run(self._core.store.purge)
        return version_value(row, self.store_id, "full")

    def _seen(self, c: Connection, id_: str) -> VersionRow:
        store_seen(c, self.subject, self.store_id)
        row = c.one("get_memory_version", [self._tenant, self.store_id, id_]) if nameable(id_) else None
        if row is None:
            raise NotFound(f"no memory version {id_!r} in this store")
        return VersionRow._make(row)

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.run(self._core.store.db.read, work, self._tenant)
