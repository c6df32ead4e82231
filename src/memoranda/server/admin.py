"""`/v1/admin`: tenants, their quotas and their usage."""

from __future__ import annotations

from typing import Any

import msgspec

from memoranda.config.sections import Quotas
from memoranda.server import wire_tenants as wire
from memoranda.server.memories import as_wire, changes_for
from memoranda.server.route import Call, Route


async def tenants(call: Call[None, wire.TenantsQuery]) -> wire.TenantPage:
    page = await call.workspace.knowledge.admin.tenants(limit=call.query.limit, after=call.query.after)
    return wire.TenantPage(
        data=[as_wire(tenant, wire.TenantObject) for tenant in page.data],
        first_id=page.first_id,
        last_id=page.last_id,
        has_more=page.has_more,
    )


async def quotas(call: Call[None, wire.TenantQuery]) -> wire.QuotasObject:
    tenant = call.query.tenant
    return _quotas(call, await call.workspace.knowledge.admin.quotas(tenant), tenant)


async def set_quotas(call: Call[wire.QuotasBody, wire.TenantQuery]) -> wire.QuotasObject:
    changes, tenant = changes_for(call.body, call.query.tenant)
    return _quotas(call, await call.workspace.knowledge.admin.set_quotas(changes, tenant=tenant), tenant)


async def usage(call: Call[None, wire.TenantQuery]) -> wire.UsageObject:
    counts = await call.workspace.knowledge.admin.usage(call.query.tenant)
    return wire.UsageObject(tenant=_tenant(call, call.query.tenant), **msgspec.structs.asdict(counts))


def _quotas(call: Call[Any, wire.TenantQuery], limits: Quotas, tenant: str | None) -> wire.QuotasObject:
    return wire.QuotasObject(tenant=_tenant(call, tenant), **msgspec.structs.asdict(limits))


def _tenant(call: Call[Any, wire.TenantQuery], tenant: str | None) -> str:
    return tenant or call.workspace.subject.tenant_id


AT = "/v1/admin"
TENANT = wire.TenantQuery
ROUTES = (
    Route(
        "GET", f"{AT}/tenants", "The tenants of the folder", tenants, "operator", wire.TenantPage,
        query=wire.TenantsQuery,
    ),
    Route("GET", f"{AT}/quotas", "What a tenant may hold", quotas, "admin", wire.QuotasObject, query=TENANT),
    Route(
        "POST", f"{AT}/quotas", "Change what a tenant may hold", set_quotas, "operator", wire.QuotasObject,
        wire.QuotasBody, TENANT,
    ),
    Route("GET", f"{AT}/usage", "What a tenant holds", usage, "admin", wire.UsageObject, query=TENANT),
)  # fmt: skip
