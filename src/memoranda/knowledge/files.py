"""Uploaded files: bytes in a blob, described by a row."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Any

import msgspec

from memoranda.clock import now_micros
from memoranda.config.data_sections import Quotas
from memoranda.errors import InvalidInput, NotFound, StorageError
from memoranda.knowledge import checks
from memoranda.knowledge.access import file_condition, sees_file
from memoranda.knowledge.quotas import check_file, check_storage, quotas_of
from memoranda.knowledge.records import FILE_COLUMNS, FileRow, file_value, files_of
from memoranda.knowledge.removal import REMOVE_JOB, detach
from memoranda.knowledge.sources import Source, name_of, pieces_of
from memoranda.knowledge.values import PageQuery, Purpose, StoredFile
from memoranda.readers.base import PageImage, Unreadable
from memoranda.storage.blobs.base import BlobWriter
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write
from memoranda.store.core import Core
from memoranda.store.forgotten import note
from memoranda.store.ids import new_id
from memoranda.store.integrity import verified
from memoranda.store.paging import Listed, Paging, as_page, check_page, leave_place, left_place, page
from memoranda.types import Subject
from memoranda.validation import convert

MAX_PAGE = 10_000


class Staged(msgspec.Struct, frozen=True):
    """Bytes that are stored and not yet a file: their id, their number, their SHA-256."""

    id: str
    bytes: int
    sha256: str


class Files:
    """The files that one subject sees."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def upload(
        self,
        source: Source,
        filename: str | None = None,
        *,
        purpose: Purpose = "assistants",
        media_type: str | None = None,
        expires_after_seconds: int | None = None,
    ) -> StoredFile:
        """Store a file: a path, bytes, a file opened for reading bytes, or pieces as they come. Its bytes are written
        piece by piece. `filename` is the path's own unless given; its extension decides the format.

        Raises:
            InvalidInput: names the field and the fix; nothing is stored.
            QuotaExceeded: it is larger than a file may be, or than what is left.
        """
        name = checks.text_of(name_of(source, filename), "filename", empty=False)
        checks.purpose_of(purpose)
        checks.seconds_of(expires_after_seconds)
        async with aclosing(pieces_of(source)) as pieces:
            staged = await self.stage(pieces)
        return await self.adopt(
            staged,
            filename=name,
            purpose=purpose,
            media_type=media_type,
            expires_after_seconds=expires_after_seconds,
        )

    async def expect(self, size: int) -> None:
        """Refuse a file of so many bytes before they arrive.

        Raises:
            QuotaExceeded: it is larger than a file may be.
        """
        check_file(size, await self._quotas())

    async def stage(self, pieces: AsyncIterable[bytes]) -> Staged:
        """Store the bytes of a file before its name is known; `adopt` or `drop` follows. Bytes never adopted are swept.

        Raises:
            QuotaExceeded: it is larger than a file may be.
            StorageError: the disk is full; nothing is left behind.
        """
        must_write(self.subject)
        tenant, id_ = self.subject.tenant_id, new_id("file-")
        quotas = await self._quotas()
        writer = await self._core.threads.run(self._core.blobs.writer, tenant, id_)
        try:
            digest = sha256()
            async for piece in pieces:
                check_file(writer.size + len(piece), quotas)
                await self._core.threads.run(_take, writer, piece, digest)
            await self._core.threads.run(writer.commit)
        except BaseException:
            await self._core.threads.run(writer.abort)
            raise
        return Staged(id_, writer.size, digest.hexdigest())

    async def drop(self, staged: Staged) -> None:
        """Delete staged bytes."""
        await self._core.threads.run(self._core.blobs.delete, self.subject.tenant_id, staged.id)

    async def adopt(
        self,
        staged: Staged,
        *,
        filename: str,
        purpose: Purpose = "assistants",
        media_type: str | None = None,
        expires_after_seconds: int | None = None,
    ) -> StoredFile:
        """Make staged bytes a file; they are dropped if that fails. Errors as `upload`."""
        try:
            row = self.row_of(staged, filename, purpose, media_type, expires_after_seconds)
            quotas = await self._quotas()
        except BaseException:
            await self.drop(staged)
            raise
        return file_value(await self.keep(staged, lambda c: insert(c, row, quotas)))

    async def keep(self, staged: Staged, work: Callable[[Connection], FileRow], *jobs: str) -> FileRow:
        """Write the row of staged bytes, and wake jobs of these kinds; the bytes are dropped if that is refused. Not if
        the caller is cancelled: the row may still be written, and bytes without one are swept."""
        try:
            then = self._core.jobs.woken(*jobs)
            return await self._core.threads.result(
                self._core.store.db.write(work, then, self.subject.tenant_id)
            )
        except Exception:
            await self.drop(staged)
            raise

    def row_of(
        self, staged: Staged, filename: str, purpose: str, media_type: str | None, seconds: int | None
    ) -> FileRow:
        """Return the row of a file, validated, without its number."""
        now = now_micros()
        seconds = checks.seconds_of(seconds)
        return FileRow(
            tenant_id=self.subject.tenant_id,
            id=staged.id,
            seq=0,
            filename=checks.text_of(filename, "filename", empty=False),
            bytes=staged.bytes,
            purpose=checks.purpose_of(purpose),
            media_type=None if media_type is None else checks.text_of(media_type, "mime_type"),
            sha256=staged.sha256,
            user_id=self.subject.user_id,
            created_at=now,
            expires_at=None if seconds is None else now + seconds * 1_000_000,
        )

    async def _quotas(self) -> Quotas:
        tenant = self.subject.tenant_id
        default = self._core.quotas
        return await self._core.threads.run(
            self._core.store.db.read, lambda c: quotas_of(c, tenant, default), tenant
        )

    async def list(
        self,
        *,
        limit: int = MAX_PAGE,
        after: str | None = None,
        order: str = "desc",
        purpose: str | None = None,
    ) -> Listed[StoredFile]:
        """Return one page of files in the order of upload, newest first unless `order` is `asc`.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no file.
        """
        check_page(limit, order, MAX_PAGE)
        where, params = file_condition(self.subject)
        if purpose is not None:
            where, params = f"{where} AND f.purpose = ?", [*params, checks.purpose_of(purpose)]
        tenant = self.subject.tenant_id

        def read(c: Connection) -> Listed[StoredFile]:
            def seq_of(id_: str) -> int | None:
                row = self._seen(c, id_)
                return row.seq if row is not None else left_place(c, self.subject, "files", id_)

            select = f"SELECT {FILE_COLUMNS} FROM files f WHERE f.tenant_id = ? AND {where}"
            request = Paging(limit, after, None, order == "desc")
            rows, more = page(c, select, [tenant, *params], "f.seq", seq_of, request)
            values = [file_value(FileRow._make(row)) for row in rows]
            return as_page(values, [value.id for value in values], more)

        return await self._core.threads.run(self._core.store.db.read, read, tenant)

    def _seen(self, c: Connection, id_: str) -> FileRow | None:
        row = files_of(c, self.subject.tenant_id, [id_]).get(id_)
        return row if row is not None and sees_file(self.subject, row) else None

    async def get(self, id: str) -> StoredFile:
        """Return one file.

        Raises:
            NotFound: no such file for this subject.
        """
        return file_value(await self._row(id))

    async def _row(self, id_: str) -> FileRow:
        row = await self._core.threads.run(
            self._core.store.db.read, lambda c: self._seen(c, id_), self.subject.tenant_id
        )
        if row is None:
            raise NotFound(f"no file {id_!r}")
        return row

    async def content(self, id: str) -> tuple[StoredFile, AsyncIterator[bytes]]:
        """Return a file and its bytes, piece by piece.

        Raises:
            NotFound: no such file for this subject.
            DamagedData: the bytes are not those that were uploaded, which is known before the last piece.
        """
        row = await self._row(id)
        stored = await self._core.threads.run(self._core.blobs.read, row.tenant_id, row.id)
        pieces = verified(stored, row.sha256, lambda: self._core.store.damage.note("file", row.id))
        first = await self._core.threads.run(next, pieces, None)

        async def following() -> AsyncIterator[bytes]:
            piece = first
            while piece is not None:
                yield piece
                piece = await self._core.threads.run(next, pieces, None)

        return file_value(row), following()

    async def page_image(
        self, id: str, page: int = 1, *, width: int = 1_000, highlight: Sequence[str] = (), find: bool = False
    ) -> PageImage:
        """Return the image of a page of a PDF, as PNG, with passages of its text marked.

        Args:
            id: the file.
            page: its number, from 1.
            width: the pixels of a line, 100..2000; an image that would be higher than 4 000 pixels is narrower.
            highlight: at most 4 passages of at most 1 000 characters. One that the page has in part is marked
                sentence by sentence, one that it lacks is not.
            find: the first of 20 pages from `page` on that has a passage is drawn, or else one that has a sentence
                of it, or else `page` itself.

        Raises:
            NotFound: no such file for this subject.
            InvalidInput: it has no such page, or is no PDF that can be opened.
            StorageError: the process that draws did not work.
        """
        asked = convert({"page": page, "width": width, "highlight": list(highlight), "find": find}, PageQuery)
        row = await self._row(id)
        try:
            async with self._core.local_file(row.tenant_id, row.id, row.sha256) as path:
                drawn = await self._core.readers.render(
                    path, asked.page, asked.width, asked.highlight, find=asked.find
                )
        except Unreadable as exc:
            if exc.code == "server_error":
                raise StorageError(f"{row.filename} could not be drawn: {exc}") from exc
            raise InvalidInput("file_id", f"{row.filename} {exc}") from exc
        if not drawn.image:
            raise InvalidInput("page", f"must be 1 to {drawn.pages}, the pages of {row.filename}, not {page}")
        return drawn

    async def delete(self, id: str) -> int:
        """Delete a file with its bytes, and detach it from every store. Return how many memories were written after it
        was read: `Memories.list` and `Memories.forget` select them with `source=id`.

        Raises:
            NotFound: no such file for this subject.
        """
        must_write(self.subject)
        row = await self._row(id)

        def work(c: Connection) -> bool:
            leave_place(c, self.subject, "files", row.id, row.seq)
            for store_id, seq in c.all("places_of_file", [row.tenant_id, row.id]):
                leave_place(c, self.subject, store_id, row.id, seq)
            note(c, row.tenant_id, [("files", row.id)])
            return remove_file(c, self._core, row.tenant_id, row.id)

        then = self._core.jobs.woken(REMOVE_JOB)
        gone = await self._core.threads.result(self._core.store.db.write(work, then, row.tenant_id))
        if not gone:
            raise NotFound(f"no file {id!r}")
        await self._core.threads.run(self._core.blobs.delete, row.tenant_id, row.id)

        def count(c: Connection) -> int:
            counted = c.one("count_written_after", [row.tenant_id, f'%"{row.id}"%'])
            return int(counted[0]) if counted else 0

        return await self._core.threads.run(self._core.store.db.read, count, row.tenant_id)


def _take(writer: BlobWriter, piece: bytes, digest: Any) -> None:
    digest.update(piece)
    writer.write(piece)


def insert(c: Connection, row: FileRow, quotas: Quotas) -> FileRow:
    """Insert the row of a file, numbered in the order of files, if the quota of the tenant allows it.

    Raises:
        QuotaExceeded: it is larger than what is left.
    """
    check_storage(c, row.tenant_id, row.bytes, quotas)
    c.run("add_tenant", [row.tenant_id, row.created_at])
    revs = c.one("draw_revs", [1])
    assert revs is not None
    placed = row._replace(seq=int(revs[0]))
    c.run("add_file", placed)
    return placed


def remove_file(c: Connection, core: Core, tenant: str, id_: str) -> bool:
    """Delete the row of a file and detach it from every store; return True if it existed. Its bytes are deleted after
    the commit, or with the next sweep."""
    for store_id, seq in c.all("places_of_file", [tenant, id_]):
        detach(c, core, tenant, store_id, id_, seq)
    c.run("drop_upload_of", [tenant, id_])
    return bool(c.run("drop_file", [tenant, id_]))
