"""The client for files and vector stores of a server: the classes of the library.

It returns the values of the library. Fields that the server does not send are empty: a file's `user_id`, and the
`batch_id` of a file in a store.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar, Unpack

import msgspec

from memoranda.client.remote import Remote, offered
from memoranda.client.wire import Wire, query_of
from memoranda.knowledge import Admin, Files, Knowledge, Stores, Uploads
from memoranda.knowledge.admin_operations import OPERATIONS as ADMIN
from memoranda.knowledge.checks import passage_query
from memoranda.knowledge.sources import Source, name_of, spooled
from memoranda.knowledge.values import (
    Attributes,
    Batch,
    FileState,
    NewStoreFile,
    Passage,
    PassageFields,
    PassageQuery,
    Passages,
    Purpose,
    Sharing,
    StoreChange,
    StoredFile,
    StoreFile,
    VectorStore,
)
from memoranda.readers.base import PageImage
from memoranda.store.operations import segment
from memoranda.store.paging import Listed
from memoranda.text.splitting import Chunking

T = TypeVar("T")
FILES = "/v1/files"
STORES = "/v1/vector_stores"
POLL = 0.25
"""Seconds between two polls of a file or store in progress."""
TIMES = ("created_at", "expires_at", "last_active_at")
NOT_SENT: dict[type[Any], dict[str, Any]] = {
    StoredFile: {"user_id": None, "expires_at": None},
    StoreFile: {"batch_id": None},
}


class RemoteKnowledge(Remote, Knowledge):
    """The files and vector stores of a server, and what an admin sees."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self.files = offered(Files, written=RemoteFiles)(wire)
        self.uploads = offered(Uploads)(wire)
        self.stores = offered(Stores, written=RemoteStores)(wire)
        self.admin = offered(Admin, ADMIN)(wire)


class RemoteFiles(Remote, Files):
    """The files of a server; see `knowledge.Files`."""

    async def upload(
        self,
        source: Source,
        filename: str | None = None,
        *,
        purpose: Purpose = "assistants",
        media_type: str | None = None,
        expires_after_seconds: int | None = None,
    ) -> StoredFile:
        """See `Files.upload`; the path is one of this machine, and its bytes are sent as they are read."""
        fields: dict[str, str] = {"purpose": purpose}
        if expires_after_seconds is not None:
            fields["expires_after[anchor]"] = "created_at"
            fields["expires_after[seconds]"] = str(expires_after_seconds)
        name = name_of(source, filename)
        async with spooled(source) as file:
            return _value(await self._wire.form(FILES, fields, name, file, media_type), StoredFile)

    async def list(
        self,
        *,
        limit: int = 10_000,
        after: str | None = None,
        order: str = "desc",
        purpose: str | None = None,
    ) -> Listed[StoredFile]:
        """See `Files.list`."""
        asked = {"limit": limit, "after": after, "order": order, "purpose": purpose}
        return _page(await self._wire.call("GET", FILES, query=query_of(asked)), StoredFile)

    async def get(self, id: str) -> StoredFile:
        """See `Files.get`."""
        return _value(await self._wire.call("GET", _path(FILES, id)), StoredFile)

    async def content(self, id: str) -> tuple[StoredFile, AsyncIterator[bytes]]:
        """See `Files.content`."""
        return await self.get(id), self._wire.pieces("GET", _path(FILES, id, "content"))

    async def page_image(
        self, id: str, page: int = 1, *, width: int = 1_000, highlight: Sequence[str] = (), find: bool = False
    ) -> PageImage:
        """See `Files.page_image`."""
        query = query_of({"page": page, "width": width, "highlight": list(highlight), "find": find})
        answer = await self._wire.request("GET", _path(FILES, id, "image"), query=query)
        numbers = {name: int(answer.headers[f"memoranda-{name}"]) for name in ("page", "pages", "marked")}
        return PageImage(image=answer.content, **numbers)

    async def delete(self, id: str) -> int:
        """See `Files.delete`."""
        return int(msgspec.json.decode(await self._wire.call("DELETE", _path(FILES, id)))["derived"])


class RemoteStores(Remote, Stores):
    """The vector stores of a server; see `knowledge.Stores`."""

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
        """See `Stores.create`."""
        body = {
            "name": name,
            "description": description,
            "file_ids": list(file_ids),
            "metadata": metadata,
            "expires_after": _expires(expires_after_days),
            "chunking_strategy": _strategy(chunking),
            "sharing": sharing,
            "writers": list(writers),
        }
        return _value(await self._wire.call("POST", STORES, body=body), VectorStore)

    async def list(
        self, *, limit: int = 20, after: str | None = None, before: str | None = None, order: str = "desc"
    ) -> Listed[VectorStore]:
        """See `Stores.list`."""
        asked = {"limit": limit, "after": after, "before": before, "order": order}
        return _page(await self._wire.call("GET", STORES, query=query_of(asked)), VectorStore)

    async def get(self, id: str) -> VectorStore:
        """See `Stores.get`."""
        return _value(await self._wire.call("GET", _path(STORES, id)), VectorStore)

    async def update(self, id: str, change: StoreChange) -> VectorStore:
        """See `Stores.update`."""
        body = msgspec.to_builtins(change)
        if "expires_after_days" in body:
            body["expires_after"] = _expires(body.pop("expires_after_days"))
        if "chunking" in body:
            del body["chunking"]
            body["chunking_strategy"] = _strategy(change.chunking or None)
        return _value(await self._wire.call("POST", _path(STORES, id), body=body), VectorStore)

    async def delete(self, id: str) -> None:
        """See `Stores.delete`."""
        await self._wire.call("DELETE", _path(STORES, id))

    # --- files in a store --------------------------------------------------------------------------

    async def attach(
        self, store_id: str, files: Sequence[NewStoreFile | str], *, wait: float = 0.0
    ) -> Sequence[StoreFile]:
        """See `Stores.attach`; over HTTP each file is a request of its own, which waits on its own."""
        path, query = _path(STORES, store_id, "files"), _waiting(wait)
        return [
            _value(await self._wire.call("POST", path, body=_new(file), query=query), StoreFile)
            for file in files
        ]

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
        """See `Stores.upload`."""
        given = {"attributes": attributes, "chunking_strategy": _strategy(chunking)}
        fields = {name: msgspec.json.encode(value).decode() for name, value in given.items() if value}
        fields["purpose"] = purpose
        name = name_of(source, filename)
        async with spooled(source) as file:
            path = _path(STORES, store_id, "files")
            answer = await self._wire.form(path, fields, name, file, media_type, query=_waiting(wait))
            return _value(answer, StoreFile)

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
        """See `Stores.files`."""
        path = _path(STORES, store_id, "files")
        if batch_id is not None:
            path = _path(STORES, store_id, "file_batches", batch_id, "files")
        asked = {"limit": limit, "after": after, "before": before, "order": order, "filter": state}
        return _page(await self._wire.call("GET", path, query=query_of(asked)), StoreFile)

    async def file(self, store_id: str, file_id: str) -> StoreFile:
        """See `Stores.file`."""
        return _value(await self._wire.call("GET", _path(STORES, store_id, "files", file_id)), StoreFile)

    async def set_attributes(self, store_id: str, file_id: str, attributes: Attributes) -> StoreFile:
        """See `Stores.set_attributes`."""
        path = _path(STORES, store_id, "files", file_id)
        return _value(await self._wire.call("POST", path, body={"attributes": attributes}), StoreFile)

    async def text(self, store_id: str, file_id: str) -> str:
        """See `Stores.text`."""
        answer = await self._wire.call("GET", _path(STORES, store_id, "files", file_id, "content"))
        return "".join(part["text"] for part in msgspec.json.decode(answer)["data"])

    async def detach(self, store_id: str, file_id: str) -> None:
        """See `Stores.detach`."""
        await self._wire.call("DELETE", _path(STORES, store_id, "files", file_id))

    async def wait(self, store_id: str, *, every: float = POLL) -> VectorStore:
        """See `Stores.wait`."""
        while (store := await self.get(store_id)).file_counts.in_progress:
            await self._wire.sleep(every)
        return store

    async def wait_file(self, store_id: str, file_id: str, *, every: float = POLL) -> StoreFile:
        """See `Stores.wait_file`."""
        while (file := await self.file(store_id, file_id)).status == "in_progress":
            await self._wire.sleep(every)
        return file

    # --- batches -----------------------------------------------------------------------------------

    async def create_batch(self, store_id: str, files: Sequence[NewStoreFile], *, wait: float = 0.0) -> Batch:
        """See `Stores.create_batch`."""
        path, body = _path(STORES, store_id, "file_batches"), {"files": [_new(file) for file in files]}
        return _value(await self._wire.call("POST", path, body=body, query=_waiting(wait)), Batch)

    async def batch(self, store_id: str, batch_id: str) -> Batch:
        """See `Stores.batch`."""
        return _value(await self._wire.call("GET", _path(STORES, store_id, "file_batches", batch_id)), Batch)

    async def cancel_batch(self, store_id: str, batch_id: str) -> Batch:
        """See `Stores.cancel_batch`."""
        path = _path(STORES, store_id, "file_batches", batch_id, "cancel")
        return _value(await self._wire.call("POST", path), Batch)

    # --- search ------------------------------------------------------------------------------------

    async def search(
        self,
        store_ids: str | Sequence[str],
        query: str | Sequence[str] | PassageQuery,
        **fields: Unpack[PassageFields],
    ) -> Passages:
        """See `Stores.search`; at most 50 passages, and a section's budget is the server's. `query_time` includes the
        network."""
        began = time.perf_counter()
        ids = [store_ids] if isinstance(store_ids, str) else list(store_ids)
        body = {"vector_store_ids": ids, **_asked(passage_query(query, fields))}
        answer = msgspec.json.decode(await self._wire.call("POST", f"{STORES}/search", body=body))
        return Passages(
            queries=answer["search_query"],
            data=[_passage(passage) for passage in answer["data"]],
            query_time=time.perf_counter() - began,
            evidence=answer["evidence"],
            evidence_probability=answer["evidence_probability"],
            degraded=answer["degraded"],
        )


# --- values over the wire --------------------------------------------------------------------------


def _path(*parts: str) -> str:
    """A path below one of the routes; ids are quoted."""
    return "/".join((parts[0], *(segment(part) for part in parts[1:])))


def _value(body: bytes, type_: type[T]) -> T:
    return _from_wire(msgspec.json.decode(body), type_)


def _page(body: bytes, type_: type[T]) -> Listed[T]:
    answer = msgspec.json.decode(body)
    return Listed(
        data=[_from_wire(fields, type_) for fields in answer["data"]],
        first_id=answer["first_id"] or None,
        last_id=answer["last_id"] or None,
        has_more=answer["has_more"],
    )


def _from_wire(sent: Mapping[str, Any], type_: type[T]) -> T:
    fields = {**NOT_SENT.get(type_, {}), **sent}
    fields |= {
        name: datetime.fromtimestamp(fields[name], UTC) for name in TIMES if fields.get(name) is not None
    }
    if "chunking_strategy" in fields:
        fields["chunking"] = _chunking(fields["chunking_strategy"])
    if type_ is VectorStore:
        fields["user_id"] = fields["owner"]
        fields["expires_after_days"] = (fields.get("expires_after") or {}).get("days")
    return msgspec.convert(fields, type_)


def _chunking(strategy: Mapping[str, Any]) -> Chunking:
    return Chunking(
        strategy=strategy.get("strategy", "fixed"),
        size=strategy["chunk_size"],
        overlap=strategy["chunk_overlap"],
        header=strategy.get("contextual_header", False),
    )


def _strategy(chunking: Chunking | None) -> dict[str, Any] | None:
    if chunking is None:
        return None
    return {
        "type": chunking.strategy,
        "chunk_size": chunking.size,
        "chunk_overlap": chunking.overlap,
        "contextual_header": chunking.header,
    }


def _expires(days: int | None) -> dict[str, Any] | None:
    return None if days is None else {"anchor": "last_active_at", "days": days}


def _new(file: NewStoreFile | str) -> dict[str, Any]:
    if isinstance(file, str):
        return {"file_id": file}
    return {
        "file_id": file.file_id,
        "attributes": file.attributes,
        "chunking_strategy": _strategy(file.chunking),
    }


def _asked(query: PassageQuery) -> dict[str, Any]:
    weights = query.weights
    return {
        "query": query.queries,
        "max_num_results": query.limit,
        "filters": query.filters,
        "ranking_options": {"score_threshold": query.threshold},
        "hybrid_search": None
        if weights is None
        else {"embedding_weight": weights.get("dense", 0.0), "text_weight": weights.get("words", 0.0)},
        "rewrite_query": query.rewrite,
        "diversity": query.diversity,
        "expand": {"neighbours": query.neighbours, "section": query.section},
        "mode": query.mode,
        "merge": query.merge,
        "explain": query.explain,
    }


def _passage(fields: dict[str, Any]) -> Passage:
    return msgspec.convert({**fields, "text": "".join(part["text"] for part in fields["content"])}, Passage)


def _waiting(seconds: float) -> dict[str, Any] | None:
    return {"wait": seconds} if seconds else None
