"""Files, stores and their contents as rows and as values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

import msgspec

from memoranda.clock import moment, now_micros
from memoranda.errors import NotFound
from memoranda.knowledge.values import (
    Batch,
    FileCounts,
    FileError,
    FileState,
    StoredFile,
    StoreFile,
    Upload,
    UploadPart,
    VectorStore,
)
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.ids import listed, nameable
from memoranda.store.rows import CHUNK, EMPTY, Record
from memoranda.text.hashing import digest
from memoranda.text.splitting import Chunking

T = TypeVar("T")
R = TypeVar("R", bound=tuple[Any, ...])


class FileRow(NamedTuple):
    """One row of `files`."""

    tenant_id: str
    id: str
    seq: int
    filename: str
    bytes: int
    purpose: str
    media_type: str | None
    sha256: str
    user_id: str | None
    created_at: int
    expires_at: int | None


class UploadRow(NamedTuple):
    """One row of `uploads`."""

    tenant_id: str
    id: str
    filename: str
    bytes: int
    purpose: str
    media_type: str | None
    status: str
    user_id: str | None
    file_id: str | None
    expires_seconds: int | None
    created_at: int
    expires_at: int


class StoreRow(NamedTuple):
    """One row of `vector_stores`."""

    tenant_id: str
    id: str
    seq: int
    name: str
    description: str | None
    metadata: str
    chunking: str
    model: str
    dim: int
    user_id: str | None
    sharing: str
    expires_days: int | None
    expired: int
    created_at: int
    last_active_at: int

    def lapsed(self, now: int) -> bool:
        """Return True if the store has expired by `now`, swept or not."""
        return bool(self.expired) or (
            self.expires_days is not None and self.last_active_at + self.expires_days * DAY <= now
        )


class AttachedRow(NamedTuple):
    """One row of `store_files`, with the file's name and size."""

    store_id: str
    file_id: str
    seq: int
    status: str
    error_code: str | None
    error_message: str | None
    attributes: str
    chunking: str
    batch_id: str | None
    writing: int
    chunk_count: int
    usage_bytes: int
    title: str | None
    notes: str
    created_at: int
    filename: str
    bytes: int
    sha256: str


DAY = 86_400_000_000
FILE_COLUMNS = ", ".join(f"f.{name}" for name in FileRow._fields)
STORE_COLUMNS = ", ".join(f"v.{name}" for name in StoreRow._fields)
ATTACHED_COLUMNS = ", ".join(
    f"{'f' if name in ('filename', 'bytes', 'sha256') else 's'}.{name}" for name in AttachedRow._fields
)


def _maybe(value: int | None) -> Any:
    return None if value is None else moment(value)


def file_value(row: FileRow) -> StoredFile:
    """Return the file as the caller sees it."""
    return StoredFile(
        id=row.id,
        filename=row.filename,
        bytes=row.bytes,
        purpose=row.purpose,  # type: ignore[arg-type]
        media_type=row.media_type,
        sha256=row.sha256,
        user_id=row.user_id,
        created_at=moment(row.created_at),
        expires_at=_maybe(row.expires_at),
    )


def upload_value(row: UploadRow, file: FileRow | None, now: int) -> Upload:
    """Return the upload as the caller sees it; after its time it is expired, swept or not."""
    status = "expired" if row.status == "pending" and row.expires_at <= now else row.status
    return Upload(
        id=row.id,
        filename=row.filename,
        bytes=row.bytes,
        purpose=row.purpose,  # type: ignore[arg-type]
        media_type=row.media_type,
        status=status,  # type: ignore[arg-type]
        user_id=row.user_id,
        created_at=moment(row.created_at),
        expires_at=moment(row.expires_at),
        file=None if file is None else file_value(file),
    )


def part_value(upload_id: str, row: Row) -> UploadPart:
    """Return a part of an upload as the caller sees it."""
    return UploadPart(id=row[0], upload_id=upload_id, bytes=row[1], created_at=moment(row[2]))


def store_values(c: Connection, tenant: str, rows: Sequence[StoreRow]) -> list[VectorStore]:
    """Return stores of one tenant as the caller sees them, with their counts."""
    ids = listed(row.id for row in rows)
    counts: dict[str, FileCounts] = {row.id: FileCounts() for row in rows}
    usage: dict[str, int] = dict.fromkeys(counts, 0)
    for id_, status, count, size in c.all("counts_of_stores", [tenant, ids]):
        setattr(counts[id_], status, count)
        usage[id_] += size or 0
    writers: dict[str, list[str]] = {row.id: [] for row in rows}
    for id_, user in c.all("writers_of", [tenant, ids]):
        writers[id_].append(user)
    now = now_micros()
    return [_store_value(row, counts[row.id], usage[row.id], writers[row.id], now) for row in rows]


def _store_value(row: StoreRow, counts: FileCounts, usage: int, writers: list[str], now: int) -> VectorStore:
    days = row.expires_days
    status = "expired" if row.lapsed(now) else "in_progress" if counts.in_progress else "completed"
    return VectorStore(
        id=row.id,
        name=row.name,
        description=row.description,
        metadata=msgspec.json.decode(row.metadata),
        status=status,  # type: ignore[arg-type]
        file_counts=counts,
        usage_bytes=usage,
        chunking=chunking_of(row.chunking),
        model=row.model,
        dimension=row.dim,
        user_id=row.user_id,
        writers=writers,
        sharing=row.sharing,  # type: ignore[arg-type]
        expires_after_days=days,
        created_at=moment(row.created_at),
        last_active_at=moment(row.last_active_at),
        expires_at=None if days is None else moment(row.last_active_at) + timedelta(days=days),
    )


def attached_value(row: AttachedRow) -> StoreFile:
    """Return a file in a store as the caller sees it."""
    error = None
    if row.status == "failed":
        error = FileError(code=row.error_code, message=row.error_message or "")  # type: ignore[arg-type]
    return StoreFile(
        id=row.file_id,
        vector_store_id=row.store_id,
        filename=row.filename,
        bytes=row.bytes,
        status=row.status,  # type: ignore[arg-type]
        last_error=error,
        chunking=chunking_of(row.chunking),
        attributes=msgspec.json.decode(row.attributes),
        usage_bytes=row.usage_bytes,
        chunk_count=row.chunk_count,
        title=row.title,
        batch_id=row.batch_id,
        notes=msgspec.json.decode(row.notes),
        created_at=moment(row.created_at),
    )


def chunking_of(text: str) -> Chunking:
    """Return the chunking of a store or file from its row."""
    return msgspec.json.decode(text, type=Chunking)


def files_of(c: Connection, tenant: str, ids: Iterable[str]) -> dict[str, FileRow]:
    """Return the existing files of these ids, by id."""
    return {row[1]: FileRow._make(row) for row in c.all("files_by_id", [tenant, listed(ids)])}


def attached_of(c: Connection, tenant: str, store: str, ids: Iterable[str]) -> dict[str, AttachedRow]:
    """Return the files of these ids in the store, by file id."""
    rows = c.all("store_files_by_id", [tenant, store, listed(ids)])
    return {row[1]: AttachedRow._make(row) for row in rows}


def source_of(store_id: str, attached: int) -> str:
    """Return the source of the chunks of an attachment."""
    return f"{store_id}/{attached}"


def chunk_row(
    *,
    tenant: str,
    id_: str,
    store_id: str,
    attached: int,
    place: tuple[int, int],
    content: str,
    header: str | None,
    attributes: str,
    times: tuple[int, int, int],
) -> Record:
    """Return the row of a chunk of an attachment. `place` is its number and where it begins in the file; `times` are
    when it occurred, was created and was updated."""
    content_hash = digest(content)
    occurred_at, created_at, updated_at = times
    return EMPTY._replace(
        tenant_id=tenant,
        id=id_,
        kind=CHUNK,
        content=content,
        content_hash=content_hash,
        dedup_key=digest(f"{store_id}/{attached}/{place[0]}/{place[1]}", content_hash),
        channel_id=store_id,
        source=source_of(store_id, attached),
        metadata=attributes,
        occurred_at=occurred_at,
        created_at=created_at,
        updated_at=updated_at,
        header=header,
    )


def attached_row(c: Connection, tenant: str, store_id: str, file_id: str) -> AttachedRow:
    """Return a file in a store.

    Raises:
        NotFound: it is not in it.
    """
    row = attached_of(c, tenant, store_id, [file_id]).get(file_id)
    if row is None:
        raise NotFound(f"no file {file_id!r} in the vector store {store_id!r}")
    return row


def batch_row(c: Connection, tenant: str, store_id: str, batch_id: str) -> Row:
    """Return a batch of a store: (id, store, cancelled, created_at).

    Raises:
        NotFound: the store has none of this id.
    """
    row = c.one("get_batch", [tenant, store_id, batch_id]) if nameable(batch_id) else None
    if row is None:
        raise NotFound(f"no batch {batch_id!r} in the vector store {store_id!r}")
    return row


def batch_value(c: Connection, tenant: str, store_id: str, batch_id: str) -> Batch:
    """Return a batch as the caller sees it, with its counts.

    Raises:
        NotFound: the store has none of this id.
    """
    _, _, cancelled, created = batch_row(c, tenant, store_id, batch_id)
    counts = FileCounts()
    for status, count in c.all("counts_of_batch", [tenant, batch_id]):
        setattr(counts, status, count)
    state: FileState = "in_progress" if counts.in_progress else "completed"
    if cancelled:
        state = "cancelled"
    elif not counts.in_progress and counts.failed and not counts.completed:
        state = "failed"
    return Batch(
        id=batch_id,
        vector_store_id=store_id,
        status=state,
        file_counts=counts,
        created_at=moment(created),
    )
