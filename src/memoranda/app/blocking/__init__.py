"""The library for callers without an event loop."""

from memoranda.app.blocking.features import BlockingContexts, BlockingMemories
from memoranda.app.blocking.memoranda import BlockingMemoranda, open

__all__ = ["BlockingContexts", "BlockingMemoranda", "BlockingMemories", "open"]
