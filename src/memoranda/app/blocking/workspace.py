"""Every feature of the library for one subject, for callers without an event loop."""

from __future__ import annotations

from functools import cached_property

from memoranda.app.blocking.calls import InProcess
from memoranda.app.blocking.features import (
    BlockingAgents,
    BlockingArchives,
    BlockingBackfills,
    BlockingContexts,
    BlockingConversations,
    BlockingCosts,
    BlockingFacts,
    BlockingKnowledge,
    BlockingMemories,
    BlockingMemoryStores,
    BlockingSessions,
    BlockingSwitches,
    BlockingUploadAsk,
)
from memoranda.app.blocking.responses import BlockingResponses
from memoranda.app.workspace import Workspace
from memoranda.concurrency.portal import Portal


class BlockingWorkspace:
    """`workspace.Workspace`, feature for feature."""

    def __init__(self, inner: Workspace, portal: Portal) -> None:
        self.inner = inner
        self.portal = portal
        self.subject = inner.subject

    @cached_property
    def memories(self) -> BlockingMemories:
        """The memories."""
        return BlockingMemories(InProcess(self.inner.memories, self.portal))

    @cached_property
    def knowledge(self) -> BlockingKnowledge:
        """Files and vector stores."""
        return BlockingKnowledge(InProcess(self.inner.knowledge, self.portal))

    @cached_property
    def sessions(self) -> BlockingSessions:
        """Sessions and their messages."""
        return BlockingSessions(InProcess(self.inner.sessions, self.portal))

    @cached_property
    def facts(self) -> BlockingFacts:
        """Facts and their versions."""
        return BlockingFacts(InProcess(self.inner.facts, self.portal))

    @cached_property
    def contexts(self) -> BlockingContexts:
        """Prompts from memories and documents."""
        return BlockingContexts(InProcess(self.inner.contexts, self.portal))

    @cached_property
    def responses(self) -> BlockingResponses:
        """Responses."""
        return BlockingResponses(self.inner.responses, self.portal)

    @cached_property
    def conversations(self) -> BlockingConversations:
        """Conversations and their items."""
        return BlockingConversations(InProcess(self.inner.conversations, self.portal))

    @cached_property
    def agents(self) -> BlockingAgents:
        """Agent profiles."""
        return BlockingAgents(InProcess(self.inner.agents, self.portal))

    @cached_property
    def upload_ask(self) -> BlockingUploadAsk:
        """Documents, and questions about them."""
        return BlockingUploadAsk(InProcess(self.inner.upload_ask, self.portal))

    @cached_property
    def switches(self) -> BlockingSwitches:
        """Switches of the tenant and of its channels."""
        return BlockingSwitches(InProcess(self.inner.switches, self.portal))

    @cached_property
    def memory_stores(self) -> BlockingMemoryStores:
        """Memory stores."""
        return BlockingMemoryStores(InProcess(self.inner.memory_stores, self.portal))

    @cached_property
    def archives(self) -> BlockingArchives:
        """Archives of the tenant."""
        return BlockingArchives(InProcess(self.inner.archives, self.portal))

    @cached_property
    def costs(self) -> BlockingCosts:
        """Spending and its limits."""
        return BlockingCosts(InProcess(self.inner.costs, self.portal))

    @cached_property
    def backfills(self) -> BlockingBackfills:
        """Background work on existing data."""
        return BlockingBackfills(InProcess(self.inner.backfills, self.portal))
