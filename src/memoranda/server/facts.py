"""Facts: extraction from a session, consolidation, archiving, and the versions of a fact, confirmed or undone."""

from __future__ import annotations

from memoranda.server import wire_facts as wire
from memoranda.server.memories import as_wire, selected
from memoranda.server.route import Call, Route
from memoranda.server.wire import MemoryObject


async def consolidate(call: Call[wire.ConsolidateBody, None]) -> wire.Consolidation:
    done = await call.facts.consolidate(**selected(call.body))
    merged = [as_wire(fact, wire.MergedFact) for fact in done.merged]
    return wire.Consolidation(merged=merged, left=done.left, reason=done.reason)


async def extract(call: Call[None, None]) -> wire.Extraction:
    return as_wire(await call.facts.extract(call.id), wire.Extraction)


async def sweep(call: Call[None, None]) -> wire.Sweep:
    return as_wire(await call.facts.sweep(), wire.Sweep)


async def history(call: Call[None, None]) -> wire.FactVersions:
    versions = await call.facts.history(call.id)
    return wire.FactVersions(
        id=versions.id, data=[as_wire(version, wire.VersionOfFact) for version in versions.data]
    )


async def timeline(call: Call[None, wire.TimelineQuery]) -> wire.FactTimeline:
    query = call.query
    found = await call.facts.timeline(
        scopes=query.scopes, at=query.at, text=query.text, limit=query.limit, after=query.after
    )
    return as_wire(found, wire.FactTimeline)


async def confirm(call: Call[None, None]) -> MemoryObject:
    return as_wire(await call.facts.confirm(call.id), MemoryObject)


async def undo(call: Call[None, None]) -> wire.UndoneFact:
    return as_wire(await call.facts.undo(call.id), wire.UndoneFact)


AT = "/v1/memories"
ROUTES = (
    Route(
        "POST", f"{AT}/consolidate", "Make related facts one", consolidate, "write", wire.Consolidation,
        wire.ConsolidateBody, long=True,
    ),
    Route("POST", f"{AT}/sweep", "Archive unused facts now", sweep, "admin", wire.Sweep, long=True),
    Route(
        "POST", "/v1/sessions/{session_id}/extract", "Take facts out of a session now", extract, "write",
        wire.Extraction, long=True,
    ),
    Route(
        "GET", f"{AT}/timeline", "Facts over time", timeline, "read", wire.FactTimeline, query=wire.TimelineQuery,
        long=True, compresses=True,
    ),
    Route("GET", f"{AT}/{{id}}/history", "The versions of a fact", history, "read", wire.FactVersions),
    Route("POST", f"{AT}/{{id}}/confirm", "Confirm a fact", confirm, "write", MemoryObject),
    Route("POST", f"{AT}/{{id}}/undo", "Take the last change of a fact back", undo, "write", wire.UndoneFact),
)  # fmt: skip
