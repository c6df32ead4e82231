"""Vector indexes, chosen by URL: one line adds a backend."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from memoranda.errors import ConfigError
from memoranda.indexes.vector.base import NO_MATCHES, Index, IndexLocation, Matches, VectorBatch
from memoranda.storage.sql.base import Database

INDEXES = {
    "memory": "memoranda.indexes.vector.memory:MemoryIndex",
    "pgvector": "memoranda.indexes.vector.pgvector:PgvectorIndex",
    "sqlitevec": "memoranda.indexes.vector.sqlitevec:SqliteVecIndex",
    "lancedb": "memoranda.indexes.vector.lancedb:LanceIndex",
    "qdrant": "memoranda.indexes.vector.qdrant:QdrantIndex",
}

__all__ = ["INDEXES", "NO_MATCHES", "Index", "Matches", "Place", "VectorBatch", "open_index"]


def open_index(
    url: str, dim: int, folder: Path | None, *, space: str = "default", database: Database | None = None
) -> Index:
    """Open the index that `url` names, for vectors of `dim` dimensions; see `IndexLocation` for the rest.

    Raises:
        ConfigError: the scheme is unknown, and the message lists the known ones; or its package is missing.
        IndexUnavailable: it does not answer.
    """
    scheme = url.split(":", 1)[0]
    if scheme not in INDEXES:
        raise ConfigError("index.url", f"{scheme!r} is unknown; use one of {', '.join(INDEXES)}")
    module, name = INDEXES[scheme].split(":")
    index: Index = getattr(import_module(module), name)(url, dim, IndexLocation(folder, space, database))
    return index
