"""The state that all handlers share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec

from memoranda.app.memoranda import Memoranda
from memoranda.server.sse import Live
from memoranda.server.telemetry import Telemetry


class ServerState(msgspec.Struct, frozen=True):
    """The open library, the metrics, the OpenAPI document of this server (its first call takes 0.2 s), and the running
    answers."""

    memoranda: Memoranda
    telemetry: Telemetry
    document: Callable[[], dict[str, Any]]
    live: Live
    evaluating: asyncio.Semaphore = msgspec.field(default_factory=lambda: asyncio.Semaphore(1))
    """One evaluation runs at a time: it asks hundreds of questions."""
