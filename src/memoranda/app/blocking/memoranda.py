"""The library for callers without an event loop: the same methods and results, blocking."""

from __future__ import annotations

import threading
from datetime import date
from pathlib import Path
from types import TracebackType
from typing import Any

from memoranda.app.archive.archives import Archives
from memoranda.app.blocking.agents import BlockingConversations, BlockingResponses
from memoranda.app.blocking.calls import InProcess
from memoranda.app.blocking.document_qa import BlockingUploadAsk
from memoranda.app.blocking.features import (
    BlockingAgents,
    BlockingContexts,
    BlockingFacts,
    BlockingMemories,
    BlockingSessions,
)
from memoranda.app.blocking.knowledge import BlockingKnowledge
from memoranda.app.blocking.memory_stores import BlockingMemoryStores
from memoranda.app.blocking.switches import BlockingSwitches
from memoranda.app.costs import UsageReport
from memoranda.app.memoranda import Memoranda
from memoranda.concurrency.portal import Portal, blocking
from memoranda.config.sections import Config, Spending
from memoranda.types import Subject


class BlockingArchives:
    """`archives.Archives`, method for method."""

    def __init__(self, inner: Archives, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal

    export_to = blocking(Archives.export_to)
    import_from = blocking(Archives.import_from)


class BlockingMemoranda:
    """`memoranda.Memoranda` on an event loop of its own. Thread-safe; close it, or use it in a `with`. What `open`
    returned is closed at the end of the program otherwise."""

    def __init__(self, inner: Memoranda, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal
        self.config = inner.config
        self.memories = BlockingMemories(InProcess(inner.memories, portal))
        self.knowledge = BlockingKnowledge(inner.knowledge, portal)
        self.responses = BlockingResponses(inner.responses, portal)
        self.conversations = BlockingConversations(inner.conversations, portal)
        self.agents = BlockingAgents(InProcess(inner.agents, portal))
        self.sessions = BlockingSessions(InProcess(inner.sessions, portal))
        self.switches = BlockingSwitches(inner.switches, portal)
        self.memory_stores = BlockingMemoryStores(inner.memory_stores, portal)
        self.facts = BlockingFacts(InProcess(inner.facts, portal))
        self.upload_ask = BlockingUploadAsk(inner.upload_ask, portal)
        self.archives = BlockingArchives(inner.archives, portal)

    observe = blocking(Memoranda.observe)
    import_history = blocking(Memoranda.import_history)
    context = blocking(Memoranda.context)
    evaluate = blocking(Memoranda.evaluate)
    missing = blocking(Memoranda.missing)
    backfill = blocking(Memoranda.backfill)

    def acting_as(self, subject: Subject) -> BlockingMemories:
        """Return the memories as another subject sees them."""
        return BlockingMemories(InProcess(self.inner.acting_as(subject), self.portal))

    def knowing_as(self, subject: Subject) -> BlockingKnowledge:
        """Return the files and vector stores as another subject sees them."""
        return BlockingKnowledge(self.inner.knowing_as(subject), self.portal)

    def responding_as(self, subject: Subject) -> BlockingResponses:
        """Return the responses as another subject sees them."""
        return BlockingResponses(self.inner.responding_as(subject), self.portal)

    def conversing_as(self, subject: Subject) -> BlockingConversations:
        """Return the conversations as another subject sees them."""
        return BlockingConversations(self.inner.conversing_as(subject), self.portal)

    def asking_as(self, subject: Subject) -> BlockingUploadAsk:
        """Return documents, and questions to them, as another subject sees them."""
        return BlockingUploadAsk(self.inner.asking_as(subject), self.portal)

    def archives_as(self, subject: Subject) -> BlockingArchives:
        """Return the archives of another subject's tenant."""
        return BlockingArchives(self.inner.archives_as(subject), self.portal)

    def facts_as(self, subject: Subject) -> BlockingFacts:
        """Return the facts as another subject sees them."""
        return BlockingFacts(InProcess(self.inner.facts_as(subject), self.portal))

    def memory_stores_as(self, subject: Subject) -> BlockingMemoryStores:
        """Return the memory stores as another subject sees them."""
        return BlockingMemoryStores(self.inner.memory_stores_as(subject), self.portal)

    def switches_as(self, subject: Subject) -> BlockingSwitches:
        """Return the switches of its tenant and channels, as another subject may read and set them."""
        return BlockingSwitches(self.inner.switches_as(subject), self.portal)

    def sessions_as(self, subject: Subject) -> BlockingSessions:
        """Return the sessions as another subject sees them."""
        return BlockingSessions(InProcess(self.inner.sessions_as(subject), self.portal))

    def agents_as(self, subject: Subject) -> BlockingAgents:
        """Return the agent profiles as another subject sees them."""
        return BlockingAgents(InProcess(self.inner.agents_as(subject), self.portal))

    def contexts_as(self, subject: Subject) -> BlockingContexts:
        """Return the contexts of another subject: prompts from what it may see."""
        return BlockingContexts(InProcess(self.inner.contexts_as(subject), self.portal))

    def usage(
        self, *, since: date | None = None, until: date | None = None, tenant: str | None = None
    ) -> UsageReport:
        """Return the spending by day and purpose, see `costs.Costs.usage`."""
        return self.portal.call(self.inner.costs.usage(since=since, until=until, tenant=tenant))

    def set_spending(self, changes: dict[str, int | None], tenant: str | None = None) -> Spending:
        """Set the daily limits of a tenant, see `costs.Costs.set_limits`."""
        return self.portal.call(self.inner.costs.set_limits(changes, tenant))

    def close(self) -> None:
        """Finish writes, save the indexes, and release the folder. Idempotent."""
        _open.discard(self)
        if self.portal.alive:
            try:
                self.portal.call(self.inner.close())
            finally:
                self.portal.close()

    def __enter__(self) -> BlockingMemoranda:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


_open = set[BlockingMemoranda]()


def _close_all() -> None:
    """Close what this process left open; in a fork, what is open belongs to the process that it was forked from."""
    for product in [*_open]:
        if product.portal.in_its_process:
            product.close()


# `atexit` is too late: it runs when the pools of threads, which closing needs, have ended.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]


def open(
    data: str | Path | None = None, *, config: Config | None = None, **settings: Any
) -> BlockingMemoranda:
    """Open a data folder for callers without an event loop; arguments and errors as `Memoranda.open`."""
    portal = Portal()
    try:
        product = BlockingMemoranda(portal.call(Memoranda.open(data, config=config, **settings)), portal)
    except BaseException:
        portal.close()
        raise
    _open.add(product)
    return product
