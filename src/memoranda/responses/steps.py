"""The decision what follows a model's turn. Pure; `loop` carries it out."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from memoranda.providers.chat.base import EndReason


class ToolCall(msgspec.Struct, frozen=True):
    """One call that the model made: `arguments` is its JSON as it came."""

    id: str
    name: str
    arguments: str


class ModelTurn(msgspec.Struct, frozen=True):
    """The result of one call of the model."""

    reason: EndReason
    text: str = ""
    calls: Sequence[ToolCall] = ()


class CallTools(msgspec.Struct, frozen=True):
    """Run these here, then ask the model again; with `hand_back`, end instead, as the client has calls to answer."""

    calls: Sequence[ToolCall]
    ask: Sequence[ToolCall] = ()
    hand_back: bool = False


class AskAgain(msgspec.Struct, frozen=True):
    """Ask the model for its answer, and offer it no more tools that run here."""


class Finish(msgspec.Struct, frozen=True):
    """The response is complete, or incomplete for `reason`."""

    reason: str | None = None


Step = CallTools | AskAgain | Finish
INCOMPLETE: dict[str, str] = {"length": "max_output_tokens", "content_filter": "content_filter"}


class ToolNames(msgspec.Struct, frozen=True):
    """The names of tools that run here and of those of the client, and the ids of calls that must be approved first."""

    here: Collection[str] = msgspec.field(default_factory=frozenset)
    asking: Collection[str] = msgspec.field(default_factory=frozenset)
    client: Collection[str] = msgspec.field(default_factory=frozenset)


def next_step(turn: ModelTurn, known: ToolNames, left: int) -> Step:
    """What follows a turn, when `left` more calls may run here.

    Calls of the client's functions end the response, after those that run here have run. An unknown name is answered
    here, with an error that the model sees. Calls beyond the limit are not run: if no other call is left, the model
    is asked to answer without more calls.
    """
    if turn.reason in INCOMPLETE:
        return Finish(INCOMPLETE[turn.reason])
    if not turn.calls:
        return Finish()
    client = [call for call in turn.calls if call.name in known.client]
    asking = [call for call in turn.calls if call.id in known.asking]
    here = [call for call in turn.calls if call.name not in known.client and call.id not in known.asking]
    runs = here[: max(0, left)]
    if not runs and not asking and not client:
        return AskAgain()
    return CallTools(runs, asking, hand_back=bool(client or asking))


def parsed(arguments: str) -> dict[str, Any] | str:
    """The arguments of a call as an object, or an error message for the model."""
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError) as exc:
        return f"The arguments are no valid JSON ({exc}). Call again with one JSON object."
    if not isinstance(value, dict):
        return f"The arguments are a JSON {type(value).__name__}. Call again with one JSON object."
    return value
