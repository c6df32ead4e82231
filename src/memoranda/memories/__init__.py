"""Memories of one subject: add, search, list, update, delete, export and import."""

from memoranda.memories.memories import Memories

__all__ = ["Memories"]
