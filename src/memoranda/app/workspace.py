"""Every feature of the library for one subject."""

from __future__ import annotations

from functools import cached_property

from msgspec.structs import replace

from memoranda.app.archive.archives import Archives
from memoranda.app.backfills import Backfills
from memoranda.app.costs import Costs
from memoranda.contexts.contexts import Contexts
from memoranda.document_qa.asking import UploadAsk
from memoranda.facts.facts import Facts
from memoranda.knowledge import Knowledge
from memoranda.memories.memories import Memories
from memoranda.memory_stores import MemoryStores
from memoranda.responses.conversations import Conversations
from memoranda.responses.engine import Engine
from memoranda.responses.profiles import Agents
from memoranda.responses.responses import Responses
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.switches import Switches
from memoranda.store.core import Core
from memoranda.types import Subject


class Workspace:
    """The features for one subject, which is in the configured time zone if it names none. Creating one opens and
    copies nothing; each feature is created at its first use."""

    def __init__(self, core: Core, subject: Subject, engine: Engine) -> None:
        zone = core.config.sessions.time_zone
        self.core = core
        self.subject = subject if subject.time_zone is not None else replace(subject, time_zone=zone)
        self.engine = engine

    @cached_property
    def memories(self) -> Memories:
        """The memories."""
        return Memories(self.core, self.subject)

    @cached_property
    def knowledge(self) -> Knowledge:
        """Files and vector stores."""
        return Knowledge(self.core, self.subject)

    @cached_property
    def sessions(self) -> Sessions:
        """Sessions and their messages."""
        return Sessions(self.core, self.subject)

    @cached_property
    def facts(self) -> Facts:
        """Facts and their versions."""
        return Facts(self.core, self.subject)

    @cached_property
    def contexts(self) -> Contexts:
        """Prompts from memories and documents."""
        return Contexts(self.core, self.subject)

    @cached_property
    def responses(self) -> Responses:
        """Responses."""
        return Responses(self.engine, self.subject)

    @cached_property
    def conversations(self) -> Conversations:
        """Conversations and their items."""
        return Conversations(self.core, self.subject)

    @cached_property
    def agents(self) -> Agents:
        """Agent profiles."""
        return self.engine.agents(self.subject)

    @cached_property
    def upload_ask(self) -> UploadAsk:
        """Documents, and questions about them."""
        return UploadAsk(self.core, self.subject)

    @cached_property
    def switches(self) -> Switches:
        """Switches of the tenant and of its channels."""
        return Switches(self.core, self.subject)

    @cached_property
    def memory_stores(self) -> MemoryStores:
        """Memory stores."""
        return MemoryStores(self.core, self.subject)

    @cached_property
    def archives(self) -> Archives:
        """Archives of the tenant."""
        return Archives(self.core, self.subject)

    @cached_property
    def costs(self) -> Costs:
        """Spending and its limits."""
        return Costs(self.core, self.subject)

    @cached_property
    def backfills(self) -> Backfills:
        """Background work on existing data."""
        return Backfills(self.core, self.subject)
