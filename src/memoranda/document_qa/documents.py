"""A user's documents: the files of one vector store, created with the first one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing

from memoranda.document_qa.access import owner_of
from memoranda.document_qa.values import MAX_NAMED, Document
from memoranda.errors import InvalidInput, NotFound
from memoranda.knowledge import Knowledge
from memoranda.knowledge.files import Staged
from memoranda.knowledge.records import attached_of
from memoranda.knowledge.sources import Source, name_of, pieces_of
from memoranda.knowledge.values import Attributes, StoreFile
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.ids import listed
from memoranda.store.paging import Listed, as_page
from memoranda.types import Subject

STORE = "Uploaded documents"
MARK, TITLE = "document_id", "title"
"""The attributes that identify the chunks of a document, and that name a text."""
_TEXT = ".txt"


class Documents:
    """The documents of one subject's user."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject
        self._knowledge = Knowledge(core, subject)

    async def store(self) -> str | None:
        """Return the id of the store of the documents; None before the first one."""
        return (await self.standing())[0]

    async def standing(self) -> tuple[str | None, int]:
        """Return the store, as `store` does, and how many documents are not indexed yet."""
        tenant, owner = self.subject.tenant_id, owner_of(self.subject)

        def read(c: Connection) -> tuple[str | None, int]:
            store_id = _store(c, tenant, owner)
            counts = c.all("counts_of_stores", [tenant, listed([store_id])]) if store_id is not None else []
            return store_id, sum(number for _, status, number, _ in counts if status == "in_progress")

        return await self._core.threads.run(self._core.store.db.read, read, tenant)

    async def _ensure_store(self) -> str:
        """Return the store, created if missing. Two concurrent calls end up with one."""
        existing = await self.store()
        if existing is not None:
            return existing
        tenant, owner = self.subject.tenant_id, owner_of(self.subject)
        created = await self._knowledge.stores.create(name=STORE, metadata={"made_by": "upload-ask"})

        def claim(c: Connection) -> str:
            there = _store(c, tenant, owner)
            if there is not None:
                c.run("drop_store", [tenant, created.id])
                return there
            c.run("set_ask_store", [tenant, owner, created.id])
            return created.id

        return await self._core.threads.result(self._core.store.db.write(claim, tenant=tenant))

    async def add(self, source: Source, filename: str | None = None) -> Document:
        """Add a document: a path, bytes, an open file, or pieces as they come; it is read, split and embedded in
        the background. `filename` is the path's own unless given; its extension decides the format.

        Raises:
            QuotaExceeded: it is too large, or exceeds the storage quota.
            InvalidInput: names the field and the fix.
        """
        name = name_of(source, filename)
        async with aclosing(pieces_of(source)) as pieces:
            staged = await self._knowledge.files.stage(pieces)
        return await self.adopt(staged, name)

    async def add_text(self, title: str, text: str) -> Document:
        """Add a text as a document of this title. Errors as `add`."""
        if not title.strip():
            raise InvalidInput("title", "must hold some text")
        if not text.strip():
            raise InvalidInput("text", "must hold some text")
        name = title if title.endswith((_TEXT, ".md")) else f"{title}{_TEXT}"
        pieces = pieces_of(text.encode("utf-8"))
        return await self.adopt(await self._knowledge.files.stage(pieces), name, title=title)

    async def adopt(
        self, staged: Staged, filename: str, media_type: str | None = None, title: str | None = None
    ) -> Document:
        """Make staged bytes a document; they are dropped if that fails. Errors as `add`."""
        try:
            store_id = await self._ensure_store()
        except BaseException:
            await self._knowledge.files.drop(staged)
            raise
        marks: Attributes = {MARK: staged.id} if title is None else {MARK: staged.id, TITLE: title}
        file = await self._knowledge.stores.adopt(
            store_id, staged, filename=filename, attributes=marks, media_type=media_type
        )
        return _document(file)

    async def list(
        self, *, limit: int = 20, after: str | None = None, before: str | None = None, order: str = "desc"
    ) -> Listed[Document]:
        """Return one page of the documents, newest first unless `order` is `asc`.

        Raises:
            InvalidInput: a field is wrong, or the cursor names no document.
        """
        store_id = await self.store()
        if store_id is None:
            return as_page([], [], False)
        files = await self._knowledge.stores.files(
            store_id, limit=limit, after=after, before=before, order=order
        )
        return files.each(_document)

    async def get(self, id: str) -> Document:
        """Return one document.

        Raises:
            NotFound: this user has none of this id.
        """
        return _document(await self._file(id))

    async def _file(self, id_: str) -> StoreFile:
        store_id = await self.store()
        if store_id is not None:
            try:
                return await self._knowledge.stores.file(store_id, id_)
            except NotFound:
                pass
        raise NotFound(f"no document {id_!r}")

    async def wait(self, id: str) -> Document:
        """Return a document once it is no longer in progress.

        Raises:
            NotFound: this user has none of this id, or it was deleted meanwhile.
        """
        file = await self._file(id)
        return _document(await self._knowledge.stores.wait_file(file.vector_store_id, id))

    async def delete(self, id: str) -> None:
        """Delete a document, its chunks and its bytes. Answers from it stay as they are.

        Raises:
            NotFound: this user has none of this id.
        """
        await self._file(id)
        await self._knowledge.files.delete(id)

    async def check(self, store_id: str | None, ids: Sequence[str]) -> None:
        """Refuse ids of documents that this user does not have.

        Raises:
            NotFound: names the first.
            InvalidInput: there are too many, or none.
        """
        if not 1 <= len(ids) <= MAX_NAMED:
            raise InvalidInput("documentIds", f"must name 1 to {MAX_NAMED} documents; leave it out for all")
        tenant = self.subject.tenant_id
        there = {}
        if store_id is not None:
            there = await self._core.threads.run(
                self._core.store.db.read, lambda c: attached_of(c, tenant, store_id, ids), tenant
            )
        for id_ in ids:
            if id_ not in there:
                raise NotFound(f"no document {id_!r}")


def _store(c: Connection, tenant: str, owner: str) -> str | None:
    """Return the owner's store; None if there is none yet, or it was deleted as a store."""
    row = c.one("ask_store", [tenant, owner])
    return str(row[0]) if row and c.all("stores_by_id", [tenant, listed([row[0]])]) else None


def _document(file: StoreFile) -> Document:
    return Document(
        id=file.id,
        title=str(file.attributes.get(TITLE) or file.title or file.filename),
        filename=file.filename,
        status=file.status,
        error=file.last_error,
        bytes=file.bytes,
        chunk_count=file.chunk_count,
        created_at=file.created_at,
    )
