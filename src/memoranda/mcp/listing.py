"""The tools `list`, `history`, `undo` and `sessions`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from memoranda.mcp.caller import Caller
from memoranda.mcp.remembering import MOST, Scopes, Since, Tags, Text, Until, Version, versions_of
from memoranda.mcp.tool import Tool
from memoranda.types import Kind


class ListMemories(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 20
    after: Annotated[str, Meta(description="the last id of the page before")] | None = None
    scopes: Scopes | None = None
    kinds: list[Kind] | None = None
    tags: Tags | None = None
    since: Since | None = None
    until: Until | None = None


class Listed(msgspec.Struct, kw_only=True):
    """A memory of a list."""

    id: str
    text: str
    time: datetime
    kind: str
    tags: list[str]


class ListResult(msgspec.Struct, kw_only=True):
    """One page, newest first. Where `has_more`, the id of the last memory is `after` of the next page."""

    memories: list[Listed]
    has_more: bool


async def list_memories(caller: Caller, asked: ListMemories) -> ListResult:
    """List memories."""
    page = await caller.memories.list(
        limit=asked.limit,
        after=asked.after,
        scopes=caller.scopes(asked.scopes),
        kinds=asked.kinds,
        tags=asked.tags,
        since=asked.since,
        until=asked.until,
    )
    return ListResult(
        memories=[
            Listed(
                id=memory.id, text=memory.content, time=memory.occurred_at, kind=memory.kind, tags=memory.tags
            )
            for memory in page.data
        ],
        has_more=page.has_more,
    )


class OfFact(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    id: Annotated[Text, Meta(description="the id of a fact, of any version")]


class HistoryResult(msgspec.Struct, kw_only=True):
    """The versions of a fact, in the order in which they hold."""

    versions: list[Version]


async def history(caller: Caller, asked: OfFact) -> HistoryResult:
    """List the versions of a fact."""
    return HistoryResult(versions=await versions_of(caller, asked.id))


class UndoResult(msgspec.Struct, kw_only=True):
    """The fact that was taken back (null: there was nothing to take back), and those that hold again."""

    undone: str | None
    restored: list[str]


async def undo(caller: Caller, asked: OfFact) -> UndoResult:
    """Take back the last change of a fact."""
    done = await caller.facts.undo(asked.id)
    return UndoResult(undone=done.undone, restored=done.restored)


class ListSessions(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 10
    since: Since | None = None
    until: Until | None = None


class ListedSession(msgspec.Struct, kw_only=True):
    """A session, with its summary once there is one."""

    id: str
    started_at: datetime
    ended_at: datetime
    participants: list[str]
    messages: int
    summary: str | None


class ListSessionsResult(msgspec.Struct, kw_only=True):
    """The sessions, newest first."""

    sessions: list[ListedSession]


async def list_sessions(caller: Caller, asked: ListSessions) -> ListSessionsResult:
    """List sessions."""
    page = await caller.sessions.list(limit=asked.limit, since=asked.since, until=asked.until)
    return ListSessionsResult(
        sessions=[
            ListedSession(
                id=session.id,
                started_at=session.started_at,
                ended_at=session.ended_at,
                participants=session.participants,
                messages=session.message_count,
                summary=session.summary,
            )
            for session in page.data
        ]
    )


LIST = Tool("list", "List memories", "List memories, newest first.", ListMemories, ListResult, list_memories)
HISTORY = Tool(
    "history", "History of a fact", "List how a fact changed over time.", OfFact, HistoryResult, history
)
UNDO = Tool(
    "undo",
    "Undo a change",
    "Take back the last change of a fact: what it replaced holds again.",
    OfFact,
    UndoResult,
    undo,
    changes=True,
)
SESSIONS = Tool(
    "sessions",
    "List sessions",
    "List conversations with their summaries, newest first.",
    ListSessions,
    ListSessionsResult,
    list_sessions,
)
