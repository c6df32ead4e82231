"""`/healthz`, `/readyz` and `/metrics`: for monitoring."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from memoranda import __version__
from memoranda.errors import MemorandaError
from memoranda.server import wire
from memoranda.server.errors import JSON, Problem
from memoranda.server.route import TEXT, Call, Route
from memoranda.store.store import Store

METRICS = "text/plain; version=0.0.4; charset=utf-8"


class Readiness(msgspec.Struct, kw_only=True, tag_field="object", tag="readiness"):
    """The readiness of the server; `checks` has `ok`, or what is wrong, for rows, index and words."""

    ready: bool
    checks: dict[str, str]
    error: Problem | msgspec.UnsetType = msgspec.UNSET


async def alive(call: Call[None, None]) -> wire.Health:
    return wire.Health(version=__version__)


async def ready(call: Call[None, None]) -> Response:
    core = call.state.memoranda.core
    checks = await core.threads.run(check, core.store)
    wrong = [f"{side} is {state}" for side, state in checks.items() if state != "ok"]
    answer = Readiness(ready=not wrong, checks=checks)
    if wrong:
        answer.error = Problem(message="; ".join(wrong), type="server_error", param=None, code="not_ready")
    return Response(msgspec.json.encode(answer), 503 if wrong else 200, media_type=JSON)


def check(store: Store) -> dict[str, str]:
    """The state of the database, the vector index and the keyword index: `ok`, `behind`, `failing` (it could not make
    the last changes durable) or `unavailable`."""
    states = {}
    for side, backend in (("rows", store.db), ("index", store.index), ("words", store.words)):
        try:
            failing = backend.health().get("failure") is not None
            states[side] = "behind" if side in store.behind else "failing" if failing else "ok"
        except MemorandaError:
            states[side] = "unavailable"
    return states


async def metrics(call: Call[None, None]) -> Response:
    text = await call.state.memoranda.core.threads.run(call.state.telemetry.exposition)
    return Response(text, headers={"content-type": METRICS})


ROUTES = (
    Route("GET", "/healthz", "The process lives", alive, "open", wire.Health),
    Route("GET", "/readyz", "Rows and both indexes answer", ready, "open", Readiness),
    Route("GET", "/metrics", "Prometheus metrics", metrics, "operator", media=TEXT),
)
