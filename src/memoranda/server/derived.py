"""Routes made of operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from memoranda.server.route import Call, Route
from memoranda.store.operations import Operation, arguments

Observed = Callable[[Call[Any, Any], Awaitable[Any]], Awaitable[Any]]
"""Awaits the work of a call and returns its result: for metrics, and for the names of fields in errors."""
NONE: Mapping[Callable[..., Any], Observed] = MappingProxyType({})


async def _unobserved(call: Call[Any, Any], work: Awaitable[Any]) -> Any:
    return await work


def routes(
    feature: str,
    operations: Sequence[Operation],
    observed: Mapping[Callable[..., Any], Observed] = NONE,
) -> tuple[Route, ...]:
    """Return a route for each operation of a feature, which is an attribute of the workspace."""
    return tuple(
        _route(feature, operation, observed.get(operation.method, _unobserved)) for operation in operations
    )


def _route(feature: str, operation: Operation, observed: Observed) -> Route:
    async def answer(call: Call[Any, Any]) -> Any:
        given = {
            **operation.in_path(call.parameters),
            **arguments(call.query if operation.in_query else call.body),
        }
        result = await observed(call, operation.method(getattr(call.workspace, feature), **given))
        return result if operation.shows is None else operation.shows.of(result, given)

    return Route(
        operation.verb,
        operation.path,
        operation.summary,
        answer,
        operation.needs,
        operation.answer,
        None if operation.in_query else operation.input,
        operation.input if operation.in_query else None,
        long=operation.long,
        compresses=operation.compresses,
    )
