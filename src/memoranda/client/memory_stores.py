"""Memory stores at a server."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from memoranda.client.remote import Remote
from memoranda.client.wire import Wire, query_of
from memoranda.memory_stores.memories import Item, StoreMemories
from memoranda.memory_stores.stores import MemoryStores
from memoranda.memory_stores.values import (
    MemoryStore,
    MemoryVersion,
    NewStore,
    NewStoreMemory,
    Operation,
    Page,
    StoreChange,
    StoreMemory,
    StoreMemoryChange,
    View,
)
from memoranda.memory_stores.versions import MemoryVersions
from memoranda.store.operations import segment

AT = "/v1/memory_stores"


class RemoteMemoryStores(Remote, MemoryStores):
    """The memory stores of a server; see `memory_stores.MemoryStores`."""

    def memories(self, store_id: str) -> RemoteStoreMemories:
        """See `MemoryStores.memories`."""
        return RemoteStoreMemories(self._wire, store_id)

    def versions(self, store_id: str) -> RemoteMemoryVersions:
        """See `MemoryStores.versions`."""
        return RemoteMemoryVersions(self._wire, store_id)

    async def create(self, new: NewStore) -> MemoryStore:
        """See `MemoryStores.create`."""
        return msgspec.json.decode(await self._wire.call("POST", AT, body=new), type=MemoryStore)

    async def list(
        self,
        *,
        limit: int | None = None,
        page: str | None = None,
        include_archived: bool = False,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> Page[MemoryStore]:
        """See `MemoryStores.list`."""
        asked = {
            "limit": limit,
            "page": page,
            "include_archived": include_archived,
            "created_at[gte]": since,
            "created_at[lte]": until,
        }
        return msgspec.json.decode(
            await self._wire.call("GET", AT, query=query_of(asked)), type=Page[MemoryStore]
        )

    async def get(self, id: str) -> MemoryStore:
        """See `MemoryStores.get`."""
        return msgspec.json.decode(await self._wire.call("GET", _path(id)), type=MemoryStore)

    async def update(self, id: str, change: StoreChange) -> MemoryStore:
        """See `MemoryStores.update`."""
        return msgspec.json.decode(await self._wire.call("POST", _path(id), body=change), type=MemoryStore)

    async def archive(self, id: str) -> MemoryStore:
        """See `MemoryStores.archive`."""
        return msgspec.json.decode(await self._wire.call("POST", f"{_path(id)}/archive"), type=MemoryStore)

    async def delete(self, id: str) -> None:
        """See `MemoryStores.delete`."""
        await self._wire.call("DELETE", _path(id))


class RemoteStoreMemories(Remote, StoreMemories):
    """The memories of a store of a server; see `memory_stores.memories.StoreMemories`."""

    def __init__(self, wire: Wire, store_id: str) -> None:
        super().__init__(wire)
        self._at = f"{_path(store_id)}/memories"

    async def create(self, new: NewStoreMemory, *, view: View = "basic") -> StoreMemory:
        """See `StoreMemories.create`."""
        return await self._memory("POST", self._at, query={"view": view}, body=new)

    async def get(self, id: str, *, view: View = "full") -> StoreMemory:
        """See `StoreMemories.get`."""
        return await self._memory("GET", self._path(id), query={"view": view})

    async def update(self, id: str, change: StoreMemoryChange, *, view: View = "basic") -> StoreMemory:
        """See `StoreMemories.update`."""
        return await self._memory("POST", self._path(id), query={"view": view}, body=change)

    async def delete(self, id: str, *, expected_sha256: str | None = None) -> None:
        """See `StoreMemories.delete`."""
        query = query_of({"expected_content_sha256": expected_sha256})
        await self._wire.call("DELETE", self._path(id), query=query)

    async def list(
        self,
        *,
        path_prefix: str = "/",
        depth: int = 0,
        limit: int | None = None,
        page: str | None = None,
        view: View = "basic",
    ) -> Page[Item]:
        """See `StoreMemories.list`."""
        asked = {"path_prefix": path_prefix, "depth": depth, "limit": limit, "page": page, "view": view}
        return msgspec.json.decode(
            await self._wire.call("GET", self._at, query=query_of(asked)), type=Page[Item]
        )

    async def _memory(self, method: str, path: str, **sent: Any) -> StoreMemory:
        return msgspec.json.decode(await self._wire.call(method, path, **sent), type=StoreMemory)

    def _path(self, id: str) -> str:
        return f"{self._at}/{segment(id)}"


class RemoteMemoryVersions(Remote, MemoryVersions):
    """The versions of the memories of a store of a server; see `memory_stores.versions.MemoryVersions`."""

    def __init__(self, wire: Wire, store_id: str) -> None:
        super().__init__(wire)
        self._at = f"{_path(store_id)}/memory_versions"

    async def list(
        self,
        *,
        memory_id: str | None = None,
        operation: Operation | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
        page: str | None = None,
        view: View = "basic",
    ) -> Page[MemoryVersion]:
        """See `MemoryVersions.list`."""
        asked = {
            "memory_id": memory_id,
            "operation": operation,
            "created_at[gte]": since,
            "created_at[lte]": until,
            "limit": limit,
            "page": page,
            "view": view,
        }
        return msgspec.json.decode(
            await self._wire.call("GET", self._at, query=query_of(asked)), type=Page[MemoryVersion]
        )

    async def get(self, id: str, *, view: View = "full") -> MemoryVersion:
        """See `MemoryVersions.get`."""
        answer = await self._wire.call("GET", f"{self._at}/{segment(id)}", query={"view": view})
        return msgspec.json.decode(answer, type=MemoryVersion)

    async def redact(self, id: str) -> MemoryVersion:
        """See `MemoryVersions.redact`."""
        answer = await self._wire.call("POST", f"{self._at}/{segment(id)}/redact")
        return msgspec.json.decode(answer, type=MemoryVersion)


def _path(id: str) -> str:
    return f"{AT}/{segment(id)}"
