"""Quotas and usage for admins: of their own tenant, or of any for the operator of the installation."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from memoranda.clock import moment, now_micros
from memoranda.config.agent_sections import OPERATOR_TENANT
from memoranda.errors import Forbidden
from memoranda.knowledge.quotas import check_changes, quotas_of
from memoranda.knowledge.values import Tenant, TenantQuotas, Usage
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core, tenant_for
from memoranda.store.paging import Listed, as_page, check_page
from memoranda.types import Subject

MAX_TENANTS = 1_000
TenantsLimit = Annotated[int, Meta(ge=1, le=MAX_TENANTS)]


class Admin:
    """Tenants, quotas and usage."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def tenants(self, *, limit: TenantsLimit = 100, after: str | None = None) -> Listed[Tenant]:
        """Return one page of the tenants of the folder, by name: `after` is the last name of the page before.

        Raises:
            InvalidInput: a field is wrong.
            Forbidden: the subject is not the operator.
        """
        if self.subject.role != "admin" or self.subject.tenant_id != OPERATOR_TENANT:
            raise Forbidden(f"tenants: only an admin of tenant {OPERATOR_TENANT!r} sees them")
        check_page(limit, "asc", MAX_TENANTS)
        rows = await self._core.threads.run(
            self._core.store.db.read, lambda c: c.all("tenants_after", [after or "", limit + 1])
        )
        tenants = [Tenant(name=str(name), created_at=moment(at)) for name, at in rows[:limit]]
        return as_page(tenants, [tenant.name for tenant in tenants], len(rows) > limit)

    async def quotas(self, tenant: str | None = None) -> TenantQuotas:
        """Return the quotas of a tenant.

        Raises:
            Forbidden: the subject is no admin, or asks about another tenant and is not the operator.
        """
        named = tenant_for(self.subject, tenant, "admin")
        return await self._core.threads.run(self._core.store.db.read, lambda c: self._quotas(c, named), named)

    def _quotas(self, c: Connection, tenant: str) -> TenantQuotas:
        limits = quotas_of(c, tenant, self._core.quotas)
        return TenantQuotas(tenant=tenant, **msgspec.structs.asdict(limits))

    async def set_quotas(self, changes: dict[str, int | None], tenant: str | None = None) -> TenantQuotas:
        """Set the named quotas of a tenant; null restores the configured default.

        Raises:
            InvalidInput: names the quota.
            Forbidden: the subject is not the operator: no tenant sets its own quotas.
        """
        named = tenant_for(self.subject, tenant, "admin")
        if self.subject.tenant_id != OPERATOR_TENANT:
            raise Forbidden(f"quotas: only an admin of tenant {OPERATOR_TENANT!r} sets them")
        check_changes(changes)

        def work(c: Connection) -> TenantQuotas:
            c.run("add_tenant", [named, now_micros()])
            for name, value in changes.items():
                if value is None:
                    c.run("drop_quota", [named, name])
                else:
                    c.run("set_quota", [named, name, value])
            return self._quotas(c, named)

        return await self._core.threads.result(self._core.store.db.write(work, tenant=named))

    async def usage(self, tenant: str | None = None) -> Usage:
        """Return what a tenant uses. Errors as `quotas`."""
        named = tenant_for(self.subject, tenant, "admin")

        def read(c: Connection) -> Usage:
            def counted(name: str) -> Any:
                return c.one(name, [named]) or (0, 0)

            files, chunks = counted("usage_of_files"), int(counted("count_chunks")[0])
            return Usage(
                tenant=named,
                storage_bytes=int(files[1]) + int(counted("pending_bytes")[0]),
                files=int(files[0]),
                stores=int(counted("count_stores")[0]),
                chunks=chunks,
                memories=int(counted("count_memories")[0]) - chunks,
            )

        return await self._core.threads.run(self._core.store.db.read, read, named)
