"""Memories, events and versions in the shapes of mem0, and the metadata and dates of its requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, time
from typing import Any

from msgspec import UNSET

from memoranda.errors import InvalidInput
from memoranda.facts.facts import LearnedFacts
from memoranda.facts.history import FactVersion
from memoranda.server.wire_mem0 import Mem0Event, Mem0EventData, Mem0Memory, Mem0Version
from memoranda.store.rows import RESERVED
from memoranda.types import (
    Kind,
    Memory,
)

KINDS: list[Kind] = ["fact", "note"]
"""The kinds that mem0's clients see: learned facts, and texts that were stored verbatim."""


SAID: list[Kind] = [*KINDS, "message"]
"""The kinds that are deleted with an entity: its memories, and the messages they were learned from."""


PLACED = ("app_id", "run_id")
"""Entities that are stored in metadata."""


KEPT = frozenset({*PLACED, "extracted_by", "session_id", *RESERVED})
"""Keys of metadata that the server reserves."""


def own_metadata(given: dict[str, Any]) -> dict[str, Any]:
    """The metadata of a request.

    Raises:
        InvalidInput: it has a key that the server reserves.
    """
    for key in given:
        if key in KEPT:
            raise InvalidInput(f"metadata.{key}", "is a name that the server keeps for itself; use another")
    return given


def expiry_of(day: str) -> datetime:
    """The moment from which on a memory with this expiration date does not hold.

    Raises:
        InvalidInput: it is no date.
    """
    try:
        return datetime.combine(datetime.strptime(day, "%Y-%m-%d"), time(), UTC)
    except ValueError as exc:
        raise InvalidInput("expiration_date", "must be a date such as 2027-01-31") from exc


def shown(memory: Memory, score: float | None = None, fields: Sequence[str] | None = None) -> Mem0Memory:
    """A memory; with `fields`, only these of it."""
    view = Mem0Memory(
        id=memory.id,
        memory=memory.content,
        hash=memory.content_hash,
        user_id=memory.user_id,
        agent_id=memory.agent_id,
        app_id=memory.metadata.get("app_id"),
        run_id=memory.session_id or memory.metadata.get("run_id"),
        metadata=_visible(memory),
        categories=memory.tags,
        created_at=memory.occurred_at,
        updated_at=memory.updated_at,
        expiration_date=None if memory.invalid_at is None else memory.invalid_at.date().isoformat(),
        score=UNSET if score is None else score,
    )
    for name in view.__struct_fields__ if fields is not None else ():
        if fields is not None and name not in fields:
            setattr(view, name, UNSET)
    return view


def _visible(memory: Memory) -> dict[str, Any]:
    hidden = KEPT if memory.kind == "fact" else PLACED
    return {key: value for key, value in memory.metadata.items() if key not in hidden}


def kept_metadata(memory: Memory) -> dict[str, Any]:
    """The reserved part of a memory's metadata."""
    seen = _visible(memory)
    return {key: value for key, value in memory.metadata.items() if key not in seen}


def event(memory: Memory, what: Any) -> Mem0Event:
    """The event of a memory."""
    data = Mem0EventData(memory=memory.content)
    return Mem0Event(id=memory.id, event=what, memory=memory.content, data=data)


def learned(facts: LearnedFacts, new: Iterable[str]) -> list[Mem0Event]:
    """The events of facts that rest on some messages; those with the ids in `new` were not there before."""
    added = set(new)
    events = [event(fact, "ADD" if fact.id in added else "NONE") for fact in facts.facts]
    gone = [fact for fact in facts.superseded if fact.superseded_by in added]
    return [*events, *(event(fact, "DELETE") for fact in gone)]


def steps(versions: Sequence[FactVersion]) -> list[Mem0Version]:
    """The versions of a fact as the steps of its history, oldest first."""
    before: str | None = None
    history: list[Mem0Version] = []
    for version in versions:
        memory = version.memory
        history.append(
            Mem0Version(
                id=f"{memory.id}:{len(history)}",
                memory_id=memory.id,
                event="ADD" if before is None else "UPDATE",
                old_memory=before,
                new_memory=memory.content,
                user_id=memory.user_id,
                metadata=_visible(memory),
                created_at=memory.occurred_at,
                updated_at=memory.updated_at,
            )
        )
        before = memory.content
    return history
