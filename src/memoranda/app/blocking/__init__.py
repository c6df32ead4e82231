"""The library for callers without an event loop."""

from memoranda.app.blocking.features import BlockingMemories
from memoranda.app.blocking.memoranda import BlockingContexts, BlockingMemoranda, open

__all__ = ["BlockingContexts", "BlockingMemoranda", "BlockingMemories", "open"]
