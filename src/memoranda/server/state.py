"""What every handler shares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from memoranda.app.memoranda import Memoranda
from memoranda.server.sse import Live
from memoranda.server.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class House:
    """The open library, what is counted, the OpenAPI document of this server, which takes 0.2 s to make at its first
    call, and the answers under way."""

    memoranda: Memoranda
    telemetry: Telemetry
    document: Callable[[], dict[str, Any]]
    live: Live
