"""Spending and evaluations at a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from memoranda.app.costs import Costs, UsageReport
from memoranda.app.evals.evaluation import (
    DEFAULTS,
    Evaluation,
    EvaluationQuestion,
    Evaluations,
    SearchConfiguration,
)
from memoranda.client.remote import Remote
from memoranda.client.wire import query_of
from memoranda.config.sections import Spending


class RemoteCosts(Remote, Costs):
    """The spending of the tenants of a server."""

    async def usage(
        self, *, since: date | None = None, until: date | None = None, tenant: str | None = None
    ) -> UsageReport:
        """See `Costs.usage`."""
        query = query_of({"since": since, "until": until, "tenant": tenant})
        return msgspec.json.decode(await self._wire.call("GET", "/v1/usage", query=query), type=UsageReport)

    async def set_limits(self, changes: dict[str, int | None], tenant: str | None = None) -> Spending:
        """See `Costs.set_limits`."""
        query = query_of({"tenant": tenant})
        answer = await self._wire.call("POST", "/v1/admin/spending", body=changes, query=query)
        return msgspec.json.decode(answer, type=Spending)


class RemoteEvaluations(Remote, Evaluations):
    """Comparisons of ways to search the memories of a server."""

    async def evaluate(
        self,
        questions: Sequence[EvaluationQuestion | Mapping[str, object]],
        configurations: Sequence[SearchConfiguration | Mapping[str, object]] = (DEFAULTS,),
        *,
        limit: int = 10,
    ) -> Evaluation:
        """See `Evaluations.evaluate`."""
        body = {"questions": questions, "configurations": configurations, "limit": limit}
        return msgspec.json.decode(
            await self._wire.call("POST", "/v1/evaluations", body=body), type=Evaluation
        )
