"""Facts extracted from conversations, with their sources, validity and versions."""

from __future__ import annotations

from memoranda.facts.facts import Consolidated, Extracted, Facts, Merged
from memoranda.facts.history import FactHistory, FactVersion, Undone
from memoranda.facts.maintenance import Swept
from memoranda.facts.provenance import cut
from memoranda.facts.versions import FactChange

__all__ = [
    "Consolidated",
    "Extracted",
    "FactChange",
    "FactHistory",
    "FactVersion",
    "Facts",
    "Merged",
    "Swept",
    "Undone",
    "cut",
]
