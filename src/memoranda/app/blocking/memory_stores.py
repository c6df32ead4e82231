"""Memory stores for callers without an event loop."""

from __future__ import annotations

from memoranda.concurrency.portal import Portal, blocking
from memoranda.memory_stores.memories import StoreMemories
from memoranda.memory_stores.stores import MemoryStores
from memoranda.memory_stores.versions import MemoryVersions


class BlockingStoreMemories:
    """`memory_stores.memories.StoreMemories`, method for method."""

    def __init__(self, inner: StoreMemories, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    create = blocking(StoreMemories.create)
    get = blocking(StoreMemories.get)
    update = blocking(StoreMemories.update)
    delete = blocking(StoreMemories.delete)
    list = blocking(StoreMemories.list)


class BlockingMemoryVersions:
    """`memory_stores.versions.MemoryVersions`, method for method."""

    def __init__(self, inner: MemoryVersions, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    list = blocking(MemoryVersions.list)
    get = blocking(MemoryVersions.get)
    redact = blocking(MemoryVersions.redact)


class BlockingMemoryStores:
    """`memory_stores.MemoryStores`, method for method."""

    def __init__(self, inner: MemoryStores, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    create = blocking(MemoryStores.create)
    list = blocking(MemoryStores.list)
    get = blocking(MemoryStores.get)
    update = blocking(MemoryStores.update)
    archive = blocking(MemoryStores.archive)
    delete = blocking(MemoryStores.delete)

    def memories(self, store_id: str) -> BlockingStoreMemories:
        """Return the memories of a store."""
        return BlockingStoreMemories(self.inner.memories(store_id), self.portal)

    def versions(self, store_id: str) -> BlockingMemoryVersions:
        """Return the versions of the memories of a store."""
        return BlockingMemoryVersions(self.inner.versions(store_id), self.portal)
