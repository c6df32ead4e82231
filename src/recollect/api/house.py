"""What every handler shares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from recollect.recollect import Recollect
from recollect.telemetry import Telemetry


@dataclass(frozen=True, slots=True)
class House:
    """The open library, what is counted, and the OpenAPI document of this server."""

    recollect: Recollect
    telemetry: Telemetry
    document: dict[str, Any]
