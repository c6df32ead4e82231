"""`/v1/usage` and `/v1/admin/spending`: the spending of a tenant, and its daily limits."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.app.costs import UsageReport
from memoranda.config.sections import Spending
from memoranda.server.memories import changes_for
from memoranda.server.route import Call, Route
from memoranda.server.wire_tenants import Quota, TenantName, TenantQuery

Day = Annotated[date, Meta(extra_json_schema={"pattern": r"^\d{4}-\d{2}-\d{2}$"})]


class UsageQuery(TenantQuery, kw_only=True, forbid_unknown_fields=True):
    """From one day to another (UTC), both included; the last 30 days unless said."""

    since: Day | None = None
    until: Day | None = None


class UsageReportObject(UsageReport, kw_only=True, tag_field="object", tag="usage_report"):
    """What a tenant spent, by day and purpose, and what it may spend in a day."""


class SpendingBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The limits to change; null is the configured default again. `tenant` as in the query."""

    tenant: TenantName | None = None
    model_calls_per_day: Quota | None | UnsetType = UNSET
    model_tokens_per_day: Quota | None | UnsetType = UNSET
    background_tokens_per_day: Quota | None | UnsetType = UNSET
    embedded_tokens_per_day: Quota | None | UnsetType = UNSET


class SpendingObject(msgspec.Struct, kw_only=True, tag_field="object", tag="spending"):
    """What a tenant may spend in a day; null is as much as it likes."""

    tenant: str
    model_calls_per_day: int | None
    model_tokens_per_day: int | None
    background_tokens_per_day: int | None
    embedded_tokens_per_day: int | None


async def usage(call: Call[None, UsageQuery]) -> UsageReportObject:
    asked = call.query
    report = await call.workspace.costs.usage(since=asked.since, until=asked.until, tenant=asked.tenant)
    return UsageReportObject(**msgspec.structs.asdict(report))


async def spending(call: Call[None, TenantQuery]) -> SpendingObject:
    tenant = call.query.tenant
    return _spending(call, await call.workspace.costs.limits(tenant), tenant)


async def set_spending(call: Call[SpendingBody, TenantQuery]) -> SpendingObject:
    changes, tenant = changes_for(call.body, call.query.tenant)
    return _spending(call, await call.workspace.costs.set_limits(changes, tenant), tenant)


def _spending(call: Call[Any, TenantQuery], limits: Spending, tenant: str | None) -> SpendingObject:
    whose = tenant or call.workspace.subject.tenant_id
    return SpendingObject(tenant=whose, **msgspec.structs.asdict(limits))


AT = "/v1/admin/spending"
ROUTES = (
    Route("GET", "/v1/usage", "What a tenant spent", usage, "admin", UsageReportObject, query=UsageQuery),
    Route("GET", AT, "What a tenant may spend in a day", spending, "admin", SpendingObject, query=TenantQuery),
    Route(
        "POST", AT, "Change what a tenant may spend", set_spending, "operator", SpendingObject, SpendingBody,
        TenantQuery,
    ),
)  # fmt: skip
