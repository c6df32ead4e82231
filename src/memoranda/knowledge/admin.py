"""What an admin sees and sets: quotas and usage, its own tenant's, or any for the operator of the house."""

from __future__ import annotations

from typing import Any

from memoranda.clock import now_micros
from memoranda.config.sections import Quotas
from memoranda.errors import Forbidden
from memoranda.knowledge.quotas import check_changes, quotas_of
from memoranda.knowledge.values import Usage
from memoranda.storage.sql.base import Connection
from memoranda.store.core import HOUSE, Core, tenant_for
from memoranda.types import Subject


class Admin:
    """Quotas and usage."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def quotas(self, tenant: str | None = None) -> Quotas:
        """What a tenant may hold.

        Raises:
            Forbidden: the subject is no admin, or asks about another tenant and is not the operator.
        """
        named = tenant_for(self.subject, tenant, "admin")
        default = self._core.quotas
        return await self._core.threads.run(
            self._core.store.db.read, lambda c: quotas_of(c, named, default), named
        )

    async def set_quotas(self, changes: dict[str, int | None], tenant: str | None = None) -> Quotas:
        """Sets the named quotas of a tenant; null goes back to the configured default.

        Raises:
            InvalidInput: names the quota.
            Forbidden: the subject is not the operator: nobody sets their own tenant's bounds.
        """
        named = tenant_for(self.subject, tenant, "admin")
        if self.subject.tenant_id != HOUSE:
            raise Forbidden(f"quotas: only an admin of tenant {HOUSE!r} sets them")
        check_changes(changes)

        def work(c: Connection) -> Quotas:
            c.run("add_tenant", [named, now_micros()])
            for name, value in changes.items():
                if value is None:
                    c.run("drop_quota", [named, name])
                else:
                    c.run("set_quota", [named, name, value])
            return quotas_of(c, named, self._core.quotas)

        return await self._core.threads.result(self._core.store.db.write(work, tenant=named))

    async def usage(self, tenant: str | None = None) -> Usage:
        """What a tenant holds. Errors as `quotas`."""
        named = tenant_for(self.subject, tenant, "admin")

        def read(c: Connection) -> Usage:
            def one(name: str) -> Any:
                return c.one(name, [named]) or (0, 0)

            files, chunks = one("usage_of_files"), int(one("count_chunks")[0])
            return Usage(
                storage_bytes=int(files[1]) + int(one("pending_bytes")[0]),
                files=int(files[0]),
                stores=int(one("count_stores")[0]),
                chunks=chunks,
                memories=int(one("count_memories")[0]) - chunks,
            )

        return await self._core.threads.run(self._core.store.db.read, read, named)
