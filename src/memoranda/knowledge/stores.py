"""Vector stores, and the files in them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from functools import partial
from typing import Any, TypeVar, Unpack

import msgspec

from memoranda.clock import now_micros
from memoranda.errors import InvalidInput, NotFound, StorageError
from memoranda.knowledge import checks
from memoranda.knowledge.access import (
    place_of_store,
    store_condition,
    store_filled,
    store_local,
    store_owned,
    store_seen,
)
from memoranda.knowledge.attaching import ATTRIBUTES_JOB, INDEX_JOB, attach
from memoranda.knowledge.chunks import chunks_of, text_of
from memoranda.knowledge.files import Files, Staged, insert
from memoranda.knowledge.quotas import check_stores, quotas_of
from memoranda.knowledge.records import (
    ATTACHED_COLUMNS,
    STORE_COLUMNS,
    AttachedRow,
    FileRow,
    StoreRow,
    attached_of,
    attached_row,
    attached_value,
    batch_row,
    batch_value,
    store_values,
)
from memoranda.knowledge.removal import REMOVE_JOB, detach, empty, hide
from memoranda.knowledge.search import Searching
from memoranda.knowledge.sources import Source, name_of, pieces_of
from memoranda.knowledge.values import (
    Attributes,
    Batch,
    Chunk,
    FileState,
    NewStoreFile,
    PassageFields,
    PassageQuery,
    Passages,
    Purpose,
    Sharing,
    StoreChange,
    StoreFile,
    VectorStore,
)
from memoranda.knowledge.waiting import check_wait, is_settled, none_in_progress, settled
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write
from memoranda.store.core import Core
from memoranda.store.forgotten import note
from memoranda.store.ids import new_id
from memoranda.store.paging import Listed, Paging, as_page, check_page, leave_place, left_place, page
from memoranda.text.splitting import Chunking
from memoranda.text.stored import compact_json
from memoranda.types import Subject

T = TypeVar("T")
MAX_PAGE = 100
POLL = 0.1
"""Seconds between two polls of files in progress."""
STATES = ("in_progress", "completed", "failed", "cancelled")


class Stores:
    """The vector stores that one subject sees."""

    def __init__(self, core: Core, subject: Subject, files: Files) -> None:
        self._core = core
        self.subject = subject
        self._tenant = subject.tenant_id
        self._files = files
        self._searching = Searching(core, subject)

    # --- stores ------------------------------------------------------------------------------------

    async def create(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        file_ids: Sequence[str] = (),
        metadata: dict[str, str] | None = None,
        expires_after_days: int | None = None,
        chunking: Chunking | None = None,
        sharing: Sharing = "private",
        writers: Sequence[str] = (),
    ) -> VectorStore:
        """Create a vector store, and attach files to it.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: this subject does not see a file.
            QuotaExceeded: the tenant would have too many stores, or the store too many files.
        """
        must_write(self.subject)
        now = now_micros()
        chosen = checks.chunking_checked(chunking or self._core.chunking)
        row = StoreRow(
            tenant_id=self._tenant,
            id=new_id("vs_"),
            seq=0,
            name=checks.text_of(name or "", "name"),
            description=None if description is None else checks.text_of(description, "description", 4_096),
            metadata=checks.metadata_of(metadata),
            chunking=compact_json(chosen),
            model=self._core.store.model,
            dim=self._core.store.index.dim,
            user_id=self.subject.user_id,
            sharing=self._sharing(sharing),
            expires_days=checks.days_of(expires_after_days),
            expired=0,
            created_at=now,
            last_active_at=now,
        )
        people = checks.people_of(writers)
        files = [NewStoreFile(file_id=id_) for id_ in file_ids]
        checks.files_named(files, "file_ids", empty=True)

        def work(c: Connection) -> VectorStore:
            quotas = quotas_of(c, self._tenant, self._core.quotas)
            check_stores(c, self._tenant, quotas)
            c.run("add_tenant", [self._tenant, now])
            revs = c.one("draw_revs", [1])
            assert revs is not None
            placed = row._replace(seq=int(revs[0]))
            c.run("add_store", [value for name, value in placed._asdict().items() if name != "expired"])
            c.many("add_writer", [(self._tenant, row.id, user) for user in people])
            attach(c, self._core, self.subject, placed, files, quotas)
            return store_values(c, self._tenant, [placed])[0]

        return await self._write(work, None, INDEX_JOB)

    def _sharing(self, sharing: Any) -> str:
        chosen = checks.sharing_of(sharing)
        if chosen == "everyone" and self.subject.role != "admin":
            raise InvalidInput(
                "sharing", "`everyone` opens the store to all tenants; only an admin may do that"
            )
        return chosen

    async def list(
        self, *, limit: int = 20, after: str | None = None, before: str | None = None, order: str = "desc"
    ) -> Listed[VectorStore]:
        """Return one page of the tenant's stores, newest first unless `order` is `asc`.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no store.
        """
        check_page(limit, order, MAX_PAGE)
        where, params = store_condition(self.subject)

        def read(c: Connection) -> Listed[VectorStore]:
            seq_of = partial(place_of_store, c, self.subject)
            select = f"SELECT {STORE_COLUMNS} FROM vector_stores v WHERE v.tenant_id = ? AND {where}"
            request = Paging(limit, after, before, order == "desc")
            page_rows, more = page(c, select, [self._tenant, *params], "v.seq", seq_of, request)
            rows = [StoreRow._make(row) for row in page_rows]
            return as_page(store_values(c, self._tenant, rows), [row.id for row in rows], more)

        return await self._read(read, self._tenant)

    async def get(self, id: str) -> VectorStore:
        """Return one store.

        Raises:
            NotFound: no such store for this subject.
        """

        def read(c: Connection) -> VectorStore:
            row = store_seen(c, self.subject, id)
            return store_values(c, row.tenant_id, [row])[0]

        return await self._read(read)

    async def update(self, id: str, change: StoreChange) -> VectorStore:
        """Change the named fields of a store; the rest stays.

        Raises:
            NotFound: no such store for this subject.
            Forbidden: it is another's.
            InvalidInput: names the field and the fix.
        """
        must_write(self.subject)
        given = {
            name: value
            for name in StoreChange.__struct_fields__
            if (value := getattr(change, name)) is not msgspec.UNSET
        }
        put: dict[str, Any] = {}
        if "name" in given:
            put["name"] = checks.text_of(given["name"] or "", "name")
        if "description" in given:
            text = given["description"]
            put["description"] = None if text is None else checks.text_of(text, "description", 4_096)
        if "metadata" in given:
            put["metadata"] = checks.metadata_of(given["metadata"])
        if "expires_after_days" in given:
            put["expires_days"] = checks.days_of(given["expires_after_days"])
        if "chunking" in given:
            put["chunking"] = compact_json(checks.chunking_checked(given["chunking"]))
        if "sharing" in given:
            put["sharing"] = self._sharing(given["sharing"])
        people = checks.people_of(given["writers"]) if "writers" in given else None

        def work(c: Connection) -> VectorStore:
            row = store_owned(c, self.subject, id)
            row = self._alive(row)._replace(**put, last_active_at=now_micros())
            c.run(
                "set_store",
                [
                    row.name, row.description, row.metadata, row.chunking, row.sharing, row.expires_days,
                    row.last_active_at, self._tenant, id,
                ],
            )  # fmt: skip
            if people is not None:
                c.run("drop_writers", [self._tenant, id])
                c.many("add_writer", [(self._tenant, id, user) for user in people])
            return store_values(c, self._tenant, [row])[0]

        return await self._write(work, id)

    async def delete(self, id: str) -> None:
        """Delete a store; its chunks and vectors go with it, its files stay.

        Raises:
            NotFound: no such store for this subject.
            Forbidden: it is not the subject's own.
        """
        must_write(self.subject)

        def work(c: Connection) -> None:
            row = store_owned(c, self.subject, id)
            empty(c, self._core, row.tenant_id, id)
            c.run("drop_store", [row.tenant_id, id])
            note(c, row.tenant_id, [("vector_stores", id)])
            leave_place(c, self.subject, "vector_stores", id, row.seq)

        await self._write(work, id, REMOVE_JOB)

    # --- files in a store --------------------------------------------------------------------------

    async def attach(
        self, store_id: str, files: Sequence[NewStoreFile | str], *, wait: float = 0.0
    ) -> Sequence[StoreFile]:
        """Attach files (or those of these ids) to a store; they are read, split and embedded in the background. A file
        that is attached already stays as it is; one that failed or was cancelled begins again. With `wait` it returns
        once none is in progress, after at most so many seconds (0 to 10).

        Raises:
            NotFound: no such store or file for this subject; nothing was attached.
            Forbidden: the subject may only read the store.
            QuotaExceeded: the store would have more files than it may.
            InvalidInput: names the field and the fix.
        """
        must_write(self.subject)
        check_wait(wait)
        named = [NewStoreFile(file_id=file) if isinstance(file, str) else file for file in files]
        checks.files_named(named, "files")
        ids = [file.file_id for file in named]

        def work(c: Connection) -> list[StoreFile]:
            row = self._alive(store_filled(c, self.subject, store_id))
            quotas = quotas_of(c, self._tenant, self._core.quotas)
            attach(c, self._core, self.subject, row, named, quotas)
            return attached(c)

        def attached(c: Connection) -> list[StoreFile]:
            rows = attached_of(c, self._tenant, store_id, ids)
            return [attached_value(rows[id_]) for id_ in ids if id_ in rows]

        files_attached = await self._write(work, store_id, INDEX_JOB, REMOVE_JOB)
        return await settled(self._core, wait, files_attached, lambda: self._read(attached), none_in_progress)

    async def upload(
        self,
        store_id: str,
        source: Source,
        filename: str | None = None,
        *,
        attributes: Attributes | None = None,
        chunking: Chunking | None = None,
        purpose: Purpose = "assistants",
        media_type: str | None = None,
        wait: float = 0.0,
    ) -> StoreFile:
        """Upload a file into a store, both or neither; the source as `Files.upload` takes it, `wait` as `attach`.

        Raises:
            NotFound: no such store for this subject.
            Forbidden: the subject may only read the store.
            QuotaExceeded: the file is too large, or a quota of the store or the tenant is reached.
            InvalidInput: names the field and the fix.
        """
        must_write(self.subject)
        check_wait(wait)
        name = name_of(source, filename)
        checks.files_named([NewStoreFile(file_id="new", attributes=attributes, chunking=chunking)], "file")
        await self._read(lambda c: self._alive(store_filled(c, self.subject, store_id)))
        async with aclosing(pieces_of(source)) as pieces:
            staged = await self._files.stage(pieces)
        return await self.adopt(
            store_id,
            staged,
            filename=name,
            attributes=attributes,
            chunking=chunking,
            purpose=purpose,
            media_type=media_type,
            wait=wait,
        )

    async def adopt(
        self,
        store_id: str,
        staged: Staged,
        *,
        filename: str,
        attributes: Attributes | None = None,
        chunking: Chunking | None = None,
        purpose: Purpose = "assistants",
        media_type: str | None = None,
        wait: float = 0.0,
    ) -> StoreFile:
        """Make staged bytes a file of a store, both or neither; refused bytes are dropped. Errors as `upload`."""
        try:
            new = NewStoreFile(file_id=staged.id, attributes=attributes, chunking=chunking)
            checks.files_named([new], "file")
            row = self._files.row_of(staged, filename, purpose, media_type, None)
        except BaseException:
            await self._files.drop(staged)
            raise

        def work(c: Connection) -> FileRow:
            store = self._alive(store_filled(c, self.subject, store_id))
            quotas = quotas_of(c, self._tenant, self._core.quotas)
            file = insert(c, row, quotas)
            attach(c, self._core, self.subject, store, [new], quotas)
            return file

        await self._files.keep(staged, work, INDEX_JOB)
        now = await self.file(store_id, row.id)
        return await settled(self._core, wait, now, lambda: self.file(store_id, row.id), is_settled)

    async def files(
        self,
        store_id: str,
        *,
        limit: int = 20,
        after: str | None = None,
        before: str | None = None,
        order: str = "desc",
        state: FileState | None = None,
        batch_id: str | None = None,
    ) -> Listed[StoreFile]:
        """Return one page of the files in a store (or of one batch), newest first unless `order` is `asc`.

        Raises:
            NotFound: no such store or batch for this subject.
            InvalidInput: a field is wrong, or the cursor names no file of the store.
        """
        check_page(limit, order, MAX_PAGE)
        if state is not None and state not in STATES:
            raise InvalidInput("filter", f"must be one of {', '.join(STATES)}")

        def read(c: Connection) -> Listed[StoreFile]:
            row = store_seen(c, self.subject, store_id)
            if batch_id is not None:
                batch_row(c, row.tenant_id, store_id, batch_id)

            def seq_of(id_: str) -> int | None:
                attachment = attached_of(c, row.tenant_id, store_id, [id_]).get(id_)
                return attachment.seq if attachment else left_place(c, self.subject, store_id, id_)

            select = (
                f"SELECT {ATTACHED_COLUMNS} FROM store_files s"
                " JOIN files f ON f.tenant_id = s.tenant_id AND f.id = s.file_id"
                " WHERE s.tenant_id = ? AND s.store_id = ?"
            )
            params: list[Any] = [row.tenant_id, store_id]
            for column, value in (("status", state), ("batch_id", batch_id)):
                if value is not None:
                    select, params = f"{select} AND s.{column} = ?", [*params, value]
            request = Paging(limit, after, before, order == "desc")
            page_rows, more = page(c, select, params, "s.seq", seq_of, request)
            rows = [AttachedRow._make(row) for row in page_rows]
            return as_page([attached_value(row) for row in rows], [row.file_id for row in rows], more)

        return await self._read(read)

    async def file(self, store_id: str, file_id: str) -> StoreFile:
        """Return one file of a store.

        Raises:
            NotFound: no such store, or no such file in it, for this subject.
        """
        return await self._read(lambda c: attached_value(self._attached(c, store_id, file_id)[1]))

    async def set_attributes(self, store_id: str, file_id: str, attributes: Attributes) -> StoreFile:
        """Set the attributes of a file in a store; return once every chunk has them.

        Raises:
            NotFound: no such store, or no such file in it, for this subject.
            Forbidden: the subject may only read the store.
            InvalidInput: names the key.
            StorageError: they did not reach every chunk.
        """
        must_write(self.subject)
        encoded = checks.attributes_of(attributes)

        def work(c: Connection) -> str:
            row = self._alive(store_filled(c, self.subject, store_id))
            attachment = attached_row(c, row.tenant_id, store_id, file_id)
            c.run("set_attributes", [encoded, row.tenant_id, store_id, file_id])
            payload = {"store": store_id, "file": file_id, "attached": attachment.seq}
            return self._core.jobs.place(c, row.tenant_id, ATTRIBUTES_JOB, payload)

        job = await self._write(work, store_id, ATTRIBUTES_JOB)
        ended = await self._core.jobs.wait(self._tenant, job)
        if ended.state != "completed":
            raise StorageError(
                f"some chunks may have the attributes of before; set them again: {ended.error}"
            )
        return await self.file(store_id, file_id)

    async def text(self, store_id: str, file_id: str) -> str:
        """Return the text of a file in a store, from its chunks: their offsets are offsets in it.

        Raises:
            NotFound: no such store, or no such file in it, for this subject.
        """
        return await self._read(lambda c: text_of(c, *self._attached(c, store_id, file_id)))

    async def chunks(
        self, store_id: str, file_id: str, *, limit: int = 20, after: str | None = None
    ) -> Listed[Chunk]:
        """Return one page of the chunks of a file in a store, in the order of its text; none before it is completed.

        Raises:
            NotFound: no such store, or no such file in it, for this subject.
            InvalidInput: a field is wrong, or the cursor names no chunk of the file.
        """
        check_page(limit, "asc", MAX_PAGE)
        listed = partial(chunks_of, limit=limit, after=after)
        return await self._read(lambda c: listed(c, *self._attached(c, store_id, file_id)))

    def _attached(self, c: Connection, store_id: str, file_id: str) -> tuple[str, AttachedRow]:
        """Return the tenant of a store that the subject sees, and a file in the store."""
        tenant = store_seen(c, self.subject, store_id).tenant_id
        return tenant, attached_row(c, tenant, store_id, file_id)

    async def detach(self, store_id: str, file_id: str) -> None:
        """Detach a file from a store; the file itself stays.

        Raises:
            NotFound: no such store, or no such file in it, for this subject.
            Forbidden: the subject may only read the store.
        """
        must_write(self.subject)

        def work(c: Connection) -> None:
            row = store_filled(c, self.subject, store_id)
            attachment = attached_row(c, row.tenant_id, store_id, file_id)
            detach(c, self._core, row.tenant_id, store_id, file_id, attachment.seq)
            note(c, row.tenant_id, [("store_files", store_id, file_id)])
            leave_place(c, self.subject, store_id, file_id, attachment.seq)

        await self._write(work, store_id, REMOVE_JOB)

    async def wait(self, store_id: str, *, every: float = POLL) -> VectorStore:
        """Wait until none of the store's files is in progress, polling `every` so many seconds; return the store.

        Raises:
            NotFound: no such store for this subject, or it was deleted meanwhile.
        """
        while (store := await self.get(store_id)).file_counts.in_progress:
            await asyncio.sleep(every)
        return store

    async def wait_file(self, store_id: str, file_id: str, *, every: float = POLL) -> StoreFile:
        """Wait until a file of a store is no longer in progress, polling `every` so many seconds; return the file.

        Raises:
            NotFound: no such store, or no such file in it, for this subject; or it was detached meanwhile.
        """
        while (file := await self.file(store_id, file_id)).status == "in_progress":
            await asyncio.sleep(every)
        return file

    # --- batches -----------------------------------------------------------------------------------

    async def create_batch(self, store_id: str, files: Sequence[NewStoreFile], *, wait: float = 0.0) -> Batch:
        """Attach files together, to be watched and cancelled together. Errors, and `wait`, as for `attach`."""
        must_write(self.subject)
        check_wait(wait)
        checks.files_named(files, "file_ids")
        id_, now = new_id("vsfb_"), now_micros()

        def work(c: Connection) -> Batch:
            row = self._alive(store_filled(c, self.subject, store_id))
            c.run("add_batch", [self._tenant, id_, store_id, now])
            quotas = quotas_of(c, self._tenant, self._core.quotas)
            attach(c, self._core, self.subject, row, files, quotas, batch_id=id_)
            return batch_value(c, self._tenant, store_id, id_)

        batch = await self._write(work, store_id, INDEX_JOB, REMOVE_JOB)
        return await settled(self._core, wait, batch, lambda: self.batch(store_id, id_), is_settled)

    async def batch(self, store_id: str, batch_id: str) -> Batch:
        """Return a batch as it stands.

        Raises:
            NotFound: no such store, or no such batch of it, for this subject.
        """

        def read(c: Connection) -> Batch:
            row = store_seen(c, self.subject, store_id)
            return batch_value(c, row.tenant_id, store_id, batch_id)

        return await self._read(read)

    async def cancel_batch(self, store_id: str, batch_id: str) -> Batch:
        """End the work on those files of a batch that are not done; what is done stays.

        Raises:
            NotFound: no such store, or no such batch of it, for this subject.
            Forbidden: the subject may only read the store.
        """
        must_write(self.subject)

        def work(c: Connection) -> Batch:
            row = store_filled(c, self.subject, store_id)
            batch_row(c, row.tenant_id, store_id, batch_id)
            for (seq,) in c.all("writing_in_batch", [row.tenant_id, batch_id]):
                hide(c, self._core, row.tenant_id, store_id, seq)
            if c.run("cancel_files", [row.tenant_id, batch_id]):
                c.run("cancel_batch", [row.tenant_id, batch_id])
            return batch_value(c, row.tenant_id, store_id, batch_id)

        return await self._write(work, store_id, REMOVE_JOB)

    # --- search ------------------------------------------------------------------------------------

    async def search(
        self,
        store_ids: str | Sequence[str],
        query: str | Sequence[str] | PassageQuery,
        **fields: Unpack[PassageFields],
    ) -> Passages:
        """Return the best passages of stores for texts, one or several each; `fields` are those of `PassageQuery`.

        Raises:
            NotFound: this subject does not see a store.
            InvalidInput: names the field and the fix.
            EmbedderUnavailable: only vector search was requested, and the model does not answer.
        """
        store_ids = [store_ids] if isinstance(store_ids, str) else store_ids
        return await self._searching.search(store_ids, checks.passage_query(query, fields))

    # --- rows --------------------------------------------------------------------------------------

    async def _read(self, work: Callable[[Connection], T], tenant: str | None = None) -> T:
        """Read; not bound to the tenant if a store of another one may be meant."""
        return await self._core.threads.run(self._core.store.db.read, work, tenant)

    async def _write(self, work: Callable[[Connection], T], store_id: str | None, *jobs: str) -> T:
        """Write in the tenant, and wake jobs of these kinds. The store may be another tenant's, shared for reading,
        which a transaction that is bound to one tenant does not see."""
        try:
            then = self._core.jobs.woken(*jobs)
            return await self._core.threads.result(self._core.store.db.write(work, then, self._tenant))
        except NotFound:
            if store_id is not None:
                await self._read(lambda c: store_local(c, self.subject, store_id))
            raise

    def _alive(self, row: StoreRow) -> StoreRow:
        if row.lapsed(now_micros()):
            raise InvalidInput(
                "vector_store_id", f"the vector store {row.id} has expired; create another one"
            )
        return row
