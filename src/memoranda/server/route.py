"""Routes as data, written out or made of operations, the `Call` that their handlers receive, and the state that these
share."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request

from memoranda.app.memoranda import Memoranda
from memoranda.app.workspace import Workspace
from memoranda.errors import InvalidInput
from memoranda.server.errors import JSON, ErrorEnvelope, Failure, plain
from memoranda.server.telemetry import Telemetry
from memoranda.store.operations import PARAMETER, Need, Operation


class ServerState(msgspec.Struct, frozen=True):
    """The open library, the metrics, the OpenAPI document of this server (its first call takes 0.2 s), and the running
    answers."""

    memoranda: Memoranda
    telemetry: Telemetry
    document: Callable[[], dict[str, Any]]
    live: Live
    evaluating: asyncio.Semaphore = msgspec.field(default_factory=lambda: asyncio.Semaphore(1))
    """One evaluation runs at a time: it asks hundreds of questions."""


log = logging.getLogger("memoranda.http")
LAST_WORDS = 5.0
"""Seconds that a stopped stream has to send its last event."""


class Live:
    """The running answers, so that a server can shut down in order."""

    def __init__(self) -> None:
        self.ending = asyncio.Event()
        """Set once the server shuts down: open connections must not start new work, and those that wait end."""
        self.replaying = asyncio.Semaphore(1)
        """Locked by the stream that encodes many events."""
        self._stops: dict[object, Callable[[], object]] = {}
        self._none = asyncio.Event()
        self._none.set()

    @contextmanager
    def holding(self, stop: Callable[[], object]) -> Iterator[None]:
        """Registers a running answer while the context is open; `stop` makes it end soon."""
        key = object()
        self._stops[key] = stop
        self._none.clear()
        try:
            yield
        finally:
            del self._stops[key]
            if not self._stops:
                self._none.set()

    async def end(self, patience: float) -> None:
        """Waits for the running answers, and stops those that are not done after `patience` seconds."""
        self.ending.set()
        if await self._over(patience):
            return
        for stop in list(self._stops.values()):
            stop()
        if not await self._over(LAST_WORDS):
            log.error("%d answers did not end in time", len(self._stops))

    async def _over(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._none.wait()
        except TimeoutError:
            return False
        return True


B = TypeVar("B")
Q = TypeVar("Q")
JSONL = "application/x-ndjson"
TEXT = "text/plain"
BINARY = "application/octet-stream"
BEARER = ("Bearer",)
MULTIPART = "multipart/form-data"


T = TypeVar("T")


class Call(msgspec.Struct, Generic[B, Q], frozen=True):
    """One parsed request: the features for its caller (`workspace`), the body, the query string, and the `parameters`
    in the path. `request` is for handlers that read the body themselves."""

    state: ServerState
    workspace: Workspace
    body: B
    query: Q
    parameters: dict[str, str]
    request: Request

    @property
    def id(self) -> str:
        """The path's only parameter."""
        return next(iter(self.parameters.values()), "")


class Form(msgspec.Struct, frozen=True):
    """A multipart body: the name of the one field that is a file, and the type of all others."""

    file: str
    fields: Any


class Api(msgspec.Struct, frozen=True):
    """How the clients of a group of routes talk: `name` (empty: this server's own API) is the tag of its routes in the
    OpenAPI document, `schemes` may stand before the key in the Authorization header, `key_header` may have the key
    instead, `failure` makes the body of an error, which is an `envelope`."""

    name: str = ""
    schemes: tuple[str, ...] = BEARER
    key_header: str = ""
    envelope: type[ErrorEnvelope] = ErrorEnvelope
    failure: Failure = plain


OWN = Api()
Handler = Callable[[Call[Any, Any]], Awaitable[Any]]


class Route(msgspec.Struct, frozen=True):
    """One method on one path.

    `body` is the type of a JSON body, `bytes` for a raw one, None for none; `form` is a body as multipart, which the
    handler reads itself; a route with both takes either. `query` is the type of the query string.
    `answer` is the type of a JSON answer, None for another `media`. `needs` is the least a key must be allowed:
    `open` asks for no key, `service` for an admin key, or a service key that is bound to no user, `operator` for an
    admin of the default tenant. `long` marks work that grows with the size of the body or selection: it has no total
    time limit, its body only has to keep arriving. With `streams` it can also answer with events. With `compresses`, a
    large answer is compressed for clients that accept gzip. `api` is the API of another system that the route belongs
    to.
    """

    method: str
    path: str
    summary: str
    handler: Handler
    needs: Need
    answer: Any = None
    body: Any = None
    query: Any = None
    media: str = JSON
    long: bool = False
    form: Form | None = None
    streams: bool = False
    compresses: bool = False
    api: Api = OWN

    @property
    def name(self) -> str:
        """`POST /v1/memories/search`: what logs, metrics and tests call the route."""
        return f"{self.method} {self.path}"

    @property
    def writes(self) -> bool:
        """True if the handler may write, so that it must not be cancelled half way."""
        return self.method != "GET" and self.needs != "read"

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the path's parameters."""
        return tuple(PARAMETER.findall(self.path))


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


IN_LIST = re.compile(r"(\[\d+\])?\.?(\w*)(.*)", re.DOTALL)
"""A field that an error names: the element of the list, the field in it, and what follows."""


def as_wire(value: Any, type_: type[T]) -> T:
    """Convert a value of the library to its wire struct."""
    return msgspec.convert(value, type_, from_attributes=True)


def given(body: msgspec.Struct) -> dict[str, Any]:
    """The fields of a body that were sent."""
    fields = {name: getattr(body, name) for name in body.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


@contextmanager
def in_batch(
    name: str, size: int, beside: Sequence[str] = (), fields: Mapping[str, str] = MappingProxyType({})
) -> Iterator[None]:
    """Errors about one of a list name it as the body does: `memories[3].tags`. Fields `beside` it are named already;
    `fields` are the body's names of fields that the library calls otherwise, as it calls the list `memories`."""
    try:
        yield
    except InvalidInput as exc:
        if exc.field in (name, *beside):
            raise
        at = name if exc.field == "memories" or not size else f"{name}{_in_element(exc.field, fields)}"
        raise type(exc)(at, str(exc).removeprefix(f"{exc.field}: ")) from exc


def _in_element(field: str, fields: Mapping[str, str]) -> str:
    """The place of a field in a list; that of the first element if the error names none."""
    element, first, rest = IN_LIST.fullmatch(field).groups()  # type: ignore[union-attr]
    inside = f".{fields.get(first, first)}{rest}" if first else rest
    return f"{element or '[0]'}{inside}"
