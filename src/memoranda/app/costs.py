"""The spending of tenants by day and purpose, and their daily limits."""

from __future__ import annotations

from datetime import date

import msgspec

from memoranda.config.agent_sections import OPERATOR_TENANT, Spending
from memoranda.errors import Forbidden, InvalidInput
from memoranda.knowledge.quotas import check_changes
from memoranda.store.core import Core, tenant_for
from memoranda.store.usage import LIMITS, Spent
from memoranda.types import Subject

DAYS = 30
"""The days of a report without `since`, today included."""
MOST_DAYS = 3_660


class TenantSpending(Spending, frozen=True, kw_only=True, tag_field="object", tag="spending"):
    """What a tenant may spend in a day; null is as much as it likes."""

    tenant: str


class UsageReport(msgspec.Struct, kw_only=True, tag_field="object", tag="usage_report"):
    """What a tenant spent, and what it may spend in a day (UTC; null is as much as it likes). `cost` is the sum of
    `data`, in the `currency` of the configured prices; null without prices."""

    tenant: str
    since: date
    until: date
    data: list[Spent]
    limits: Spending
    currency: str
    cost: float | None


class Costs:
    """Spending as one subject sees it: an admin sees its own tenant's, the operator of the installation any."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def usage(
        self, *, since: date | None = None, until: date | None = None, tenant: str | None = None
    ) -> UsageReport:
        """Return what was spent from one day to another, both included; by default in the last 30 days.

        Raises:
            InvalidInput: the days are in the wrong order, or too many.
            Forbidden: the subject is no admin, or asks about another tenant and is not the operator.
        """
        named = tenant_for(self.subject, tenant, "usage")
        last = until or self._core.costs.today()
        first = since or date.fromordinal(max(1, last.toordinal() - DAYS + 1))
        if not 0 <= (last - first).days < MOST_DAYS:
            raise InvalidInput("since", f"must be a day before `until`, {MOST_DAYS} days at most")
        data = await self._core.costs.spent(named, first, last)
        prices = self._core.config.prices
        for one in data:
            one.cost = prices.cost(one.tokens_in, one.tokens_out, one.tokens_embedded)
        costs = [one.cost for one in data if one.cost is not None]
        return UsageReport(
            tenant=named,
            since=first,
            until=last,
            data=data,
            limits=await self._core.costs.limits(named),
            currency=prices.currency,
            cost=prices.cost(0, 0) if not costs else round(sum(costs), 6),
        )

    async def limits(self, tenant: str | None = None) -> TenantSpending:
        """Return the daily limits of a tenant. Errors as `usage`."""
        named = tenant_for(self.subject, tenant, "usage")
        return _of(named, await self._core.costs.limits(named))

    async def set_limits(self, changes: dict[str, int | None], tenant: str | None = None) -> TenantSpending:
        """Set the named limits of a tenant; None restores the configured default. Jobs that waited for a limit resume.

        Raises:
            InvalidInput: names the limit.
            Forbidden: the subject is not the operator: no tenant sets its own limits.
        """
        named = tenant_for(self.subject, tenant, "usage")
        if self.subject.tenant_id != OPERATOR_TENANT:
            raise Forbidden(f"spending: only an admin of tenant {OPERATOR_TENANT!r} sets limits")
        check_changes(changes, LIMITS, "limit of spending")
        spending = await self._core.costs.set_limits(named, changes)
        self._core.jobs.wake_all()
        return _of(named, spending)


def _of(tenant: str, limits: Spending) -> TenantSpending:
    return TenantSpending(tenant=tenant, **msgspec.structs.asdict(limits))
