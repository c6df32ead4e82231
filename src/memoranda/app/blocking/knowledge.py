"""Files and vector stores for callers without an event loop."""

from __future__ import annotations

from collections.abc import Iterator

from memoranda.concurrency.portal import Portal, blocking, following
from memoranda.knowledge import Knowledge
from memoranda.knowledge.admin import Admin
from memoranda.knowledge.files import Files
from memoranda.knowledge.sources import BlockingSource, pieces_of
from memoranda.knowledge.stores import Stores
from memoranda.knowledge.uploads import Uploads
from memoranda.knowledge.values import StoredFile, UploadPart


class BlockingFiles:
    """`knowledge.Files`, method for method."""

    def __init__(self, inner: Files, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    upload = blocking(Files.upload)
    list = blocking(Files.list)
    get = blocking(Files.get)
    page_image = blocking(Files.page_image)
    delete = blocking(Files.delete)

    def content(self, id: str) -> tuple[StoredFile, Iterator[bytes]]:
        """Return a file and its bytes, piece by piece, see `Files.content`."""
        file, pieces = self.portal.call(self.inner.content(id))
        return file, following(pieces, self.portal)


class BlockingUploads:
    """`knowledge.Uploads`, method for method."""

    def __init__(self, inner: Uploads, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    create = blocking(Uploads.create)
    get = blocking(Uploads.get)
    complete = blocking(Uploads.complete)
    cancel = blocking(Uploads.cancel)

    def add_part(self, upload_id: str, source: BlockingSource) -> UploadPart:
        """Store one part, from a path, bytes or an open file; see `Uploads.add_part`."""
        return self.portal.call(self.inner.add_part(upload_id, pieces_of(source)))


class BlockingStores:
    """`knowledge.Stores`, method for method."""

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
    chunks = blocking(Stores.chunks)
    detach = blocking(Stores.detach)
    wait = blocking(Stores.wait)
    wait_file = blocking(Stores.wait_file)
    create_batch = blocking(Stores.create_batch)
    batch = blocking(Stores.batch)
    cancel_batch = blocking(Stores.cancel_batch)
    search = blocking(Stores.search)


class BlockingAdmin:
    """`knowledge.Admin`, method for method."""

    def __init__(self, inner: Admin, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    tenants = blocking(Admin.tenants)
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
