"""The operations on backfills that servers, clients and interfaces have."""

from __future__ import annotations

from memoranda.app.backfills import Backfills
from memoranda.store.operations import Operation

AT = "/v1/backfills"
OPERATIONS = (
    Operation(Backfills.missing, "GET", AT, "admin"),
    Operation(Backfills.start, "POST", AT, "admin"),
)
