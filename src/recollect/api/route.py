"""A route as data, and what its handler is called with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from recollect.api.errors import JSON
from recollect.api.house import House
from recollect.memories import Memories

B = TypeVar("B")
Q = TypeVar("Q")
Need = Literal["open", "read", "write", "admin", "operator"]
JSONL = "application/x-ndjson"
TEXT = "text/plain"


@dataclass(frozen=True, slots=True)
class Call(Generic[B, Q]):
    """One request, understood: who asks (`memories` acts for them), the body, the query string, and the id in
    the path where the route has one."""

    house: House
    memories: Memories
    body: B
    query: Q
    id: str


Handler = Callable[[Call[Any, Any]], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """One method on one path.

    `body` is the type of a JSON body, `bytes` for a raw one, None for none; `query` the type of the query string.
    `answer` is the type of a JSON answer, None for another `media`. `needs` is the least a key must be allowed:
    `open` asks for no key, `operator` for an admin of the house's own tenant. `long` marks work that grows with
    what was sent or selected: it has no total time limit, its body only has to keep arriving.
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

    @property
    def name(self) -> str:
        """`POST /v1/memories/search`: what logs, metrics and tests call the route."""
        return f"{self.method} {self.path}"

    @property
    def writes(self) -> bool:
        """Whether the handler may change something, so that it must not be given up half way."""
        return self.method != "GET" and self.needs != "read"

    @property
    def parameter(self) -> str | None:
        """The name of the path's parameter; a path has one at most."""
        return self.path.partition("{")[2].partition("}")[0] or None
