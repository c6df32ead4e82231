"""What CrewAI's tests take for its `LanceDBStorage`, with Memoranda behind it: a plugin that takes its place."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from crewai.memory.storage import lancedb_storage
from crewai.memory.types import MemoryRecord

import memoranda
from memoranda.integrations.crewai import MemorandaStorage

OPEN: dict[str, Any] = {}
"""The product for each path that a test names."""
EVERYTHING = ExitStack()


LEAST = 8
"""Dimensions that the product's hashing model has at least; shorter vectors get as many zeros."""


class LanceDBStorage:
    """A `MemorandaStorage` on a folder, made as `LanceDBStorage` is: it has as many dimensions as the first vector."""

    def __init__(self, path: Any = None, vector_dim: int | None = None, **settings: Any) -> None:
        self._path, self._dim = str(path), vector_dim

    def save(self, records: list[MemoryRecord]) -> None:
        """Opens the product with the first vector."""
        longer = [
            record.model_copy(update={"embedding": _longer(record.embedding)}) if record.embedding else record
            for record in records
        ]
        first = next((len(record.embedding) for record in records if record.embedding), None)
        self._storage(first).save(longer)

    def update(self, record: MemoryRecord) -> None:
        """As `save`."""
        self.save([record])

    def search(self, query_embedding: list[float], *args: Any, **kwargs: Any) -> Any:
        """Opens the product with the first vector."""
        return self._storage(len(query_embedding)).search(_longer(query_embedding), *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._storage(), name)

    def _storage(self, dim: int | None = None) -> MemorandaStorage:
        if self._path not in OPEN:
            url = f"hash:{len(_longer([0.0] * (self._dim or dim or LEAST)))}"
            OPEN[self._path] = EVERYTHING.enter_context(memoranda.open(":memory:", embedder={"url": url}))
        return MemorandaStorage(OPEN[self._path])


def _longer(vector: list[float]) -> list[float]:
    return vector if len(vector) >= LEAST else [*vector, *[0.0] * LEAST]


lancedb_storage.LanceDBStorage = LanceDBStorage


def pytest_unconfigure() -> None:
    """Closes what the tests opened."""
    EVERYTHING.close()
