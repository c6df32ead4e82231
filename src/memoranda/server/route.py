"""Routes as data, and the `Call` that their handlers receive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import msgspec
from starlette.requests import Request

from memoranda.app.workspace import Workspace
from memoranda.server.errors import JSON, ErrorEnvelope, Failure, plain
from memoranda.server.state import ServerState
from memoranda.store.operations import PARAMETER, Need

B = TypeVar("B")
Q = TypeVar("Q")
JSONL = "application/x-ndjson"
TEXT = "text/plain"
BINARY = "application/octet-stream"
BEARER = ("Bearer",)
MULTIPART = "multipart/form-data"


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
