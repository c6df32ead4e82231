"""The library for callers without an event loop: the same verbs, the same results, blocking."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from typing_extensions import Unpack

from recollect.config import Config
from recollect.knowledge import Admin, Files, Knowledge, Stores, Uploads
from recollect.knowledge.sources import BlockingSource, pieces_of
from recollect.knowledge.values import StoredFile, UploadPart
from recollect.memories import Memories, SelectionFields
from recollect.portal import Portal, blocking
from recollect.recollect import Recollect
from recollect.types import Subject


class BlockingMemories:
    """`memories.Memories`, verb for verb."""

    def __init__(self, inner: Memories, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    add = blocking(Memories.add)
    add_many = blocking(Memories.add_many)
    get = blocking(Memories.get)
    list = blocking(Memories.list)
    update = blocking(Memories.update)
    delete = blocking(Memories.delete)
    search = blocking(Memories.search)
    forget = blocking(Memories.forget)
    count = blocking(Memories.count)
    count_access = blocking(Memories.count_access)
    stats = blocking(Memories.stats)
    near_duplicates = blocking(Memories.near_duplicates)
    export_to = blocking(Memories.export_to)
    import_from = blocking(Memories.import_from)
    reembed = blocking(Memories.reembed)
    move_index = blocking(Memories.move_index)
    compact = blocking(Memories.compact)
    job = blocking(Memories.job)
    wait = blocking(Memories.wait)
    cancel = blocking(Memories.cancel)

    def export(self, *, vectors: bool = False, **fields: Unpack[SelectionFields]) -> Iterator[bytes]:
        """The selection as JSONL lines, see `Memories.export`."""
        yield from _blocking_pieces(self.inner.export(vectors=vectors, **fields), self.portal)


class BlockingFiles:
    """`knowledge.Files`, verb for verb."""

    def __init__(self, inner: Files, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    upload = blocking(Files.upload)
    list = blocking(Files.list)
    get = blocking(Files.get)
    delete = blocking(Files.delete)

    def content(self, id: str) -> tuple[StoredFile, Iterator[bytes]]:
        """A file and its bytes, piece by piece, see `Files.content`."""
        file, pieces = self.portal.call(self.inner.content(id))
        return file, _blocking_pieces(pieces, self.portal)


class BlockingUploads:
    """`knowledge.Uploads`, verb for verb."""

    def __init__(self, inner: Uploads, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    create = blocking(Uploads.create)
    get = blocking(Uploads.get)
    complete = blocking(Uploads.complete)
    cancel = blocking(Uploads.cancel)

    def add_part(self, upload_id: str, source: BlockingSource) -> UploadPart:
        """Takes one part, from a path, bytes or an open file; see `Uploads.add_part`."""
        return self.portal.call(self.inner.add_part(upload_id, pieces_of(source)))


class BlockingStores:
    """`knowledge.Stores`, verb for verb."""

    def __init__(self, inner: Stores, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    create = blocking(Stores.create)
    list = blocking(Stores.list)
    get = blocking(Stores.get)
    update = blocking(Stores.update)
    delete = blocking(Stores.delete)
    attach = blocking(Stores.attach)
    upload = blocking(Stores.upload)
    files = blocking(Stores.files)
    file = blocking(Stores.file)
    set_attributes = blocking(Stores.set_attributes)
    text = blocking(Stores.text)
    detach = blocking(Stores.detach)
    wait = blocking(Stores.wait)
    wait_file = blocking(Stores.wait_file)
    create_batch = blocking(Stores.create_batch)
    batch = blocking(Stores.batch)
    cancel_batch = blocking(Stores.cancel_batch)
    search = blocking(Stores.search)


class BlockingAdmin:
    """`knowledge.Admin`, verb for verb."""

    def __init__(self, inner: Admin, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    quotas = blocking(Admin.quotas)
    set_quotas = blocking(Admin.set_quotas)
    usage = blocking(Admin.usage)


class BlockingKnowledge:
    """`knowledge.Knowledge`: files, uploads, vector stores, and what an admin sees."""

    def __init__(self, inner: Knowledge, portal: Portal) -> None:
        self.files = BlockingFiles(inner.files, portal)
        self.uploads = BlockingUploads(inner.uploads, portal)
        self.stores = BlockingStores(inner.stores, portal)
        self.admin = BlockingAdmin(inner.admin, portal)


def _blocking_pieces(pieces: AsyncIterator[bytes], portal: Portal) -> Iterator[bytes]:
    async def following() -> bytes | None:
        return await anext(pieces, None)

    while (piece := portal.call(following())) is not None:
        yield piece


class BlockingRecollect:
    """`recollect.Recollect` on an event loop of its own. Thread-safe; close it, or use it in a `with`."""

    def __init__(self, inner: Recollect, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal
        self.config = inner.config
        self.memories = BlockingMemories(inner.memories, portal)
        self.knowledge = BlockingKnowledge(inner.knowledge, portal)

    def acting_as(self, subject: Subject) -> BlockingMemories:
        """The memories as another subject sees them."""
        return BlockingMemories(self.inner.acting_as(subject), self.portal)

    def knowing_as(self, subject: Subject) -> BlockingKnowledge:
        """The files and vector stores as another subject sees them."""
        return BlockingKnowledge(self.inner.knowing_as(subject), self.portal)

    def close(self) -> None:
        """Finishes writes, saves, lets go of the folder. Idempotent."""
        if self.portal.alive:
            try:
                self.portal.call(self.inner.close())
            finally:
                self.portal.close()

    def __enter__(self) -> BlockingRecollect:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(
    data: str | Path | None = None, *, config: Config | None = None, **settings: Any
) -> BlockingRecollect:
    """Opens a data folder for callers without an event loop; arguments and errors as `Recollect.open`."""
    portal = Portal()
    try:
        return BlockingRecollect(portal.call(Recollect.open(data, config=config, **settings)), portal)
    except BaseException:
        portal.close()
        raise
