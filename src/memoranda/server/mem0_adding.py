"""`add` of mem0's API: learn facts from messages, or keep texts as they are."""

from __future__ import annotations

from typing import Any

import msgspec

from memoranda.errors import InvalidInput
from memoranda.server import wire_mem0 as wire
from memoranda.server.mem0_filters import ENTITIES, moment_of
from memoranda.server.mem0_views import event, expiry_of, learned, own_metadata
from memoranda.server.memories import in_batch
from memoranda.server.route import Call
from memoranda.sessions.values import NewMessage
from memoranda.store.validation import metadata_text, tags_text
from memoranda.text.hashing import digest
from memoranda.types import MAX_ID_CHARS, Id, Memory, NewMemory
from memoranda.validation import converted

BESIDE = (*ENTITIES, "session_id", "channel_id")
"""Fields of a request, and of what it becomes, that hold for all its messages."""


async def added(call: Call[wire.Mem0AddBody, None]) -> list[wire.Mem0Event]:
    """What became of the messages of a request.

    Raises:
        InvalidInput: a field is wrong, or names nobody.
        ModelError: no facts could be taken out of the messages; they are kept, and it is tried again later.
    """
    entities = _entities(call.body)
    bounds = call.house.memoranda.core.ingest.bounds
    metadata_text(own_metadata(call.body.metadata), "metadata", bounds)
    tags_text(call.body.categories, "categories", bounds)
    return await (_learned(call, entities) if call.body.infer else _kept(call, entities))


def _entities(body: wire.Mem0AddBody) -> dict[str, str]:
    """Whose the memories are, by the name of the field.

    Raises:
        InvalidInput: nobody is named, or two different names are.
    """
    found = {name: getattr(body, name) for name in ENTITIES if getattr(body, name) is not None}
    for name, value in (body.filters or {}).items():
        if name not in ENTITIES:
            known = ", ".join(ENTITIES)
            raise InvalidInput(f"filters.{name}", f"is not supported by add; use {known}, each with one name")
        converted(value, Id, f"filters.{name}")
        if found.setdefault(name, value) != value:
            raise InvalidInput(f"filters.{name}", f"is another than `{name}`; send one of the two")
    for name, value in found.items():
        if value == "*":
            raise InvalidInput(name, "`*` stands for any in filters; name one here")
    return found


def _place(entities: dict[str, str]) -> dict[str, Any]:
    """The user and agent of a memory; a user that is not named is the key's."""
    user = entities.get("user_id", msgspec.UNSET)
    return {"user_id": user, "agent_id": entities.get("agent_id")}


# --- texts as they are -----------------------------------------------------------------------------


async def _kept(call: Call[wire.Mem0AddBody, None], entities: dict[str, str]) -> list[wire.Mem0Event]:
    body = call.body
    metadata = {**body.metadata}
    if "app_id" in entities:
        metadata["app_id"] = entities["app_id"]
    new = [
        NewMemory(
            content=one.content,
            role=one.role,
            session_id=entities.get("run_id"),
            tags=body.categories,
            metadata=metadata if one.name is None else {**metadata, "speaker": one.name},
            occurred_at=None if body.timestamp is None else moment_of(body.timestamp, "timestamp"),
            invalid_at=None if body.expiration_date is None else expiry_of(body.expiration_date),
            **_place(entities),
        )
        for one in body.messages
    ]
    with call.house.telemetry.upserting(), in_batch("messages", len(new), BESIDE):
        outcomes = await call.memories.add_many(new)
    call.house.telemetry.added(outcomes)
    return [event(one.memory, "ADD" if one.created else "NONE") for one in outcomes]


# --- facts -----------------------------------------------------------------------------------------


async def _learned(call: Call[wire.Mem0AddBody, None], entities: dict[str, str]) -> list[wire.Mem0Event]:
    """Messages go into the session that the run is, else into a channel of the entities' own; then facts are taken
    out of them."""
    body = call.body
    at = None if body.timestamp is None else moment_of(body.timestamp, "timestamp")
    metadata = {"app_id": entities["app_id"]} if "app_id" in entities else {}
    marks = _marks(body, entities)
    messages = [
        NewMessage(content=one.content, role=one.role, speaker=one.name, occurred_at=at, metadata=metadata)
        for one in body.messages
    ]
    run = entities.get("run_id")
    channel = None if run is not None else _channel(entities)
    with call.house.telemetry.upserting(), in_batch("messages", len(messages), BESIDE):
        kept = await call.sessions.observe(
            messages, session_id=run, channel_id=channel, extraction=True, **_place(entities)
        )
    created = [one.message for one in kept if one.created]
    call.house.telemetry.wrote("created", len(created))
    call.house.telemetry.wrote("present", len(kept) - len(created))
    for session in dict.fromkeys(one.session_id for one in created):
        await call.facts.extract(session)
    found = await call.facts.learned_from([one.id for one in created])
    began = min((one.created_at for one in created), default=None)
    new = [one for one in found.facts if began is not None and one.created_at >= began]
    for fact in new:
        await _mark(call, fact, marks)
    return learned(found, [one.id for one in new])


def _channel(entities: dict[str, str]) -> str:
    """The channel in which what concerns these entities is said: theirs alone, so that no other's words are beside."""
    name = "mem0:" + ",".join(f"{one.removesuffix('_id')}={entities[one]}" for one in sorted(entities))
    return name if len(name) <= MAX_ID_CHARS else f"mem0:{digest(name)}"


def _marks(body: wire.Mem0AddBody, entities: dict[str, str]) -> dict[str, Any]:
    """What each new fact gets beside what extraction gives it: metadata, categories, an end."""
    placed = {name: entities[name] for name in ("app_id", "run_id") if name in entities}
    marks: dict[str, Any] = {}
    if body.metadata or placed:
        marks["metadata"] = {**body.metadata, **placed}
    if body.categories:
        marks["tags"] = body.categories
    if body.expiration_date is not None:
        marks["invalid_at"] = expiry_of(body.expiration_date)
    return marks


async def _mark(call: Call[Any, None], fact: Memory, marks: dict[str, Any]) -> None:
    changes = dict(marks)
    if "metadata" in changes:
        changes["metadata"] = {**changes["metadata"], **fact.metadata}
    if "tags" in changes:
        changes["tags"] = list(dict.fromkeys([*fact.tags, *changes["tags"]]))
    if changes:
        await call.memories.update(fact.id, **changes)
