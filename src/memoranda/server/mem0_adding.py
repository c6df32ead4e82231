"""`add` of mem0's API: extract facts from messages, or store texts verbatim; and `event`: what became of an earlier
request, read from the rows that it stored."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from memoranda.errors import InvalidInput, NotFound
from memoranda.facts.facts import LearnedFacts
from memoranda.server import wire_mem0 as wire
from memoranda.server.mem0_filters import ENTITIES, moment_of
from memoranda.server.mem0_shapes import event, expiry_of, learned, own_metadata
from memoranda.server.route import Call, in_batch
from memoranda.sessions.values import Message, NewMessage
from memoranda.store.validation import metadata_text, tags_text
from memoranda.text.hashing import digest
from memoranda.types import MAX_ID_CHARS, PLACES, Id, Memory, NewMemory
from memoranda.validation import converted

BESIDE = (*ENTITIES, "session_id", "channel_id")
"""Fields of a request, and of what it becomes, that hold for all its messages."""


async def added(call: Call[wire.Mem0AddBody, None]) -> wire.Mem0Added:
    """The events of the messages of a request. Its id is that of the first of its messages or texts that is new.

    Raises:
        InvalidInput: a field is wrong, or names no entity.
        ModelError: no facts could be extracted from the messages; they are stored, and extraction is retried later.
    """
    entities = _entities(call.body)
    bounds = call.state.memoranda.core.ingest.bounds
    metadata_text(own_metadata(call.body.metadata), "metadata", bounds)
    tags_text(call.body.categories, "categories", bounds)
    return await (_learned(call, entities) if call.body.infer else _store_verbatim(call, entities))


def _entities(body: wire.Mem0AddBody) -> dict[str, str]:
    """The entities that own the memories, by the name of the field.

    Raises:
        InvalidInput: no entity is named, or two different names are given.
    """
    entities = {name: getattr(body, name) for name in ENTITIES if getattr(body, name) is not None}
    for name, value in (body.filters or {}).items():
        if name not in ENTITIES:
            known = ", ".join(ENTITIES)
            raise InvalidInput(f"filters.{name}", f"is not supported by add; use {known}, each with one name")
        converted(value, Id, f"filters.{name}")
        if entities.setdefault(name, value) != value:
            raise InvalidInput(f"filters.{name}", f"is another than `{name}`; send one of the two")
    for name, value in entities.items():
        if value == "*":
            raise InvalidInput(name, "`*` stands for any in filters; name one here")
    return entities


def _place(entities: dict[str, str]) -> dict[str, Any]:
    """The user and agent of a memory; a user that is not named is the key's."""
    user = entities.get("user_id", msgspec.UNSET)
    return {"user_id": user, "agent_id": entities.get("agent_id")}


# --- texts as they are -----------------------------------------------------------------------------


async def _store_verbatim(call: Call[wire.Mem0AddBody, None], entities: dict[str, str]) -> wire.Mem0Added:
    body = call.body
    metadata = {**body.metadata}
    if "app_id" in entities:
        metadata["app_id"] = entities["app_id"]
    new = [
        NewMemory(
            content=message.content,
            role=message.role,
            session_id=entities.get("run_id"),
            tags=body.categories,
            metadata=metadata if message.name is None else {**metadata, "speaker": message.name},
            occurred_at=None if body.timestamp is None else moment_of(body.timestamp, "timestamp"),
            invalid_at=None if body.expiration_date is None else expiry_of(body.expiration_date),
            **_place(entities),
        )
        for message in body.messages
    ]
    with call.state.telemetry.upserting(), in_batch("messages", len(new), BESIDE):
        outcomes = await call.workspace.memories.add_many(new)
    call.state.telemetry.added(outcomes)
    events = [event(outcome.memory, "ADD" if outcome.created else "NONE") for outcome in outcomes]
    first = next((outcome for outcome in outcomes if outcome.created), outcomes[0])
    return wire.Mem0Added(results=events, event_id=first.memory.id)


# --- facts -----------------------------------------------------------------------------------------


async def _learned(call: Call[wire.Mem0AddBody, None], entities: dict[str, str]) -> wire.Mem0Added:
    """Log messages in the session of the run, else in a channel of these entities; then extract facts from them."""
    body = call.body
    at = None if body.timestamp is None else moment_of(body.timestamp, "timestamp")
    metadata = {"app_id": entities["app_id"]} if "app_id" in entities else {}
    marks = _marks(body, entities)
    messages = [
        NewMessage(
            content=message.content,
            role=message.role,
            speaker=message.name,
            occurred_at=at,
            metadata=metadata,
        )
        for message in body.messages
    ]
    bounds = call.state.memoranda.core.ingest.bounds
    run = entities.get("run_id")
    channel = None if run is not None else _channel(entities)
    with call.state.telemetry.upserting(), in_batch("messages", len(messages), BESIDE):
        observed = await call.workspace.sessions.observe(
            messages, session_id=run, channel_id=channel, extraction=True, **_place(entities)
        )
    created = [outcome.message for outcome in observed if outcome.created]
    call.state.telemetry.wrote("created", len(created))
    call.state.telemetry.wrote("present", len(observed) - len(created))
    for session in dict.fromkeys(message.session_id for message in created):
        await call.workspace.facts.extract(session)
    facts, new = await facts_of(call, created)
    for fact in new:
        await _mark(call, fact, marks, bounds.tags)
    first = created[0] if created else observed[0].message
    return wire.Mem0Added(results=learned(facts, [fact.id for fact in new]), event_id=first.id)


async def facts_of(call: Call[Any, Any], messages: Sequence[Message]) -> tuple[LearnedFacts, list[Memory]]:
    """What was learned from messages that were stored together, and the facts of it that are new since."""
    facts = await call.workspace.facts.learned_from([message.id for message in messages])
    began = min((message.created_at for message in messages), default=None)
    return facts, [fact for fact in facts.facts if began is not None and fact.created_at >= began]


def _channel(entities: dict[str, str]) -> str:
    """The channel of the messages about these entities, which no other entities share."""
    name = "mem0:" + ",".join(f"{key.removesuffix('_id')}={entities[key]}" for key in sorted(entities))
    return name if len(name) <= MAX_ID_CHARS else f"mem0:{digest(name)}"


def _marks(body: wire.Mem0AddBody, entities: dict[str, str]) -> dict[str, Any]:
    """Fields that each new fact gets in addition to those of extraction: metadata, categories, an expiry."""
    placed = {name: entities[name] for name in ("app_id", "run_id") if name in entities}
    marks: dict[str, Any] = {}
    if body.metadata or placed:
        marks["metadata"] = {**body.metadata, **placed}
    if body.categories:
        marks["tags"] = body.categories
    if body.expiration_date is not None:
        marks["invalid_at"] = expiry_of(body.expiration_date)
    return marks


async def _mark(call: Call[Any, None], fact: Memory, marks: dict[str, Any], most_tags: int) -> None:
    """Changes a new fact; it keeps as many of its own tags as fit beside the categories of the request."""
    changes = dict(marks)
    if "metadata" in changes:
        changes["metadata"] = {**changes["metadata"], **fact.metadata}
    if "tags" in changes:
        sent = dict.fromkeys(changes["tags"])
        own = [tag for tag in fact.tags if tag not in sent]
        changes["tags"] = [*own[: most_tags - len(sent)], *sent]
    if changes:
        await call.workspace.memories.update(fact.id, **changes)


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
