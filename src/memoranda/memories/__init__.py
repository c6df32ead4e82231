"""The verbs of memory for one subject."""

from memoranda.memories.memories import Memories

__all__ = ["Memories"]
