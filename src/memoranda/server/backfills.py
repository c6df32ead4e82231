"""`/v1/backfills`: background work on existing data."""

from __future__ import annotations

import msgspec

from memoranda.app.backfills import Kind, Missing
from memoranda.server.route import Call, Route
from memoranda.types import Job, Rate


class BackfillBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What to make: vectors that are missing (or, with `everything`, all), summaries of sessions, memories of logged
    questions; and how many a second at most."""

    what: Kind
    everything: bool = False
    rows_per_second: Rate | None = None


async def start(call: Call[BackfillBody, None]) -> Job:
    body = call.body
    return await call.workspace.backfills.start(
        body.what, everything=body.everything, rows_per_second=body.rows_per_second
    )


class MissingObject(Missing, kw_only=True, tag_field="object", tag="backfills"):
    """What backfills would make."""


async def missing(call: Call[None, None]) -> MissingObject:
    counts = await call.workspace.backfills.missing()
    return MissingObject(**msgspec.structs.asdict(counts))


ROUTES = (
    Route("GET", "/v1/backfills", "What backfills would make", missing, "admin", MissingObject),
    Route("POST", "/v1/backfills", "Start a backfill", start, "admin", Job, BackfillBody),
)
