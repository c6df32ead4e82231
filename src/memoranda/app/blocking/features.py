"""The features of the library for callers without an event loop; features.pyi has their signatures."""

from __future__ import annotations

from memoranda.app.blocking.calls import blocking_feature
from memoranda.contexts.contexts import Contexts
from memoranda.facts.facts import Facts
from memoranda.memories.memories import Memories
from memoranda.responses.profiles import Agents
from memoranda.sessions.sessions import Sessions

BlockingAgents = blocking_feature(Agents)
BlockingContexts = blocking_feature(Contexts)
BlockingFacts = blocking_feature(Facts)
BlockingMemories = blocking_feature(Memories)
BlockingSessions = blocking_feature(Sessions)
