"""The library for callers without an event loop."""

from memoranda.app.blocking.memoranda import BlockingContexts, BlockingMemoranda, BlockingMemories, open

__all__ = ["BlockingContexts", "BlockingMemoranda", "BlockingMemories", "open"]
