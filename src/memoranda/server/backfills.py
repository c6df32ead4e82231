"""`/v1/backfills`: background work on existing data."""

from __future__ import annotations

import msgspec

from memoranda.app.backfills import Kind, Missing
from memoranda.server import wire
from memoranda.server.memories import as_wire
from memoranda.server.route import Call, Route


class BackfillBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to make: vectors that are missing (or, with `everything`, all), summaries of sessions, memories of logged
    questions; and how many a second at most."""

    what: Kind
    everything: bool = False
    rows_per_second: wire.Rate | None = None


async def start(call: Call[BackfillBody, None]) -> wire.JobObject:
    body = call.body
    job = await call.state.memoranda.backfills_as(call.memories.subject).start(
        body.what, everything=body.everything, rows_per_second=body.rows_per_second
    )
    return as_wire(job, wire.JobObject)


class MissingObject(Missing, kw_only=True, tag_field="object", tag="backfills"):
    """What backfills would make."""


async def missing(call: Call[None, None]) -> MissingObject:
    counts = await call.state.memoranda.backfills_as(call.memories.subject).missing()
    return MissingObject(**msgspec.structs.asdict(counts))


ROUTES = (
    Route("GET", "/v1/backfills", "What backfills would make", missing, "admin", MissingObject),
    Route("POST", "/v1/backfills", "Start a backfill", start, "admin", wire.JobObject, BackfillBody),
)
