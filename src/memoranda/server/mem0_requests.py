"""`event` of mem0's API: what became of an earlier request to add, read from the rows that it stored."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from memoranda.errors import NotFound
from memoranda.server import wire_mem0 as wire
from memoranda.server.mem0_adding import facts_of
from memoranda.server.mem0_views import event, learned
from memoranda.server.route import Call
from memoranda.types import PLACES, Memory

PAGE = 100


async def request_of(call: Call[Any, Any], id_: str) -> wire.Mem0Request:
    """The request whose first message, or verbatim text, has this id.

    Raises:
        NotFound: no such message or text for this subject.
    """
    try:
        return await _of_messages(call, id_)
    except NotFound:
        memory = await call.workspace.memories.get(id_)
        if memory.kind != "note":
            raise
        return await _of_notes(call, memory)


async def latest(call: Call[Any, Any], scopes: dict[str, Any]) -> list[wire.Mem0Request]:
    """The requests that stored the latest messages and texts, newest first. Messages too short for a search count with
    those that were stored beside them."""
    listed = await call.workspace.memories.list(limit=PAGE, kinds=["message", "note"], **scopes)
    firsts = {(row.created_at, row.kind, row.session_id, row.user_id): row.id for row in listed.data}
    requests = []
    for id_ in firsts.values():
        with suppress(NotFound):  # deleted since, or a memory of kind `message` that is in no log
            requests.append(await request_of(call, id_))
    return requests


async def _of_messages(call: Call[Any, Any], id_: str) -> wire.Mem0Request:
    reading = await call.workspace.facts.reading(id_)
    facts, new = await facts_of(call, reading.messages)
    status: Any = "SUCCEEDED" if not reading.pending else "FAILED" if reading.failure else "PENDING"
    began = reading.messages[0].created_at
    return wire.Mem0Request(
        id=reading.messages[0].id,
        status=status,
        results=learned(facts, [fact.id for fact in new]),
        created_at=began,
        updated_at=max([began, *(fact.created_at for fact in new)]),
        error=reading.failure,
    )


async def _of_notes(call: Call[Any, Any], first: Memory) -> wire.Mem0Request:
    """The request of a text: the texts behind it that were stored at the same moment are of the same request."""
    named = ((place, getattr(first, f"{place}_id")) for place in PLACES)
    scope = next((f"{place}:{id_}" for place, id_ in named if id_ is not None), "global")
    notes, after = [first], first.id
    while True:
        listed = await call.workspace.memories.list(
            limit=PAGE, after=after, order="asc", kinds=["note"], scopes=[scope]
        )
        same = [note for note in listed.data if note.created_at == first.created_at]
        notes += same
        if not listed.has_more or len(same) < len(listed.data):
            break
        after = same[-1].id
    return wire.Mem0Request(
        id=first.id,
        status="SUCCEEDED",
        results=[event(note, "ADD") for note in notes],
        created_at=first.created_at,
        updated_at=first.created_at,
    )
