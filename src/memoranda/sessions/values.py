"""Messages and sessions as callers see them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from msgspec import Meta

from memoranda.config.agent_sections import Facts
from memoranda.types import MACHINES, UNNAMED, Content, Id, Metadata, Moment, some_text

EXTRACT_JOB = "facts.extract"
"""The job that extracts facts from a session; its payload is `{"session_id": ...}`."""
Status = Literal["open", "closed", "summarized", "failed"]
STATUSES: tuple[str, ...] = ("open", "closed", "summarized", "failed")
Mode = Literal["off", "lazy", "eager"]
MODES: tuple[Mode, ...] = ("off", "lazy", "eager")
"""From the weakest to the strongest."""
NEVER, ASKED, SWITCHED = 0, 1, 2
"""Values of `messages.extract`: no facts are extracted; the request or agent asked for them; a switch or the
configuration enables them, while it does."""


def is_person(role: str) -> bool:
    """Return True if a message of this role was written by a person, not by an assistant or a tool."""
    return role.lower() not in MACHINES


def author_of(speaker: str | None, role: str) -> str | None:
    """Return the name of the person who wrote a message: the speaker, or a role that is a name; None without either."""
    return speaker or (role if is_person(role) and role.lower() not in UNNAMED else None)


def name_of(speaker: str | None, user_id: str | None, role: str) -> str:
    """Return the name of the author of a message: its speaker, or the user if a person wrote it, or its role.

    The `user_id` of an assistant's message names the user of the conversation, not the speaker.
    """
    return speaker or (user_id if is_person(role) else None) or role


def label_of(speaker: str | None, user_id: str | None, role: str) -> str:
    """Return the name as a prompt shows it: of a named assistant or tool with its role, `Robo (assistant)`."""
    name = name_of(speaker, user_id, role)
    return name if is_person(role) or name == role else f"{name} ({role})"


class NewMessage(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Something that was said. `role` is `user`, `assistant`, `tool`, ...; `speaker` is the name of who said it, where
    there is one. With `id`, or with `occurred_at` (when it was said; left out: now), sending it again changes
    nothing. `user_id` is whose it is: left out the caller's, None without a user."""

    content: Content
    role: Id = "user"
    speaker: Id | None = None
    id: Id | None = None
    occurred_at: Moment | None = None
    user_id: Id | None | msgspec.UnsetType = msgspec.UNSET
    metadata: Metadata = {}


class Message(msgspec.Struct, kw_only=True, tag_field="object", tag="message"):
    """A message as the log has it. `indexed` says whether a search finds it, as the memory of the same id; `tokens` are
    those of its content in o200k."""

    id: str
    session_id: str
    channel_id: str | None
    user_id: str | None
    agent_id: str | None
    role: str
    speaker: str | None
    content: str
    tokens: int
    metadata: dict[str, Any]
    response_id: str | None
    indexed: bool
    occurred_at: datetime
    created_at: datetime


class Observed(msgspec.Struct, kw_only=True):
    """What became of a message: as it is kept, and whether it is new."""

    message: Message
    created: bool


class Session(msgspec.Struct, kw_only=True, tag_field="object", tag="session"):
    """Consecutive messages of a channel, or (`named`) those that were given this session's id.

    `participants` are the names of who spoke. `summary` and what follows it are what was made of the messages at
    `summary_created_at`; `failure` says why it could not be, after so many `attempts`, while it is tried again.
    `extraction` says when facts are taken out of it, `facts_failure` why that waits."""

    id: str
    named: bool
    channel_id: str | None
    user_id: str | None
    agent_id: str | None
    metadata: dict[str, Any]
    started_at: datetime
    ended_at: datetime
    message_count: int
    participants: list[str]
    status: Status
    summary: str | None
    topics: list[str]
    decisions: list[str]
    open_questions: list[str]
    action_items: list[str]
    entities: list[str]
    summary_id: str | None
    summary_model: str | None
    summary_version: int | None
    summary_created_at: datetime | None
    failure: str | None
    attempts: int
    extraction: Mode
    facts_failure: str | None
    created_at: datetime
    updated_at: datetime


SummaryItem = Annotated[str, some_text(1_000)]
SummaryItems = Annotated[list[SummaryItem], Meta(max_length=100)]


class NewSummary(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A summary of a session that was made elsewhere. `model` is what made it. With `message_count` it is of so many
    messages, and refused once the session has others."""

    summary: Annotated[str, some_text(100_000)]
    topics: SummaryItems = []
    decisions: SummaryItems = []
    open_questions: SummaryItems = []
    action_items: SummaryItems = []
    entities: SummaryItems = []
    model: Id = "external"
    message_count: Annotated[int, Meta(ge=1)] | None = None


class SummaryFields(TypedDict, total=False):
    """Fields of `NewSummary` beside its text, as keywords."""

    topics: list[str]
    decisions: list[str]
    open_questions: list[str]
    action_items: list[str]
    entities: list[str]
    model: str
    message_count: int | None


class MessagePage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """Messages in order, and whether there are more."""

    data: list[Message]
    first_id: str | None
    last_id: str | None
    has_more: bool


class SessionPage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """Sessions in order, and whether there are more."""

    data: list[Session]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Around(TypedDict, total=False):
    """The place of messages, as keywords of `Sessions.observe`."""

    session_id: str | None
    channel_id: str | None
    user_id: str | None | msgspec.UnsetType
    agent_id: str | None
    extraction: bool | None
    response_id: str | None


def extraction_mode(facts: Facts, asked: bool | None) -> Mode:
    """Return when facts are extracted from messages: as `asked`, or switched; else as configured."""
    if asked is False:
        return "off"
    if asked and facts.extraction == "off":
        return "eager"
    if facts.extraction == "off" and facts.capture_rules:
        return "eager"
    return facts.extraction
