"""What Strands' tests take for its `TestMemoryStore` and `FileMemoryStore`, with Memoranda behind them: a plugin that
takes their places."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from strands import vended_memory_stores
from strands.vended_memory_stores import file_memory_store, test_memory_store

import memoranda
from memoranda.integrations.strands import MemorandaMemoryStore
from memoranda.types import Memory

OPEN: dict[tuple[Any, ...], Any] = {}
"""The product for each place that a test names."""
EVERYTHING = ExitStack()


def product_of(*place: Any) -> Any:
    """The product that keeps what a test keeps at a place."""
    if place not in OPEN:
        OPEN[place] = EVERYTHING.enter_context(memoranda.open(":memory:", embedder={"url": "hash:64"}))
    return OPEN[place]


class TestMemoryStore(MemorandaMemoryStore):
    """`MemorandaMemoryStore`, made as `TestMemoryStore` is. Tests count what the product has in the file at `path`."""

    __test__ = False

    def __init__(self, *, path: str = "", persist: bool = True, **config: Any) -> None:
        self._path = Path(path) if path and persist else None
        self._product = product_of(path if persist else self)
        self._storage = None  # the tests wrap it
        super().__init__(self._product, **config)

    async def add(self, content: str, metadata: dict[str, Any] | None = None) -> Memory:
        """Lists what the product has in the file."""
        added = await super().add(content, metadata)
        if self._path is not None:
            listed = [{"content": memory.content} for memory in self._product.memories.list().data]
            self._path.write_text(json.dumps(listed), "utf-8")
        return added


class FileMemoryStore(MemorandaMemoryStore):
    """`MemorandaMemoryStore`, made as `FileMemoryStore` is."""

    def __init__(self, *, name: str, storage: Any = None, **config: Any) -> None:
        super().__init__(product_of(name, storage), name=name, **config)


for module in (vended_memory_stores, test_memory_store):
    module.TestMemoryStore = TestMemoryStore  # type: ignore[attr-defined]
for module in (vended_memory_stores, file_memory_store):
    module.FileMemoryStore = FileMemoryStore  # type: ignore[attr-defined]


def pytest_unconfigure() -> None:
    """Closes what the tests opened."""
    EVERYTHING.close()
