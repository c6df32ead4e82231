"""The operations on backfills and spending that servers, clients and interfaces have."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from msgspec import Meta

from memoranda.app.backfills import Backfills
from memoranda.app.costs import Costs
from memoranda.config.agent_sections import Spending
from memoranda.store.operations import Operation
from memoranda.store.tenants import TenantQuery, limits_body

Day = Annotated[date, Meta(extra_json_schema={"pattern": r"^\d{4}-\d{2}-\d{2}$"})]


class UsageQuery(TenantQuery, kw_only=True, forbid_unknown_fields=True):
    """From one day to another (UTC), both included; the last 30 days unless said."""

    since: Day | None = None
    until: Day | None = None


AT, LIMITS = "/v1/backfills", "/v1/admin/spending"
BACKFILLS = (
    Operation(Backfills.missing, "GET", AT, "admin"),
    Operation(Backfills.start, "POST", AT, "admin"),
)
COSTS = (
    Operation(Costs.usage, "GET", "/v1/usage", "admin", UsageQuery),
    Operation(Costs.limits, "GET", LIMITS, "admin", TenantQuery),
    Operation(
        Costs.set_limits,
        "POST",
        LIMITS,
        "operator",
        limits_body(Spending),
        beside=TenantQuery,
        local=("changes",),
    ),
)
