"""What LangGraph's tests of its SQLite stores import, with Memoranda behind it: a plugin that takes the place of
`langgraph.store.sqlite`."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import memoranda
from memoranda.integrations.langgraph import MemorandaStore
from support.embedding_providers import Provider

SqliteIndexConfig = dict
QUICK = {"url": "hash:64"}
FOLDERS: dict[str, TemporaryDirectory[str]] = {}
"""The data folder for each database file that a test names."""


class Embeddings(Provider):
    """An embedding provider with the vectors of a LangChain `Embeddings`."""

    def __init__(self, embeddings: Any) -> None:
        super().__init__(dim=embeddings.dims)
        self.embeddings = embeddings

    def vectors(self, texts: Sequence[str], dim: int | None) -> np.ndarray[Any, np.dtype[np.float32]]:
        return np.array(self.embeddings.embed_documents(list(texts)), np.float32)


def folder(path: str) -> str | Path:
    """Where a product keeps what a test keeps in the database `path`."""
    if path == ":memory:":
        return path
    return Path(FOLDERS.setdefault(path, TemporaryDirectory()).name) / "data"


@contextmanager
def embedder(index: Mapping[str, Any] | None) -> Iterator[dict[str, Any]]:
    """The settings of an embedder with the vectors that a test wants."""
    if index is None:
        yield QUICK
        return
    provider = Embeddings(index["embed"])
    try:
        yield {"url": "openai:characters", "base_url": f"{provider.url}/v1", "dimension": index["dims"]}
    finally:
        provider.close()


def described(store: Any, index: Mapping[str, Any] | None) -> Any:
    """The store with the attributes by which the tests see how it was made."""
    if index is not None:
        store.index_config = {**store.index_config, **index}
        store.embeddings = index["embed"]
    return store


def options(index: Mapping[str, Any] | None, ttl: Any) -> dict[str, Any]:
    """The arguments of a `MemorandaStore` that is to do what a `SqliteStore` with these does: reading refreshes the
    time of an item only where that is configured."""
    fields = ["$"] if index is None else index.get("text_fields") or ["$"]
    return {"index": {"fields": fields, "mode": "dense"}, "ttl": {"refresh_on_read": False, **(ttl or {})}}


class SqliteStore(MemorandaStore):
    """`MemorandaStore` on a folder, made as `SqliteStore` is."""

    @classmethod
    @contextmanager
    def from_conn_string(cls, path: str, *, index: Any = None, ttl: Any = None) -> Iterator[Any]:
        with embedder(index) as settings, memoranda.open(folder(path), embedder=settings) as product:
            yield described(cls(product, **options(index, ttl)), index)

    def setup(self) -> None:
        """A folder needs none."""


class AsyncSqliteStore(MemorandaStore):
    """`MemorandaStore` on a folder in the test's event loop, made as `AsyncSqliteStore` is."""

    @classmethod
    @asynccontextmanager
    async def from_conn_string(cls, path: str, *, index: Any = None, ttl: Any = None) -> AsyncIterator[Any]:
        with embedder(index) as settings:
            async with await memoranda.Memoranda.open(folder(path), embedder=settings) as product:
                yield described(cls(product, **options(index, ttl)), index)

    async def setup(self) -> None:
        """A folder needs none."""

    async def sweep_ttl(self) -> int:  # type: ignore[override]
        return await asyncio.to_thread(MemorandaStore.sweep_ttl, self)

    async def start_ttl_sweeper(self) -> None:  # type: ignore[override]
        MemorandaStore.start_ttl_sweeper(self)

    async def stop_ttl_sweeper(self) -> bool:  # type: ignore[override]
        return await asyncio.to_thread(MemorandaStore.stop_ttl_sweeper, self)


class Absent:
    """Stands for what the tests import of SQLite's own; the tests that use it are left out."""


BaseSqliteStore = NS_MATCH_FUNCTION = _escape_glob_literal = _namespace_match_pattern = Absent

for name in ("", ".aio", ".base"):
    sys.modules[f"langgraph.store.sqlite{name}"] = sys.modules[__name__]
