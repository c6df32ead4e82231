"""Routes made of operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoranda.server.route import Call, Route
from memoranda.store.operations import Operation, arguments


def routes(feature: str, operations: Sequence[Operation]) -> tuple[Route, ...]:
    """Return a route for each operation of a feature, which is an attribute of `Call`."""
    return tuple(_route(feature, operation) for operation in operations)


def _route(feature: str, operation: Operation) -> Route:
    async def answer(call: Call[Any, Any]) -> Any:
        read = call.query if operation.in_query else call.body
        return await operation.method(getattr(call, feature), **call.parameters, **arguments(read))

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
