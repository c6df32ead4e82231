"""The features that a server offers."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from memoranda.app.archive.archives import Archives
from memoranda.app.backfills import Backfills
from memoranda.app.costs import Costs
from memoranda.app.evals.evaluation import Evaluations
from memoranda.app.operations import BACKFILLS, COSTS
from memoranda.client.archives import RemoteArchives
from memoranda.client.conversations import RemoteConversations
from memoranda.client.evaluations import RemoteEvaluations
from memoranda.client.knowledge import RemoteKnowledge
from memoranda.client.memories import RemoteMemories
from memoranda.client.memory_stores import RemoteMemoryStores
from memoranda.client.remote import offered
from memoranda.client.responses import RemoteResponses
from memoranda.contexts.contexts import Contexts
from memoranda.contexts.operations import OPERATIONS as CONTEXTS
from memoranda.facts.facts import Facts
from memoranda.facts.operations import OPERATIONS as FACTS
from memoranda.knowledge import Knowledge
from memoranda.memories.memories import Memories
from memoranda.memories.operations import OPERATIONS as MEMORIES
from memoranda.memory_stores.operations import STORES
from memoranda.memory_stores.stores import MemoryStores
from memoranda.responses.agent_operations import OPERATIONS as AGENTS
from memoranda.responses.conversations import Conversations
from memoranda.responses.profiles import Agents
from memoranda.responses.responses import Responses
from memoranda.sessions.operations import OPERATIONS as SESSIONS
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.switch_operations import OPERATIONS as SWITCHES
from memoranda.sessions.switches import Switches

REMOTE: Mapping[type, Any] = MappingProxyType(
    {
        Agents: offered(Agents, AGENTS),
        Archives: offered(Archives, written=RemoteArchives),
        Backfills: offered(Backfills, BACKFILLS),
        Contexts: offered(Contexts, CONTEXTS),
        Conversations: offered(Conversations, written=RemoteConversations),
        Costs: offered(Costs, COSTS),
        Evaluations: offered(Evaluations, written=RemoteEvaluations),
        Facts: offered(Facts, FACTS),
        Knowledge: RemoteKnowledge,
        Memories: offered(Memories, MEMORIES, RemoteMemories),
        MemoryStores: offered(MemoryStores, STORES, RemoteMemoryStores),
        Responses: offered(Responses, written=RemoteResponses),
        Sessions: offered(Sessions, SESSIONS),
        Switches: offered(Switches, SWITCHES),
    }
)
"""The class of each feature at a server."""
