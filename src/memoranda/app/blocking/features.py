"""The features of the library for callers without an event loop; features.pyi has their signatures."""

from __future__ import annotations

from memoranda.app.archive.archives import Archives
from memoranda.app.backfills import Backfills
from memoranda.app.blocking.calls import blocking_feature
from memoranda.app.costs import Costs
from memoranda.contexts.contexts import Contexts
from memoranda.facts.facts import Facts
from memoranda.memories.memories import Memories
from memoranda.responses.profiles import Agents
from memoranda.sessions.sessions import Sessions

BlockingAgents = blocking_feature(Agents)
BlockingArchives = blocking_feature(Archives)
BlockingBackfills = blocking_feature(Backfills)
BlockingContexts = blocking_feature(Contexts)
BlockingCosts = blocking_feature(Costs)
BlockingFacts = blocking_feature(Facts)
BlockingMemories = blocking_feature(Memories)
BlockingSessions = blocking_feature(Sessions)
