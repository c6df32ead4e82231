"""Vector indexes, chosen by URL: one line adds a backend."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from recollect.errors import ConfigError
from recollect.indexes.base import NO_MATCHES, Index, Matches, VectorBatch

INDEXES = {
    "memory": "recollect.indexes.memory:MemoryIndex",
}

__all__ = ["INDEXES", "NO_MATCHES", "Index", "Matches", "VectorBatch", "open_index"]


def open_index(url: str, dim: int, folder: Path | None) -> Index:
    """The index that `url` names, for vectors of `dim` dimensions.

    `folder` is where an embedded index may keep its cache; None keeps it in memory alone.

    Raises:
        ConfigError: the scheme is unknown; the message lists the known ones.
    """
    scheme = url.split(":", 1)[0]
    if scheme not in INDEXES:
        raise ConfigError("index.url", f"{scheme!r} is unknown; use one of {', '.join(INDEXES)}")
    module, name = INDEXES[scheme].split(":")
    index: Index = getattr(import_module(module), name)(url, dim, folder)
    return index
