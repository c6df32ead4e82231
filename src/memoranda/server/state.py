"""The state that all handlers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memoranda.app.memoranda import Memoranda
from memoranda.server.sse import Live
from memoranda.server.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class ServerState:
    """The open library, the metrics, the OpenAPI document of this server (its first call takes 0.2 s), and the running
    answers."""

    memoranda: Memoranda
    telemetry: Telemetry
    document: Callable[[], dict[str, Any]]
    live: Live
