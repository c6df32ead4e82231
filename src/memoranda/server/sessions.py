"""`/v1/messages` and `/v1/sessions`: what is observed of their operations."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from memoranda.server import route
from memoranda.server.route import Call, in_batch
from memoranda.sessions.operations import OPERATIONS, SaidBody
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import Message, Observed, Session

BESIDE = ("session_id", "channel_id", "agent_id")
"""Fields of a body that hold for all its messages."""


async def _observe(call: Call[SaidBody, None], work: Awaitable[list[Observed]]) -> list[Observed]:
    telemetry = call.state.telemetry
    with telemetry.upserting(), in_batch("messages", len(call.body.messages), BESIDE):
        observed = await work
    created = sum(one.created for one in observed)
    telemetry.wrote("created", created)
    telemetry.wrote("present", len(observed) - created)
    return observed


async def _save_summary(call: Call[Any, None], work: Awaitable[Session]) -> Session:
    with call.state.telemetry.upserting():
        return await work


async def _update_message(call: Call[Any, None], work: Awaitable[Message]) -> Message:
    with call.state.telemetry.upserting():
        message = await work
    call.state.telemetry.wrote("updated", 1)
    return message


OBSERVED: dict[Callable[..., Any], route.Observed] = {
    Sessions.observe: _observe,
    Sessions.save_summary: _save_summary,
    Sessions.update_message: _update_message,
}
ROUTES = route.routes("sessions", OPERATIONS, OBSERVED)
