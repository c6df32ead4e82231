"""Memory stores at a server."""

from __future__ import annotations

from memoranda.client.remote import Remote, offered
from memoranda.memory_stores.memories import StoreMemories
from memoranda.memory_stores.operations import MEMORIES, VERSIONS
from memoranda.memory_stores.stores import MemoryStores
from memoranda.memory_stores.versions import MemoryVersions

IN_STORE = offered(StoreMemories, MEMORIES)
OF_STORE = offered(MemoryVersions, VERSIONS)


class RemoteMemoryStores(Remote, MemoryStores):
    """The memory stores of a server."""

    def memories(self, store_id: str) -> StoreMemories:
        """See `MemoryStores.memories`."""
        memories: StoreMemories = IN_STORE(self._wire, store_id)
        return memories

    def versions(self, store_id: str) -> MemoryVersions:
        """See `MemoryStores.versions`."""
        versions: MemoryVersions = OF_STORE(self._wire, store_id)
        return versions
