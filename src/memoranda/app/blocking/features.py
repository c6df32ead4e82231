"""The features of the library for callers without an event loop; features.pyi has their signatures."""

from __future__ import annotations

from memoranda.app.blocking.calls import blocking_feature
from memoranda.facts.facts import Facts
from memoranda.memories.memories import Memories

BlockingFacts = blocking_feature(Facts)
BlockingMemories = blocking_feature(Memories)
