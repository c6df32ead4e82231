"""`/v1/evaluations`: ways of searching compared, question by question."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from memoranda.app.evals.bundled import evaluate_bundled
from memoranda.app.evals.evaluation import (
    DEFAULTS,
    MOST_CONFIGURATIONS,
    MOST_LIMIT,
    MOST_QUESTIONS,
    Evaluation,
    EvaluationQuestion,
    SearchConfiguration,
)
from memoranda.server.route import Call, Route, as_wire
from memoranda.validation.constraints import Constraint, NotBoth, OneOf


class EvaluationBody(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A bundled set, or questions about memories that are stored; the configurations to compare, and how many results
    each question asks for."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        OneOf(("set", "questions"), "names what to evaluate; or give `questions` of your own"),
        NotBoth("set", "questions", "goes without `questions`: evaluate the one, then the other"),
    )
    set: Literal["synthetic", "assistant"] | None = None
    questions: Annotated[list[EvaluationQuestion], Meta(min_length=1, max_length=MOST_QUESTIONS)] | None = (
        None
    )
    configurations: Annotated[
        list[SearchConfiguration], Meta(min_length=1, max_length=MOST_CONFIGURATIONS)
    ] = msgspec.field(default_factory=lambda: [DEFAULTS])
    limit: Annotated[int, Meta(ge=1, le=MOST_LIMIT)] = 10


class EvaluationObject(Evaluation, kw_only=True, tag_field="object", tag="evaluation"):
    """How each configuration did, over all questions and question by question."""


async def create(call: Call[EvaluationBody, None]) -> EvaluationObject:
    body, subject, product = call.body, call.workspace.subject, call.state.memoranda
    async with call.state.evaluating:
        if body.set is None:
            evaluation = await call.workspace.evaluate(
                body.questions or [], body.configurations, limit=body.limit
            )
        else:
            evaluation = await evaluate_bundled(
                product, subject, body.set, body.configurations, limit=body.limit
            )
    return as_wire(evaluation, EvaluationObject)


ROUTES = (
    Route(
        "POST", "/v1/evaluations", "Compare ways of searching", create, "read", EvaluationObject, EvaluationBody,
        long=True,
    ),
)  # fmt: skip
