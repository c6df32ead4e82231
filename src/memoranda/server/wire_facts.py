"""What goes over the wire about facts and their versions."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta

from memoranda.facts.facts import MAX_PAGE, Extracted, Merged
from memoranda.facts.history import FactVersion, Undone
from memoranda.facts.maintenance import Swept
from memoranda.facts.timeline import Timeline
from memoranda.server.wire import SCOPED, SelectionBody
from memoranda.types import AnyScopes, Moment, Scopes, any_text
from memoranda.validation.constraints import Constraint


class ConsolidateBody(SelectionBody, kw_only=True, forbid_unknown_fields=True):
    """Which facts; all that one may see when nothing is said."""

    constraints: ClassVar[tuple[Constraint, ...]] = SCOPED
    scopes: Scopes | None = None


class MergedFact(Merged, kw_only=True, tag_field="object", tag="memory.merged"):
    """A fact that took the place of others."""


class Consolidation(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.consolidation"):
    """What a consolidation came to; `left` are groups of facts that wait for the next. `reason` says why nothing was
    done."""

    merged: list[MergedFact]
    left: int
    reason: str | None = None


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


class TimelineQuery(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A page of facts over time: of which scopes, as of which moment, with which words."""

    scopes: AnyScopes | None = None
    at: Moment | None = None
    text: Annotated[str, any_text(1_000)] = ""
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50
    after: str | None = None


class FactTimeline(Timeline, kw_only=True, tag_field="object", tag="memory.timeline"):
    """Facts over time, each with the versions that it superseded."""


class UndoneFact(Undone, kw_only=True, tag_field="object", tag="memory.undone"):
    """What was taken back (null: nothing was there to take back), and what holds again."""
