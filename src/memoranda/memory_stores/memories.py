"""The memories of a memory store: texts at unique paths, each change of which is a version."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import TypeVar

import msgspec

from memoranda.clock import now_micros
from memoranda.errors import Conflict, InvalidInput
from memoranda.memory_stores.removal import KIND, searched
from memoranda.memory_stores.rows import (
    NEXT,
    MemoryRow,
    StoreRow,
    alone,
    cursor,
    memory_seen,
    memory_value,
    no_page,
    path_taken,
    place_of,
    store_open,
    store_seen,
)
from memoranda.memory_stores.values import (
    ContentChanged,
    MemoryPrefix,
    NewStoreMemory,
    Operation,
    Page,
    PathTaken,
    StoreMemory,
    StoreMemoryChange,
    View,
    checked_content,
    checked_limit,
    checked_path,
    checked_prefix,
)
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write
from memoranda.store.core import Core
from memoranda.store.ids import new_id
from memoranda.store.rows import Draft, Record, fetch_ids
from memoranda.store.transaction import Writing
from memoranda.text.stored import compact_json
from memoranda.types import NewMemory, Subject
from memoranda.validation import checked

T = TypeVar("T")
SOURCE = "memory_store"
"""The source of the memories by which memories of stores are found."""
ATTEMPTS = 5
"""Attempts to change a memory while other writers change it."""
Item = StoreMemory | MemoryPrefix


class _Content(msgspec.Struct, frozen=True):
    """A content, with what describes it."""

    text: str
    sha256: str
    size: int


class StoreMemories:
    """The memories of one store, for one subject."""

    def __init__(self, core: Core, subject: Subject, store_id: str) -> None:
        self._core = core
        self.subject = subject
        self._tenant = subject.tenant_id
        self.store_id = store_id

    async def create(self, new: NewStoreMemory, *, view: View = "basic") -> StoreMemory:
        """Create a memory at a path.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: no such store for this subject.
            PathTaken: there is a memory at this path, above or below it.
            Conflict: the store is archived.
        """
        must_write(self.subject)
        new = checked(new)
        path, content = checked_path(new.path), _content(new.content or "")
        store = await self._read(lambda c: self._free(c, path))
        id_, version_id = new_id("mem_"), new_id("memver_")
        draft = await self._draft(store, id_, path, content.text)

        def work(w: Writing) -> StoreMemory:
            self._free(w.c, path)
            now = now_micros()
            self._put(w, draft)
            self._add_version(w, version_id, id_, "created", path, content, now)
            row = MemoryRow(
                id_, self.store_id, path, version_id, now, now, content.sha256, content.size, content.text
            )
            w.c.run("add_store_memory", [self._tenant, id_, self.store_id, path, version_id, now, now])
            return memory_value(row, view)

        return await self._write(work)

    async def get(self, id: str, *, view: View = "full") -> StoreMemory:
        """Return one memory.

        Raises:
            NotFound: no such store for this subject, or no such memory in it.
        """
        return memory_value(await self._read(lambda c: self._seen(c, id)), view)

    async def update(self, id: str, change: StoreMemoryChange, *, view: View = "basic") -> StoreMemory:
        """Change the content or path of a memory, which keeps its id. If nothing changes, there is no new version, and
        the precondition does not matter.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: no such store for this subject, or no such memory in it.
            ContentChanged: the precondition is not met.
            PathTaken: another memory is at the new path, above or below it.
            Conflict: the store is archived, or other writers keep changing the memory.
        """
        must_write(self.subject)
        change = checked(change)
        path = None if change.path is None else checked_path(change.path)
        content = None if change.content is None else _content(change.content)
        for _ in range(ATTEMPTS):
            row = await self._read(lambda c: self._seen(c, id))
            old = _Content(row.content or "", row.sha256, row.size)
            after_path, after = path or row.path, content or old
            if after_path == row.path and after == old:
                await self._read(lambda c: store_open(c, self.subject, self.store_id))
                return memory_value(row, view)
            _check_content(row, change.precondition.content_sha256 if change.precondition else None)
            store = await self._read(lambda c, at=after_path: self._free(c, at, id))  # type: ignore[misc]
            draft = await self._draft(store, id, after_path, after.text)

            def work(w: Writing, row=row, path=after_path, content=after, draft=draft) -> StoreMemory | None:  # type: ignore[no-untyped-def]
                self._free(w.c, path, id)
                if self._seen(w.c, id).version_id != row.version_id:
                    return None
                now, version_id = now_micros(), new_id("memver_")
                self._add_version(w, version_id, id, "modified", path, content, now)
                w.c.run("set_store_memory", [path, version_id, now, self._tenant, id])
                self._put(w, draft)
                changed = row._replace(
                    path=path, version_id=version_id, updated_at=now, sha256=content.sha256, size=content.size,
                    content=content.text,
                )  # fmt: skip
                return memory_value(changed, view)

            value = await self._write(work)
            if value is not None:
                return value
        raise Conflict(f"{id}: other writers keep changing this memory; read it and try again")

    async def delete(self, id: str, *, expected_sha256: str | None = None) -> None:
        """Delete a memory; its versions stay.

        Raises:
            NotFound: no such store for this subject, or no such memory in it.
            ContentChanged: its content has another hash than the expected one.
        """
        must_write(self.subject)

        def work(w: Writing) -> None:
            row = self._seen(w.c, id)
            _check_content(row, expected_sha256)
            now, version_id = now_micros(), new_id("memver_")
            w.by_request = True
            self._add_version(w, version_id, id, "deleted", row.path, None, now)
            w.c.run("set_store_memory", [None, version_id, now, self._tenant, id])
            w.remove([found.seq for found in fetch_ids(w.c, self._tenant, [id]).values()])

        await self._write(work)

    async def list(
        self,
        *,
        path_prefix: str = "/",
        depth: int = 0,
        limit: int | None = None,
        page: str | None = None,
        view: View = "basic",
    ) -> Page[Item]:
        """Return a page of the memories below a path, in the order of the bytes of their paths. With depth 1 the
        memories below its directories are a `MemoryPrefix` each; depth 0 lists all of them.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: no such store for this subject.
        """
        prefix, most = checked_prefix(path_prefix), checked_limit(limit, view)
        if depth not in (0, 1):
            raise InvalidInput("depth", "must be 0 or 1")
        after = prefix if page is None else place_of(page)
        if not after.startswith(prefix):
            raise no_page()

        def read(c: Connection) -> Page[Item]:
            store_seen(c, self.subject, self.store_id)
            items: list[Item] = []
            at, rows = after, deque[MemoryRow]()
            while len(items) <= most:
                if not rows:
                    rows.extend(self._below(c, prefix, at, most + 1 - len(items), view))
                    if not rows:
                        break
                row = rows.popleft()
                directory = _directory(row.path, prefix) if depth else None
                items.append(memory_value(row, view) if directory is None else MemoryPrefix(path=directory))
                at = row.path if directory is None else directory
                if directory is not None:
                    rows.clear()
            more = len(items) > most
            shown = items[:most]
            return Page(data=shown, next_page=cursor(shown[-1].path) if more else None)

        return await self._read(read)

    # --- rows --------------------------------------------------------------------------------------

    def _below(self, c: Connection, prefix: str, after: str, limit: int, view: View) -> Sequence[MemoryRow]:
        """Return memories below a path, after a path, or after all those of a directory."""
        start = f"{after[:-1]}{NEXT}" if after.endswith("/") and after != prefix else after
        content = "v.content" if view == "full" else "NULL"
        sql = (
            f"SELECT m.id, m.store_id, m.path, m.version_id, m.created_at, m.updated_at, v.content_sha256,"
            f" v.content_bytes, {content} FROM store_memories m"
            " JOIN memory_versions v ON v.tenant_id = m.tenant_id AND v.id = m.version_id"
            " WHERE m.tenant_id = ? AND m.store_id = ? AND m.path > ? AND m.path < ? ORDER BY m.path LIMIT ?"
        )
        values = [self._tenant, self.store_id, start, f"{prefix[:-1]}{NEXT}", limit]
        return [MemoryRow._make(row) for row in c.select(sql, values)]

    def _seen(self, c: Connection, id_: str) -> MemoryRow:
        store_seen(c, self.subject, self.store_id)
        return memory_seen(c, self._tenant, self.store_id, id_)

    def _free(self, c: Connection, path: str, id_: str | None = None) -> StoreRow:
        """Return the store, in which no memory but that with the id is at the path, above or below it.

        Raises:
            PathTaken: there is one.
        """
        store = store_open(c, self.subject, self.store_id)
        other = path_taken(c, self._tenant, self.store_id, path, id_)
        if other is not None:
            taken_id, taken = other
            how = "this path" if taken == path else f"{taken}, which this path would be above or below"
            fix = "change or delete that memory, or choose another path"
            raise PathTaken(f"path: {taken_id} is at {how}; {fix}", taken_id, taken)
        return store

    async def _draft(self, store: StoreRow, id_: str, path: str, content: str) -> Draft:
        """Return the searchable text of a memory, embedded."""
        new = NewMemory(
            content=searched(path, content), id=id_, kind=KIND, user_id=store.user_id, channel_id=store.id,
            source=SOURCE, metadata={"path": path},
        )  # fmt: skip
        drafts = self._core.ingest.drafts(Subject(tenant_id=self._tenant), [new])
        await self._core.ingest.prepare(self._tenant, drafts)
        return drafts[0]

    def _put(self, w: Writing, draft: Draft) -> None:
        """Write the searchable text of a new or changed memory.

        Raises:
            Conflict: a note of the same user with the same text is already in the channel of the store.
        """
        after = draft.row

        def rewritten(before: Record) -> Draft:
            metadata = compact_json(json.loads(before.metadata) | json.loads(after.metadata))
            row = before._replace(
                content=after.content,
                content_hash=after.content_hash,
                dedup_key=after.dedup_key,
                metadata=metadata,
                archived_at=None,
                occurred_at=after.occurred_at,
                updated_at=after.updated_at,
            )  # fmt: skip
            return Draft(row, named=True, parts=draft.parts, model=draft.model)

        row = fetch_ids(w.c, self._tenant, [after.id]).get(after.id)
        if row is not None:
            w.replace(row.seq, rewritten)
        elif not (written := w.insert([draft])[0]).created:
            raise Conflict(f"content: the note {written.row.id} has this path and content; delete it first")

    def _add_version(
        self,
        w: Writing,
        version_id: str,
        memory_id: str,
        operation: Operation,
        path: str,
        content: _Content | None,
        now: int,
    ) -> None:
        what = (None, None, None) if content is None else (content.sha256, content.size, content.text)
        w.c.run(
            "add_memory_version",
            [
                self._tenant, version_id, w.draw(1), self.store_id, memory_id, operation, self.subject.user_id, now,
                path, *what,
            ],
        )  # fmt: skip

    async def _read(self, work: Callable[[Connection], T]) -> T:
        return await self._core.threads.run(self._core.store.db.read, work, self._tenant)

    async def _write(self, work: Callable[[Writing], T]) -> T:
        return await self._core.transact(self._tenant, alone(work))


def _content(text: str) -> _Content:
    encoded = checked_content(text)
    return _Content(text, sha256(encoded).hexdigest(), len(encoded))


def _check_content(row: MemoryRow, expected: str | None) -> None:
    if expected is not None and expected != row.sha256:
        raise ContentChanged(
            f"content_sha256: {row.id} has the content {row.sha256} now; read it, and make the change anew"
        )


def _directory(path: str, prefix: str) -> str | None:
    """Return the directory just below a prefix in which a path is; None if the path is not in one."""
    first, slash, _ = path[len(prefix) :].partition("/")
    return f"{prefix}{first}/" if slash else None
