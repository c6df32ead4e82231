"""`/v1/responses`: answers of a model with the knowledge of this server, streamed or not."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from memoranda.errors import UnknownModel
from memoranda.responses.runs import ENDING, Run
from memoranda.responses.values import Item, Response
from memoranda.server import wire_responses as wire
from memoranda.server.route import Call, Route, as_wire
from memoranda.server.sse import EventStream, finished, keepalive, waited
from memoranda.store.paging import Listed


async def create(call: Call[wire.ResponseBody, None]) -> Response | EventStream:
    body, live = call.body, call.state.live
    run = await call.workspace.responses.start(body)
    if body.background:
        return await _followed(call, run.response.id, -1) if body.stream else run.shown()
    if body.stream:
        if run.response.model != call.state.memoranda.engine.model.name:
            await waited(run, run.begun(), call.request.receive, live)
            if isinstance(run.failure, UnknownModel):
                _said(run)
        ended = partial(run.abandon, ENDING)
        return EventStream(run, live, keepalive(call), left=run.abandon, stop=ended)
    run.mute()
    await finished(run, call.request.receive, live)
    return _said(run)


def _said(run: Run) -> Response:
    """The response at its end.

    Raises:
        MemorandaError: it failed before any output.
    """
    if run.failure is not None and not run.response.output:
        raise run.failure
    return run.shown()


async def get(call: Call[None, wire.ResponseQuery]) -> Response | EventStream:
    query = call.query
    if not query.stream:
        return await call.workspace.responses.get(call.id, query.include or ())
    after = -1 if query.starting_after is None else query.starting_after
    return await _followed(call, call.id, after, query.include or ())


async def _followed(call: Call[Any, Any], id_: str, after: int, include: Sequence[str] = ()) -> EventStream:
    """The events of a response; a disconnecting follower does not stop a background response."""
    return EventStream(
        await call.workspace.responses.events(id_, after, include), call.state.live, keepalive(call)
    )


async def page(call: Call[None, wire.ResponsesQuery]) -> wire.ResponsePage:
    query = call.query
    listed = await call.workspace.responses.list(
        limit=query.limit, after=query.after, before=query.before, order=query.order, status=query.status
    )
    return wire.ResponsePage(
        data=[as_wire(entry, wire.ResponseEntryObject) for entry in listed.data],
        first_id=listed.first_id,
        last_id=listed.last_id,
        has_more=listed.has_more,
    )


async def delete(call: Call[None, None]) -> wire.DeletedResponse:
    await call.workspace.responses.delete(call.id)
    return wire.DeletedResponse(id=call.id)


async def cancel(call: Call[None, None]) -> Response:
    return await call.workspace.responses.cancel(call.id)


async def input_items(call: Call[None, wire.InputItemsQuery]) -> wire.ItemPage:
    query = call.query
    return item_page(
        await call.workspace.responses.input_items(
            call.id, limit=query.limit, after=query.after, order=query.order, include=query.include or ()
        )
    )


def item_page(listed: Listed[Item]) -> wire.ItemPage:
    """A page of items as it goes over the wire."""
    return wire.ItemPage(
        data=listed.data,
        first_id=listed.first_id or "",
        last_id=listed.last_id or "",
        has_more=listed.has_more,
    )


async def input_tokens(call: Call[wire.InputTokensBody, None]) -> wire.InputTokens:
    return wire.InputTokens(input_tokens=await call.workspace.responses.input_tokens(call.body))


async def compact(call: Call[wire.CompactBody, None]) -> wire.CompactionObject:
    compaction = await call.workspace.responses.compact(call.body)
    return wire.CompactionObject(
        id=compaction.id, created_at=compaction.created_at, output=compaction.output, usage=compaction.usage
    )


AT = "/v1/responses"
ONE = f"{AT}/{{response_id}}"
ROUTES = (
    Route(
        "POST", AT, "Make a response", create, "write", Response, wire.ResponseBody, long=True, streams=True
    ),
    Route("GET", AT, "Stored responses", page, "read", wire.ResponsePage, query=wire.ResponsesQuery),
    Route(
        "POST", f"{AT}/input_tokens", "Count the tokens of an input", input_tokens, "read", wire.InputTokens,
        wire.InputTokensBody,
    ),
    Route(
        "POST", f"{AT}/compact", "Make a long conversation short", compact, "write", wire.CompactionObject,
        wire.CompactBody, long=True,
    ),
    Route("GET", ONE, "One response", get, "read", Response, query=wire.ResponseQuery, streams=True),
    Route("DELETE", ONE, "Delete a response", delete, "write", wire.DeletedResponse),
    Route("POST", f"{ONE}/cancel", "Stop a background response", cancel, "write", Response),
    Route(
        "GET", f"{ONE}/input_items", "The input items of a response", input_items, "read", wire.ItemPage,
        query=wire.InputItemsQuery,
    ),
)  # fmt: skip
