"""Memory stores: an agent's memories as text files at paths, with every version, as in Anthropic's API."""

from memoranda.memory_stores.stores import MemoryStores

__all__ = ["MemoryStores"]
