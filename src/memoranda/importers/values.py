"""The items that an importer yields: conversations, memories, and skipped parts with the reason."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeAlias

import msgspec

from memoranda.types import Kind


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a conversation. `id` is unique within the conversation and the same at every reading."""

    id: str
    role: str
    content: str
    occurred_at: datetime | None = None
    speaker: str | None = None


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation with its messages in order. `place` says where it stands in the source."""

    id: str
    place: str
    messages: list[Message]
    title: str | None = None
    started_at: datetime | None = None
    metadata: dict[str, Any] = {}


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A memory. `id` is the same at every reading, and unique within the format, or within `source` if that is there.
    The ids of scopes are those of the source. `memory_id` is the id of the memory, if it was one of this program, and
    `exported_at` when it was exported then."""

    id: str
    place: str
    content: str
    source: str | None = None
    kind: Kind = "note"
    role: str | None = None
    importance: int | None = None
    confidence: float | None = None
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    invalid_at: datetime | None = None
    tags: list[str] = []
    metadata: dict[str, Any] = {}
    user_id: str | None = None
    agent_id: str | None = None
    channel_id: str | None = None
    memory_id: str | None = None
    exported_at: datetime | None = None
    source_refs: list[str] | None = None
    session_id: str | None = None


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not imported. `failed` says that it is damaged, not that it is of no interest."""

    kind: str
    reason: str
    place: str
    failed: bool = False


Item: TypeAlias = Conversation | Entry | Skipped
