"""From the tools that a request declares to those that run here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from memoranda.config.sections import Responses as Settings
from memoranda.responses.tools.base import Tool
from memoranda.responses.tools.files import FileSearch
from memoranda.responses.tools.forget import MemoryForget
from memoranda.responses.tools.memory import MemorySearch, MemoryWrite

Make = Callable[[dict[str, Any], Settings, str], Tool]

TYPES: dict[str, Make] = {
    "file_search": FileSearch.declared,
    "memory_search": MemorySearch.declared,
    "vector_memory_search": MemorySearch.declared,
    "memory_write": MemoryWrite.declared,
    "vector_memory_write": MemoryWrite.declared,
    "memory_forget": MemoryForget.declared,
    "vector_memory_forget": MemoryForget.declared,
}
"""The declared types of built-in tools."""


def tools_of(declared: Sequence[dict[str, Any]], settings: Settings) -> list[Tool]:
    """The built-in tools among those declared, in their order; other types are ignored.

    Raises:
        InvalidInput: a field is wrong; it is named as `tools[i].field`.
    """
    return [
        TYPES[str(raw["type"])](raw, settings, f"tools[{i}]")
        for i, raw in enumerate(declared)
        if raw.get("type") in TYPES
    ]
