"""What goes over the wire about facts and their versions."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from memoranda.facts.facts import Extracted, Merged
from memoranda.facts.history import FactVersion, Undone
from memoranda.facts.maintenance import Swept
from memoranda.server.wire import SCOPED, SelectionBody
from memoranda.types import Scopes
from memoranda.validation.constraints import Constraint


class ConsolidateBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """Which facts; all that one may see when nothing is said."""

    constraints: ClassVar[tuple[Constraint, ...]] = SCOPED
    scopes: Scopes | None = None


class MergedFact(Merged, kw_only=True, tag_field="object", tag="memory.merged"):
    """A fact that took the place of others."""


class Consolidation(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.consolidation"):
    """What a consolidation came to; `left` are groups of facts that wait for the next."""

    merged: list[MergedFact]
    left: int


class Extraction(Extracted, kw_only=True, tag_field="object", tag="session.extraction"):
    """What was taken out of a session."""


class Sweep(Swept, kw_only=True, tag_field="object", tag="memory.sweep"):
    """Facts that were archived."""


class VersionOfFact(FactVersion, kw_only=True, tag_field="object", tag="memory.version"):
    """One version of a fact, with what became of it."""


class FactVersions(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.history"):
    """The versions of a fact, in the order in which they hold."""

    id: str
    data: list[VersionOfFact]


class UndoneFact(Undone, kw_only=True, tag_field="object", tag="memory.undone"):
    """What was taken back (null: nothing was there to take back), and what holds again."""
