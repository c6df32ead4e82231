"""Routes made of operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from memoranda.app.workspace import Workspace
from memoranda.server.route import OWN, Api, Call, Route
from memoranda.store.operations import Operation

Observed = Callable[[Call[Any, Any], Awaitable[Any]], Awaitable[Any]]
"""Awaits the work of a call and returns its result: for metrics, and for the names of fields in errors."""
NONE: Mapping[Callable[..., Any], Observed] = MappingProxyType({})


async def _unobserved(call: Call[Any, Any], work: Awaitable[Any]) -> Any:
    return await work


def routes(
    feature: str,
    operations: Sequence[Operation],
    observed: Mapping[Callable[..., Any], Observed] = NONE,
    api: Api = OWN,
) -> tuple[Route, ...]:
    """Return a route for each operation of a feature, which is an attribute of the workspace, or of one of its
    features, as in `knowledge.admin`."""
    return tuple(
        _route(attrgetter(feature), operation, observed.get(operation.method, _unobserved), api)
        for operation in operations
    )


def _route(of: Callable[[Workspace], Any], operation: Operation, observed: Observed, api: Api) -> Route:
    async def answer(call: Call[Any, Any]) -> Any:
        given = {
            **operation.in_path(call.parameters),
            **operation.merged(call.body, call.query),
        }
        feature = of(call.workspace)
        if operation.of:
            feature = feature(*(call.parameters[name] for name in operation.of))
        result = await observed(call, operation.method(feature, **given))
        return result if operation.shows is None else operation.shows.of(result, given)

    return Route(
        operation.verb,
        operation.path,
        operation.summary,
        answer,
        operation.needs,
        operation.answer,
        None if operation.in_query else operation.input,
        operation.input if operation.in_query else operation.beside,
        long=operation.long,
        compresses=operation.compresses,
        api=api,
    )
