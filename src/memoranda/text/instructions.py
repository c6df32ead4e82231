"""Standing instructions: facts with a tag that a person has confirmed. Values only, no I/O."""

from __future__ import annotations

from memoranda.types import Memory

TAG = "instruction"
"""The tag of a fact that says how the assistant is to answer from now on."""
EXTRACTED = "extraction"
"""The `source` of a fact that was extracted from a conversation."""
RULES = "rules"
"""The `extracted_by` of a fact that was extracted by rules, not by a model."""


def is_standing(memory: Memory) -> bool:
    """Return True for a standing instruction in force.

    A tag alone is not enough: a model, which may obey a document, writes tags of its choice. A fact is confirmed by a
    call of its own that no tool of a model makes.
    """
    return memory.kind == "fact" and TAG in memory.tags and memory.confirmed_at is not None
