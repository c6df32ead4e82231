"""What every handler shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recollect.api.sse import Live
from recollect.recollect import Recollect
from recollect.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class House:
    """The open library, what is counted, the OpenAPI document of this server, and the answers under way."""

    recollect: Recollect
    telemetry: Telemetry
    document: dict[str, Any]
    live: Live
