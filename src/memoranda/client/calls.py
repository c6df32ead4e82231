"""Calls of operations as requests to a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from memoranda.client.wire import Wire, query_of
from memoranda.store.operations import Operation

Written = Mapping[Callable[..., Any], Callable[..., Any]]
"""Functions for methods: they take the connections, and then what the method takes."""
NONE: Written = MappingProxyType({})


class OverHttp:
    """Carries out calls of the methods that are operations, as requests to a server; `written` are functions for other
    methods."""

    def __init__(self, wire: Wire, operations: Sequence[Operation], written: Written = NONE) -> None:
        self._wire = wire
        self._operations = operations
        self._written = written

    def call(self, method: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return the answer, as the type of the method's result.

        Raises:
            NotImplementedError: no server offers the method.
        """
        if (written := self._written.get(method)) is not None:
            return written(self._wire, *args, **named)
        offered = [operation for operation in self._operations if operation.method == method]
        if not offered:
            says = f"{method.__qualname__} is not offered by a server; call it where the data folder is open"
            raise NotImplementedError(says)
        operation = offered[0]
        sent = operation.sent(args, named)
        query = None if sent.query is None else query_of(sent.query)
        body = self._wire.call(operation.verb, sent.path, body=sent.body, query=query)
        answer = msgspec.json.decode(body, type=operation.answer)
        return answer if operation.shows is None else answer.result(sent.given)
