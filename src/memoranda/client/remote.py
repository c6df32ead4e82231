"""Features at a server: the classes of the library, whose methods are requests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import msgspec

from memoranda.app.blocking.calls import methods_of
from memoranda.client.wire import Wire, query_of
from memoranda.store.operations import Operation


class Remote:
    """A feature at the server of the connections; `of` are the parameters of paths that make it, such as the id of a
    store. A class that derives from this and from a feature has the methods that are no operations, and `offered` adds
    the others."""

    def __init__(self, wire: Wire, *of: str) -> None:
        self._wire = wire
        self._of = of


def offered(feature: type, operations: Sequence[Operation] = (), written: type[Remote] = Remote) -> Any:
    """Return the class of a feature at a server: its operations, and the methods of `written`. Its other methods raise
    NotImplementedError. Of two operations of a method that is called the first whose path has its arguments."""
    by_name: dict[str, list[Operation]] = {}
    for operation in operations:
        by_name.setdefault(operation.name, []).append(operation)
    members = {
        name: _request(method, by_name[name]) if name in by_name else _missing(method)
        for name, method in methods_of(feature).items()
        if name not in vars(written)
    }
    bases = (written,) if issubclass(written, feature) else (written, feature)
    return type(f"Remote{feature.__name__}", bases, {"__doc__": feature.__doc__, **members})


def _request(method: Callable[..., Any], operations: Sequence[Operation]) -> Callable[..., Any]:
    @wraps(method)
    async def call(self: Remote, /, *args: Any, **named: Any) -> Any:
        operation = next(one for one in operations if one is operations[-1] or one.fits(args, named))
        sent = operation.sent(args, named, self._of)
        query = None if sent.query is None else query_of(sent.query)
        body = await self._wire.call(operation.verb, sent.path, body=sent.body, query=query)
        answer = msgspec.json.decode(body, type=operation.answer)
        return answer if operation.shows is None else answer.result(sent.given)

    return call


def _missing(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(self: Remote, /, *args: Any, **named: Any) -> Any:
        says = f"{method.__qualname__} is not offered by a server; call it where the data folder is open"
        raise NotImplementedError(says)

    return call
