"""Large files in parts: announced, sent piece by piece, joined in the order that the caller gives."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import md5, sha256
from typing import Any

from memoranda.clock import now_micros
from memoranda.errors import Conflict, InvalidInput, NotFound, QuotaExceeded
from memoranda.knowledge import checks
from memoranda.knowledge.files import Files, Staged, insert
from memoranda.knowledge.quotas import check_file, check_storage, quotas_of
from memoranda.knowledge.records import FileRow, UploadRow, files_of, part_value, upload_value
from memoranda.knowledge.removal import end_upload
from memoranda.knowledge.sources import Source, pieces_of
from memoranda.knowledge.values import Purpose, Upload, UploadPart
from memoranda.storage.blobs.base import BlobWriter
from memoranda.storage.sql.base import Connection
from memoranda.store.access import must_write, owns
from memoranda.store.core import Core
from memoranda.store.ids import nameable, new_id
from memoranda.types import Subject

LIFETIME = 3_600_000_000
"""Microseconds in which an upload must be completed."""
MAX_BYTES = 8 << 30
MAX_PART = 64 << 20
MAX_PARTS = 10_000


class Uploads:
    """The uploads that one subject sees."""

    def __init__(self, core: Core, subject: Subject, files: Files) -> None:
        self._core = core
        self.subject = subject
        self._files = files
        self._tenant = subject.tenant_id

    async def create(
        self,
        *,
        filename: str,
        bytes: int,
        purpose: Purpose,
        media_type: str | None = None,
        expires_after_seconds: int | None = None,
    ) -> Upload:
        """Announce a file of `bytes` bytes that arrives in parts within the hour.

        Raises:
            InvalidInput: names the field and the fix.
            QuotaExceeded: a file may not be so large.
        """
        must_write(self.subject)
        now = now_micros()
        if not isinstance(bytes, int) or isinstance(bytes, bool) or not 1 <= bytes <= MAX_BYTES:
            raise InvalidInput("bytes", f"must be a whole number between 1 and {MAX_BYTES}")
        row = UploadRow(
            tenant_id=self._tenant,
            id=new_id("upload_"),
            filename=checks.text_of(filename, "filename", empty=False),
            bytes=bytes,
            purpose=checks.purpose_of(purpose),
            media_type=None if media_type is None else checks.text_of(media_type, "mime_type"),
            status="pending",
            user_id=self.subject.user_id,
            file_id=None,
            expires_seconds=checks.seconds_of(expires_after_seconds),
            created_at=now,
            expires_at=now + LIFETIME,
        )

        def work(c: Connection) -> None:
            quotas = quotas_of(c, self._tenant, self._core.quotas)
            try:
                check_file(bytes, quotas)
            except QuotaExceeded as exc:
                raise QuotaExceeded("bytes", str(exc).partition(": ")[2], exc.quota) from exc
            c.run("add_tenant", [self._tenant, now])
            c.run(
                "add_upload",
                [
                    row.tenant_id, row.id, row.filename, row.bytes, row.purpose, row.media_type, row.user_id,
                    row.expires_seconds, row.created_at, row.expires_at,
                ],
            )  # fmt: skip

        await self._write(work)
        return upload_value(row, None, now)

    async def get(self, id: str) -> Upload:
        """Return an upload as it stands.

        Raises:
            NotFound: no such upload for this subject.
        """

        def read(c: Connection) -> Upload:
            row = self._row(c, id)
            file = files_of(c, self._tenant, [row.file_id]).get(row.file_id) if row.file_id else None
            return upload_value(row, file, now_micros())

        return await self._core.threads.run(self._core.store.db.read, read, self._tenant)

    def _row(self, c: Connection, id_: str) -> UploadRow:
        columns = c.one("get_upload", [self._tenant, id_]) if nameable(id_) else None
        row = None if columns is None else UploadRow._make(columns)
        if row is None or not owns(self.subject, row.user_id):
            raise NotFound(f"no upload {id_!r}")
        return row

    def _pending(self, c: Connection, id_: str) -> UploadRow:
        row = self._row(c, id_)
        _must_be_pending(row)
        return row

    async def add_part(self, upload_id: str, source: Source) -> UploadPart:
        """Store one part of at most 64 MB, from a path, bytes, an open file or pieces as they arrive. Parts may come in
        any order and concurrently.

        Raises:
            NotFound: no such upload for this subject.
            InvalidInput: the upload is over, or the part is empty or too large.
            QuotaExceeded: the storage quota of the tenant is reached.
        """
        must_write(self.subject)
        row = await self._core.threads.run(
            self._core.store.db.read, lambda c: self._pending(c, upload_id), self._tenant
        )
        id_ = new_id("part_")
        writer = await self._core.threads.run(self._core.blobs.writer, self._tenant, id_)
        try:
            async for piece in pieces_of(source):
                if writer.size + len(piece) > min(MAX_PART, row.bytes):
                    most = f"{MAX_PART} bytes" if row.bytes > MAX_PART else f"the {row.bytes} bytes announced"
                    raise InvalidInput("data", f"is larger than {most}; send smaller parts")
                await self._core.threads.run(writer.write, piece)
            if not writer.size:
                raise InvalidInput("data", "is empty; a part holds at least one byte")
            await self._core.threads.run(writer.commit)
        except BaseException:
            await self._core.threads.run(writer.abort)
            raise
        return await self._note(upload_id, id_, writer.size)

    async def _note(self, upload_id: str, id_: str, size: int) -> UploadPart:
        now = now_micros()

        def work(c: Connection) -> None:
            row = self._pending(c, upload_id)
            parts = c.all("parts_of", [self._tenant, upload_id])
            if len(parts) >= MAX_PARTS:
                raise InvalidInput(
                    "data", f"an upload takes at most {MAX_PARTS} parts; begin another one with larger parts"
                )
            if sum(part[1] for part in parts) + size > row.bytes:
                raise InvalidInput(
                    "data", f"the parts are together more than the {row.bytes} bytes announced"
                )
            check_storage(c, self._tenant, size, quotas_of(c, self._tenant, self._core.quotas))
            c.run("add_part", [self._tenant, upload_id, id_, size, now])

        try:
            await self._write(work)
        except Exception:  # not if the caller is cancelled: the part may still be written
            await self._core.threads.run(self._core.blobs.delete, self._tenant, id_)
            raise
        return part_value(upload_id, (id_, size, now))

    async def complete(self, upload_id: str, part_ids: Sequence[str], md5: str | None = None) -> Upload:
        """Make a file of the parts, in the order named. Completing a completed upload returns its file again.

        Raises:
            NotFound: no such upload for this subject.
            InvalidInput: a part does not belong to the upload, the bytes are not those announced, or have another MD5.
        """
        must_write(self.subject)
        row, sizes = await self._core.threads.run(
            self._core.store.db.read, lambda c: self._begun(c, upload_id), self._tenant
        )
        if row.status == "completed":
            return await self.get(upload_id)
        try:
            return await self._completed(row, part_ids, sizes, md5)
        except (InvalidInput, NotFound, Conflict):
            if (now := await self.get(upload_id)).status == "completed":
                return now  # by another call, meanwhile
            raise

    async def _completed(
        self, row: UploadRow, part_ids: Sequence[str], sizes: dict[str, int], md5: str | None
    ) -> Upload:
        upload_id = row.id
        _check_parts(part_ids, sizes, row.bytes)
        staged = await self._core.threads.run(self._together, list(part_ids), md5)
        file = self._files.row_of(staged, row.filename, row.purpose, row.media_type, row.expires_seconds)
        file = file._replace(user_id=row.user_id)

        def work(c: Connection) -> FileRow:
            self._pending(c, upload_id)
            c.run("drop_parts", [self._tenant, upload_id])  # their bytes belong to the file now
            stored = insert(c, file, quotas_of(c, self._tenant, self._core.quotas))
            if not c.run("end_upload", ["completed", stored.id, self._tenant, upload_id]):
                raise Conflict(f"the upload {upload_id} was ended meanwhile")
            return stored

        stored = await self._files.keep(staged, work)
        for id_ in sizes:
            await self._core.threads.run(self._core.blobs.delete, self._tenant, id_)
        return upload_value(row._replace(status="completed", file_id=stored.id), stored, now_micros())

    def _begun(self, c: Connection, id_: str) -> tuple[UploadRow, dict[str, int]]:
        row = self._row(c, id_)
        if row.status != "completed":
            _must_be_pending(row)
        return row, {part: size for part, size, _ in c.all("parts_of", [self._tenant, id_])}

    def _together(self, part_ids: Sequence[str], wanted: str | None) -> Staged:
        id_ = new_id("file-")
        writer: BlobWriter = self._core.blobs.writer(self._tenant, id_)
        hashes: list[Any] = [sha256(), md5(usedforsecurity=False)]
        try:
            for part in part_ids:
                for piece in self._core.blobs.read(self._tenant, part):
                    for hash_ in hashes:
                        hash_.update(piece)
                    writer.write(piece)
            if wanted is not None and wanted.lower() != hashes[1].hexdigest():
                raise InvalidInput("md5", f"is not that of the bytes that came, {hashes[1].hexdigest()}")
            writer.commit()
        except BaseException:
            writer.abort()
            raise
        return Staged(id_, writer.size, hashes[0].hexdigest())

    async def cancel(self, upload_id: str) -> Upload:
        """End an upload; its parts are deleted.

        Raises:
            NotFound: no such upload for this subject.
            InvalidInput: it is over already.
        """
        must_write(self.subject)
        row = await self._core.threads.run(
            self._core.store.db.read, lambda c: self._pending(c, upload_id), self._tenant
        )
        await end_upload(self._core, self._tenant, row.id, "cancelled")
        return await self.get(upload_id)

    async def _write(self, work: Any) -> Any:
        return await self._core.threads.result(self._core.store.db.write(work, tenant=self._tenant))


def _must_be_pending(row: UploadRow) -> None:
    status = "expired" if row.status == "pending" and row.expires_at <= now_micros() else row.status
    if status != "pending":
        raise InvalidInput("upload_id", f"the upload {row.id} is {status}; begin another one")


def _check_parts(part_ids: Sequence[str], sizes: dict[str, int], announced: int) -> None:
    if not part_ids:
        raise InvalidInput("part_ids", "must name the parts in order")
    for i, id_ in enumerate(part_ids):
        if id_ not in sizes:
            raise InvalidInput(f"part_ids[{i}]", f"{id_!r} is no part of this upload")
    if len(set(part_ids)) < len(part_ids):
        raise InvalidInput("part_ids", "names a part twice")
    total = sum(sizes[id_] for id_ in part_ids)
    if total != announced:
        raise InvalidInput("part_ids", f"are {total} bytes together, {announced} were announced")
