"""Conversion of the values of the knowledge package to wire structs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from msgspec import UNSET
from starlette.responses import Response

from memoranda.knowledge.values import (
    Batch,
    FileCounts,
    Passage,
    Passages,
    StoredFile,
    StoreFile,
    Upload,
    UploadPart,
    VectorStore,
)
from memoranda.server import wire_knowledge as wire
from memoranda.server.errors import JSON
from memoranda.server.wire_knowledge import ShownStrategy, ShownTokens
from memoranda.server.wire_passages import FlatHit, FlatPage, PassageHit, PassagePage, PassagePlace
from memoranda.text.splitting import Chunking

POLL = "openai-poll-after-ms"
SOON, LATER = 50, 200
"""Milliseconds. The clients take the first answer's number and keep it, so it is chosen by how much there is to do."""
SMALL_BYTES, SMALL_FILES = 1 << 20, 20
_encoder = msgspec.json.Encoder()


def seconds(at: datetime) -> int:
    """Whole seconds since 1970."""
    return int(at.timestamp())


def _seconds_or_none(at: datetime | None) -> int | None:
    return None if at is None else seconds(at)


def stored_file(file: StoredFile) -> wire.FileObject:
    return wire.FileObject(
        id=file.id,
        bytes=file.bytes,
        created_at=seconds(file.created_at),
        expires_at=UNSET if file.expires_at is None else seconds(file.expires_at),
        filename=file.filename,
        purpose=file.purpose,
        sha256=file.sha256,
        media_type=file.media_type,
    )


def upload(upload: Upload) -> wire.UploadObject:
    return wire.UploadObject(
        id=upload.id,
        bytes=upload.bytes,
        created_at=seconds(upload.created_at),
        expires_at=seconds(upload.expires_at),
        filename=upload.filename,
        purpose=upload.purpose,
        status=upload.status,
        file=None if upload.file is None else stored_file(upload.file),
    )


def part(part: UploadPart) -> wire.PartObject:
    return wire.PartObject(
        id=part.id, upload_id=part.upload_id, created_at=seconds(part.created_at), bytes=part.bytes
    )


def strategy(chunking: Chunking) -> ShownStrategy:
    """Always of type `static`, the only one that OpenAI's clients know, with our own fields beside it."""
    return ShownStrategy(
        static=ShownTokens(max_chunk_size_tokens=chunking.size, chunk_overlap_tokens=chunking.overlap),
        chunk_size=chunking.size,
        chunk_overlap=chunking.overlap,
        strategy=UNSET if chunking.strategy == "fixed" else chunking.strategy,
        contextual_header=True if chunking.header else UNSET,
    )


def counts(counts: FileCounts) -> wire.ShownCounts:
    return wire.ShownCounts(
        in_progress=counts.in_progress,
        completed=counts.completed,
        failed=counts.failed,
        cancelled=counts.cancelled,
        total=counts.total,
    )


def store(store: VectorStore) -> wire.StoreObject:
    days = store.expires_after_days
    return wire.StoreObject(
        id=store.id,
        created_at=seconds(store.created_at),
        name=store.name,
        description=store.description,
        usage_bytes=store.usage_bytes,
        file_counts=counts(store.file_counts),
        status=store.status,
        last_active_at=seconds(store.last_active_at),
        expires_after=UNSET if days is None else wire.ExpiresAfterActive(anchor="last_active_at", days=days),
        expires_at=_seconds_or_none(store.expires_at),
        metadata=store.metadata,
        chunking_strategy=strategy(store.chunking),
        model=store.model,
        dimension=store.dimension,
        owner=store.user_id,
        sharing=store.sharing,
        writers=store.writers,
    )


def store_file(file: StoreFile) -> wire.StoreFileObject:
    return wire.StoreFileObject(
        id=file.id,
        created_at=seconds(file.created_at),
        usage_bytes=file.usage_bytes,
        vector_store_id=file.vector_store_id,
        status=file.status,
        last_error=file.last_error,
        chunking_strategy=strategy(file.chunking),
        attributes=file.attributes,
        filename=file.filename,
        bytes=file.bytes,
        chunk_count=file.chunk_count,
        title=file.title,
        notes=file.notes,
    )


def batch(batch: Batch) -> wire.FileBatchObject:
    return wire.FileBatchObject(
        id=batch.id,
        created_at=seconds(batch.created_at),
        vector_store_id=batch.vector_store_id,
        status=batch.status,
        file_counts=counts(batch.file_counts),
    )


def passages(result: Passages) -> PassagePage:
    hits = [
        PassageHit(**_place(passage), content=[wire.TextContent(text=passage.text)])
        for passage in result.data
    ]
    return PassagePage(
        search_query=result.queries,
        data=hits,
        evidence=result.evidence,
        evidence_probability=result.evidence_probability,
        degraded=result.degraded,
    )


def flat(result: Passages) -> FlatPage:
    hits = [FlatHit(**_place(passage), content=passage.text) for passage in result.data]
    return FlatPage(
        data=hits,
        evidence=result.evidence,
        evidence_probability=result.evidence_probability,
        degraded=result.degraded,
    )


_AS_THEY_ARE = tuple(
    name for name in PassagePlace.__struct_fields__ if name != "explanation"
)  # `Passage` has them under the same names


def _place(passage: Passage) -> dict[str, Any]:
    place = {name: getattr(passage, name) for name in _AS_THEY_ARE}
    place["explanation"] = UNSET if passage.explanation is None else passage.explanation
    return place


def polled_file(file: StoreFile) -> Response:
    """The file, and a header with the polling interval while it is being indexed."""
    wait = SOON if file.bytes <= SMALL_BYTES else LATER
    return _polled(store_file(file), wait if file.status == "in_progress" else None)


def polled_batch(files: Batch) -> Response:
    """The batch, and a header with the polling interval while it is being indexed."""
    left = files.file_counts.in_progress
    return _polled(batch(files), (SOON if left <= SMALL_FILES else LATER) if left else None)


def _polled(shown: Any, wait: int | None) -> Response:
    headers = {} if wait is None else {POLL: str(wait)}
    return Response(_encoder.encode(shown), headers=headers, media_type=JSON)
