"""Calls of operations as requests to a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from memoranda.client.wire import Wire, query_of
from memoranda.store.operations import Operation


class OverHttp:
    """Carries out calls of the methods that are operations, as requests to a server."""

    def __init__(self, wire: Wire, operations: Sequence[Operation]) -> None:
        self._wire = wire
        self._operations = {operation.method: operation for operation in operations}

    def call(self, method: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Return the answer, as the type of the method's result.

        Raises:
            NotImplementedError: no server offers the method.
        """
        operation = self._operations.get(method)
        if operation is None:
            says = f"{method.__qualname__} is not offered by a server; call it where the data folder is open"
            raise NotImplementedError(says)
        path, body, asked = operation.sent(args, named)
        query = None if asked is None else query_of(asked)
        answer = self._wire.call(operation.verb, path, body=body, query=query)
        return msgspec.json.decode(answer, type=operation.answer)
