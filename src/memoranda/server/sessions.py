"""`/v1/messages` and `/v1/sessions`: messages, and the sessions they belong to."""

from __future__ import annotations

from memoranda.server import wire_sessions as wire
from memoranda.server.memories import as_wire, in_batch
from memoranda.server.route import Call, Route
from memoranda.sessions.values import Observed

BESIDE = ("session_id", "channel_id", "agent_id")
"""Fields of a body that hold for all its messages."""


async def observe(call: Call[wire.ObserveBody, None]) -> wire.ObservedList:
    return await _observed(call, call.body, call.body.session_id)


async def observe_in(call: Call[wire.SaidBody, None]) -> wire.ObservedList:
    return await _observed(call, call.body, call.id)


async def _observed(
    call: Call[wire.SaidBody, None] | Call[wire.ObserveBody, None],
    body: wire.SaidBody,
    session_id: str | None,
) -> wire.ObservedList:
    with call.state.telemetry.upserting(), in_batch("messages", len(body.messages), BESIDE):
        outcomes = await call.sessions.observe(
            body.messages,
            session_id=session_id,
            channel_id=body.channel_id,
            user_id=body.user_id,
            agent_id=body.agent_id,
            extraction=body.extraction,
        )
    created = sum(outcome.created for outcome in outcomes)
    call.state.telemetry.wrote("created", created)
    call.state.telemetry.wrote("present", len(outcomes) - created)
    return wire.ObservedList(
        data=[_as_message(outcome) for outcome in outcomes],
        first_id=outcomes[0].message.id,
        last_id=outcomes[-1].message.id,
        created=created,
        present=len(outcomes) - created,
    )


def _as_message(outcome: Observed) -> wire.ObservedMessage:
    fields = {name: getattr(outcome.message, name) for name in outcome.message.__struct_fields__}
    return wire.ObservedMessage(**fields, created=outcome.created)


async def page(call: Call[None, wire.SessionsQuery]) -> wire.SessionList:
    asked = call.query
    listed = await call.sessions.list(
        channel_id=asked.channel_id,
        status=asked.status,
        participant=asked.participant,
        since=asked.since,
        until=asked.until,
        limit=asked.limit,
        after=asked.after,
        before=asked.before,
        order=asked.order,
    )
    return as_wire(listed, wire.SessionList)


async def get(call: Call[None, None]) -> wire.SessionObject:
    return as_wire(await call.sessions.get(call.id), wire.SessionObject)


async def delete(call: Call[None, None]) -> wire.DeletedSession:
    await call.sessions.delete(call.id)
    return wire.DeletedSession(id=call.id)


async def close(call: Call[None, None]) -> wire.SessionObject:
    return as_wire(await call.sessions.close(call.id), wire.SessionObject)


async def summarize(call: Call[wire.SummarizeBody, None]) -> wire.SessionObject:
    return as_wire(await call.sessions.summarize(call.id), wire.SessionObject)


async def save_summary(call: Call[wire.SummaryBody, None]) -> wire.SessionObject:
    with call.state.telemetry.upserting():
        return as_wire(await call.sessions.save_summary(call.id, call.body), wire.SessionObject)


async def fail_summary(call: Call[wire.FailureBody, None]) -> wire.SessionObject:
    return as_wire(await call.sessions.fail_summary(call.id, call.body.reason), wire.SessionObject)


async def messages(call: Call[None, wire.MessagesQuery]) -> wire.MessageList:
    asked = call.query
    listed = await call.sessions.messages(
        call.id, limit=asked.limit, after=asked.after, before=asked.before, order=asked.order
    )
    return as_wire(listed, wire.MessageList)


async def update_message(call: Call[wire.MessageChangeBody, None]) -> wire.MessageObject:
    ids = call.parameters
    with call.state.telemetry.upserting():
        message = await call.sessions.update_message(ids["session_id"], ids["message_id"], call.body.content)
    call.state.telemetry.wrote("updated", 1)
    return as_wire(message, wire.MessageObject)


async def delete_message(call: Call[None, None]) -> wire.DeletedMessage:
    ids = call.parameters
    await call.sessions.delete_message(ids["session_id"], ids["message_id"])
    return wire.DeletedMessage(id=ids["message_id"])


AT = "/v1/sessions"
ONE = f"{AT}/{{session_id}}"
SAID = f"{ONE}/messages"
MESSAGE = f"{SAID}/{{message_id}}"
SHOWN = wire.SessionObject
ROUTES = (
    Route(
        "POST", "/v1/messages", "Observe what was said", observe, "write", wire.ObservedList, wire.ObserveBody,
        long=True,
    ),
    Route("GET", AT, "A page of sessions", page, "read", wire.SessionList, query=wire.SessionsQuery),
    Route("GET", ONE, "One session", get, "read", SHOWN),
    Route("DELETE", ONE, "Delete a session with what was said in it", delete, "write", wire.DeletedSession, long=True),
    Route("POST", f"{ONE}/close", "Close a session", close, "write", SHOWN),
    Route(
        "POST", f"{ONE}/summarize", "Summarize a session now", summarize, "write", SHOWN, wire.SummarizeBody,
        long=True,
    ),
    Route(
        "POST", f"{ONE}/summary", "Keep a summary that was made elsewhere", save_summary, "write", SHOWN,
        wire.SummaryBody,
    ),
    Route(
        "POST", f"{ONE}/summary/failure", "Note that a summary could not be made elsewhere", fail_summary, "write",
        SHOWN, wire.FailureBody,
    ),
    Route(
        "POST", SAID, "Observe what was said in a session", observe_in, "write", wire.ObservedList, wire.SaidBody,
        long=True,
    ),
    Route(
        "GET", SAID, "A page of what was said in a session", messages, "read", wire.MessageList,
        query=wire.MessagesQuery,
    ),
    Route("POST", MESSAGE, "Change a message", update_message, "write", wire.MessageObject, wire.MessageChangeBody),
    Route("DELETE", MESSAGE, "Delete a message", delete_message, "write", wire.DeletedMessage),
)  # fmt: skip
