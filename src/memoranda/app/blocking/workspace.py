"""Every feature of the library for one subject, for callers without an event loop."""

from __future__ import annotations

from functools import cached_property

from memoranda.app.blocking.features import (
    BlockingAgents,
    BlockingArchives,
    BlockingBackfills,
    BlockingContexts,
    BlockingConversations,
    BlockingCosts,
    BlockingEvaluations,
    BlockingFacts,
    BlockingKnowledge,
    BlockingMemories,
    BlockingMemoryStores,
    BlockingSessions,
    BlockingSwitches,
    BlockingUploadAsk,
)
from memoranda.app.blocking.responses import BlockingResponses
from memoranda.app.workspace import Features, Workspace
from memoranda.concurrency.portal import Runner, blocking


class BlockingFeatures:
    """`workspace.Features`, method for method."""

    def __init__(self, inner: Features, portal: Runner) -> None:
        self.inner = inner
        self.portal = portal

    observe = blocking(Features.observe)
    context = blocking(Features.context)
    evaluate = blocking(Features.evaluate)
    usage = blocking(Features.usage)
    set_spending = blocking(Features.set_spending)
    missing = blocking(Features.missing)
    backfill = blocking(Features.backfill)
    import_history = blocking(Features.import_history)

    @cached_property
    def memories(self) -> BlockingMemories:
        """The memories."""
        return BlockingMemories(self.inner.memories, self.portal)

    @cached_property
    def knowledge(self) -> BlockingKnowledge:
        """Files and vector stores."""
        return BlockingKnowledge(self.inner.knowledge, self.portal)

    @cached_property
    def sessions(self) -> BlockingSessions:
        """Sessions and their messages."""
        return BlockingSessions(self.inner.sessions, self.portal)

    @cached_property
    def facts(self) -> BlockingFacts:
        """Facts and their versions."""
        return BlockingFacts(self.inner.facts, self.portal)

    @cached_property
    def contexts(self) -> BlockingContexts:
        """Prompts from memories and documents."""
        return BlockingContexts(self.inner.contexts, self.portal)

    @cached_property
    def responses(self) -> BlockingResponses:
        """Responses."""
        return BlockingResponses(self.inner.responses, self.portal)

    @cached_property
    def conversations(self) -> BlockingConversations:
        """Conversations and their items."""
        return BlockingConversations(self.inner.conversations, self.portal)

    @cached_property
    def agents(self) -> BlockingAgents:
        """Agent profiles."""
        return BlockingAgents(self.inner.agents, self.portal)

    @cached_property
    def upload_ask(self) -> BlockingUploadAsk:
        """Documents, and questions about them."""
        return BlockingUploadAsk(self.inner.upload_ask, self.portal)

    @cached_property
    def switches(self) -> BlockingSwitches:
        """Switches of the tenant and of its channels."""
        return BlockingSwitches(self.inner.switches, self.portal)

    @cached_property
    def memory_stores(self) -> BlockingMemoryStores:
        """Memory stores."""
        return BlockingMemoryStores(self.inner.memory_stores, self.portal)

    @cached_property
    def archives(self) -> BlockingArchives:
        """Archives of the tenant."""
        return BlockingArchives(self.inner.archives, self.portal)

    @cached_property
    def costs(self) -> BlockingCosts:
        """Spending and its limits."""
        return BlockingCosts(self.inner.costs, self.portal)

    @cached_property
    def backfills(self) -> BlockingBackfills:
        """Background work on existing data."""
        return BlockingBackfills(self.inner.backfills, self.portal)

    @cached_property
    def evaluations(self) -> BlockingEvaluations:
        """Comparisons of ways to search."""
        return BlockingEvaluations(self.inner.evaluations, self.portal)


class BlockingWorkspace(BlockingFeatures):
    """`workspace.Workspace`, method for method."""

    inner: Workspace

    def __init__(self, inner: Workspace, portal: Runner) -> None:
        super().__init__(inner, portal)
        self.subject = inner.subject
