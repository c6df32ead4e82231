"""What clients of Anthropic's memory stores send and read, beside the values of `memory_stores`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from memoranda.memory_stores.values import (
    MAX_PAGE,
    ContentChanged,
    PathTaken,
)
from memoranda.server.errors import ErrorEnvelope, Problem

Limit = Annotated[int, Meta(ge=1, le=MAX_PAGE)]
TYPES = {
    401: "authentication_error", 403: "permission_error", 404: "not_found_error", 409: "conflict_error",
    413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error",
}  # fmt: skip
"""Anthropic's types of errors, by status."""


class AnthropicProblem(Problem, kw_only=True):
    """What went wrong. A path that is taken names the memory that has it, or is above or below it."""

    conflicting_memory_id: str | UnsetType = UNSET
    conflicting_path: str | UnsetType = UNSET


class AnthropicFailure(ErrorEnvelope):
    """An error as Anthropic's clients read it."""

    error: AnthropicProblem
    type: Literal["error"] = "error"


def failure(status: int, error: Problem, exc: Exception) -> AnthropicFailure:
    type_ = TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    taken = exc if isinstance(exc, PathTaken) else None
    if taken is not None:
        type_ = "memory_path_conflict_error"
    elif isinstance(exc, ContentChanged):
        type_ = "memory_precondition_failed_error"
    return AnthropicFailure(
        AnthropicProblem(
            message=error.message,
            type=type_,
            param=error.param,
            code=error.code,
            conflicting_memory_id=taken.memory_id if taken else UNSET,
            conflicting_path=taken.path if taken else UNSET,
        )
    )
