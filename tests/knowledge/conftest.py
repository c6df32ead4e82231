"""A tenant with files and stores, and the tables behind it."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from operator import not_
from typing import Any

import msgspec
import pytest

from memoranda.app.blocking import BlockingMemoranda
from memoranda.errors import EmbedderUnavailable
from memoranda.knowledge.expiry import Expiry
from memoranda.knowledge.values import NewStoreFile, PassageQuery, Passages, StoredFile, VectorStore
from memoranda.providers.embeddings.base import Embedded, Embedder, Span, Task
from memoranda.providers.embeddings.hash import HashEmbedder
from memoranda.readers import Readers
from memoranda.types import Subject
from support.waiting import until

UNDER_WAY = "SELECT kind, state, run_at, error FROM jobs WHERE state IN ('queued', 'running')"


class Blocking:
    """Any object of coroutines for callers without a loop: `Blocking(knowledge).files.get(id)`."""

    def __init__(self, inner: Any, portal: Any) -> None:
        self.inner, self.portal = inner, portal

    def __getattr__(self, name: str) -> Any:
        held = getattr(self.inner, name)
        if not inspect.iscoroutinefunction(held):
            return held if name == "subject" or name.startswith("_") else Blocking(held, self.portal)
        return lambda *args, **kwargs: self.portal.call(held(*args, **kwargs))


async def pieces(content: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    """A text as it comes in."""
    for at in range(0, len(content), size):
        yield content[at : at + size]


class Shelf:
    """One tenant of a product: whoever acts in it, and short ways to fill it."""

    def __init__(self, rc: BlockingMemoranda, tenant: str = "default") -> None:
        self.rc = rc
        self.core = rc.inner.core
        self.expiry = Expiry(self.core)
        self.tenant = tenant
        self.admin = self.by()

    def by(self, user: str | None = None, role: str | None = None, tenant: str | None = None) -> Any:
        """Knowledge as a user sees it: an admin, or a member when a user is named."""
        named = role or ("admin" if user is None else "member")
        subject = Subject(tenant_id=tenant or self.tenant, user_id=user, role=named)  # type: ignore[arg-type]
        return Blocking(self.rc.inner.as_subject(subject).knowledge, self.rc.portal)

    def file(self, content: str | bytes, name: str = "a.txt", *, by: Any = None, **fields: Any) -> StoredFile:
        """A file of this content."""
        raw = content.encode() if isinstance(content, str) else content
        made: StoredFile = (by or self.admin).files.upload(pieces(raw), name, **fields)
        return made

    def store(self, *contents: str, by: Any = None, **fields: Any) -> VectorStore:
        """A store with files of these contents, indexed."""
        ids = [self.file(text, f"{at}.txt", by=by).id for at, text in enumerate(contents)]
        made: VectorStore = (by or self.admin).stores.create(file_ids=ids, **fields)
        self.settle()
        return made

    def attach(self, store: str, content: str | bytes, name: str = "a.txt", **fields: Any) -> str:
        """The id of a new file of this content, indexed in the store."""
        id_ = self.file(content, name).id
        self.admin.stores.attach(store, [NewStoreFile(file_id=id_, **fields)])
        self.settle()
        return id_

    def search(self, stores: str | Sequence[str], *queries: str, by: Any = None, **fields: Any) -> Passages:
        """What a search finds."""
        named = [stores] if isinstance(stores, str) else list(stores)
        asked = PassageQuery(queries=list(queries), **fields)
        found: Passages = (by or self.admin).stores.search(named, asked)
        return found

    def settle(self) -> None:
        """Waits until no work is under way."""
        until(lambda: self.rows(UNDER_WAY), "no work under way", accept=not_)

    def rows(self, sql: str, *params: Any) -> list[tuple[Any, ...]]:
        """Rows of the database, of all tenants."""
        return self.core.store.db.read(lambda c: c.select(sql, list(params)))

    def change(self, sql: str, *params: Any) -> int:
        """Changes rows behind the product's back; how many. `sql` is an UPDATE or DELETE."""
        work = self.core.store.db.write(lambda c: c.select(f"{sql} RETURNING 1", list(params)))
        return len(work.result())

    def look_at_the_clock(self) -> None:
        """Has expired what is to expire, and what follows from it."""
        self.rc.portal.call(self.expiry.look())
        self.settle()


class Fragile(Embedder):
    """The hash embedder, with a switch that takes it away and a list of what it was asked. `refuse` is called with the
    texts of every batch before they are embedded."""

    def __init__(self, dim: int = 64) -> None:
        self.inner = HashEmbedder(dim, 1)
        self.model, self.dim, self.max_tokens = self.inner.model, dim, self.inner.max_tokens
        self.calibration = self.inner.calibration
        self.away = False
        self.batches: list[list[str]] = []
        self.refuse: Callable[[Sequence[str]], None] = lambda texts: None

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if self.away:
            raise EmbedderUnavailable("switched off")
        if task == "document":
            self.refuse(texts)
            self.batches.append(list(texts))
        return await self.inner.embed(texts, task)

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)

    def close(self) -> None:
        self.inner.close()


class Kept(Readers):
    """Readers whose processes outlive the products that use them: starting one takes longer than most tests."""

    async def close(self) -> None:
        pass

    def end(self) -> None:
        """Ends the processes."""
        asyncio.run(super().close())


@pytest.fixture(scope="session")
def readers() -> Iterator[Kept]:
    """The readers of all products."""
    held = Kept(2)
    yield held
    held.end()


@pytest.fixture(scope="module")
def house(lasting_home: Any, readers: Kept) -> Iterator[BlockingMemoranda]:
    """One product for a file of tests; each takes a tenant of its own."""
    with lasting_home.empty() as opened:
        msgspec.structs.force_setattr(opened.inner.core, "readers", readers)
        yield opened


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Numbers for tenants."""
    return itertools.count(1)


@pytest.fixture
def shelf(house: BlockingMemoranda, numbers: Iterator[int]) -> Shelf:
    """A tenant without anything."""
    return Shelf(house, f"tenant{next(numbers)}")


@pytest.fixture
def shelves(house: BlockingMemoranda, numbers: Iterator[int]) -> Callable[[], Shelf]:
    """Tenants without anything, one each call."""
    return lambda: Shelf(house, f"tenant{next(numbers)}")


@pytest.fixture
def lone(rc: BlockingMemoranda, readers: Kept) -> Shelf:
    """The house's own tenant, in a product that no other test uses."""
    msgspec.structs.force_setattr(rc.inner.core, "readers", readers)
    return Shelf(rc)


@pytest.fixture
def fragile(lone: Shelf) -> Fragile:
    """The embedder inside the cache of `lone`."""
    held = Fragile()
    lone.core.embedder.inner = held  # type: ignore[attr-defined]
    return held
