"""Evaluations at a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from memoranda.app.evals.evaluation import (
    DEFAULTS,
    Evaluation,
    EvaluationQuestion,
    Evaluations,
    SearchConfiguration,
)
from memoranda.client.remote import Remote


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
        answer = await self._wire.call("POST", "/v1/evaluations", body=body)
        return msgspec.json.decode(answer, type=Evaluation)
