"""The operations on tenants that servers, clients and interfaces have."""

from __future__ import annotations

from memoranda.config.data_sections import Quotas
from memoranda.knowledge.admin import Admin
from memoranda.store.operations import Operation
from memoranda.store.tenants import TenantQuery, limits_body

AT = "/v1/admin"
QUOTAS = f"{AT}/quotas"
OPERATIONS = (
    Operation(Admin.tenants, "GET", f"{AT}/tenants", "operator"),
    Operation(Admin.quotas, "GET", QUOTAS, "admin", TenantQuery),
    Operation(
        Admin.set_quotas,
        "POST",
        QUOTAS,
        "operator",
        limits_body(Quotas),
        beside=TenantQuery,
        local=("changes",),
    ),
    Operation(Admin.usage, "GET", f"{AT}/usage", "admin", TenantQuery),
)
