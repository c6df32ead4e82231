"""The library for callers without an event loop."""

from memoranda.app.blocking.features import BlockingContexts, BlockingMemories
from memoranda.app.blocking.memoranda import BlockingMemoranda, open
from memoranda.app.blocking.workspace import BlockingWorkspace

__all__ = ["BlockingContexts", "BlockingMemoranda", "BlockingMemories", "BlockingWorkspace", "open"]
