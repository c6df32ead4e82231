"""The tools `memory_search` and `memory_write`: memories of the user, the conversation, the agent."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from memoranda.contexts.assembly import shortened
from memoranda.contexts.finding import relevant_hits
from memoranda.contexts.result_text import SUMMARIES, line, origin_mark, since
from memoranda.errors import Forbidden, InvalidInput
from memoranda.memories.memories import Memories
from memoranda.providers.chat.base import Form, Source
from memoranda.providers.chat.quoting import without_sources
from memoranda.responses.tools.base import (
    SHOWN,
    WRITTEN,
    MemoryTool,
    Result,
    Turn,
    acting,
    arguments_of,
    done_call,
    places,
    searched,
)
from memoranda.responses.values import Item
from memoranda.store.retrieval.evidence import Evidence
from memoranda.store.rows import speaker_name
from memoranda.text import prompts
from memoranda.text.prompts import quoted
from memoranda.types import Hit, Memory, NewMemory, Query, Through

Scope = Literal["session", "user", "agent", "channel", "global"]
MOST = 50
KEPT_FOR = {
    "session": "for this conversation",
    "user": "for this user, in every conversation",
    "agent": "for this agent",
    "channel": "for this channel",
    "global": "for everybody here",
}
WIDE_LEAST = 0.5 - 1e-9
"""The share of the words of a memory for others that the user must have said in the same turn."""
WIDER = (
    "scope: what others read ({scope}) is stored if the user says it in the same turn, or for a key with the role admin"
    " or service; use the scope user or session"
)
WAITS = "Not in use before a person confirms it, since it rests on what was read and not on the user's words; stored"
SCOPES = {"type": "string", "enum": list(KEPT_FOR)}
SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Search query to find relevant memories"},
        "scope": {
            **SCOPES,
            "description": "Scope to search within; left out: all that concern this conversation",
        },
        "limit": {"type": "integer", "description": "Maximum number of results", "default": 10},
    },
    "required": ["query"],
}
WRITE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "content": {
            "type": "string",
            "description": "What to remember, in sentences that are understood without this conversation",
        },
        "scope": {
            **SCOPES,
            "description": "Where it belongs: session is this conversation, user the user in every conversation",
        },
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Words to file it under"},
        "importance": {"type": "integer", "description": "How much it matters, 0 to 10", "default": 0},
        "kind": {"type": "string", "enum": ["note", "fact"], "default": "note"},
    },
    "required": ["content"],
}


class SearchArguments(msgspec.Struct, kw_only=True):
    """The arguments of a search."""

    query: str
    scope: Scope | None = None
    limit: int | None = None


class WriteArguments(msgspec.Struct, kw_only=True):
    """The arguments of a write."""

    content: str
    scope: Scope | None = None
    tags: list[str] | None = None
    importance: int | None = None
    kind: Literal["note", "fact"] | None = None


class MemorySearch(MemoryTool):
    """Finds memories by vector and keyword search."""

    description = "Search vector memory for relevant context"
    parameters = SEARCH

    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        """Searches one scope, or all that concern the conversation, the narrower ones weighing more."""
        asked = arguments_of(arguments, SearchArguments)
        floor = turn.settings.memory_min_score if turn.memory.min_score is None else turn.memory.min_score
        subject = acting(turn)
        query = Query(
            query=asked.query,
            limit=min(max(1, 10 if asked.limit is None else asked.limit), MOST),
            threshold=floor,
            kinds=turn.memory.kinds,
            count_access=True,
            **(searched(turn) if asked.scope is None else {"scopes": [_scope(asked.scope, turn)]}),
            filters=of_agent(turn),
            explain=True,
        )
        answer = await Memories(turn.core, subject).search(query)
        hits = answer.results
        if floor is None:
            hits = await turn.core.threads.run(relevant_hits, turn.core, subject, asked.query, answer)
        item["_read"] = turn.reading.take([hit.memory for hit in hits], subject.user_id)
        if not hits:
            message = prompts.found_memories([])
            return Result(
                done_call(item, message), message, degraded=answer.degraded, evidence=Evidence("none", 0.0)
            )
        sources = [_source(hit) for hit in hits]
        doubtful = answer.evidence == "none"
        numbered = [replace(source, number=n) for n, source in enumerate(sources, 1)]
        return Result(
            done_call(item, _message(numbered, hits, doubtful, subject.user_id)),
            sources=sources,
            render=lambda numbered: _message(numbered, hits, doubtful, subject.user_id),
            degraded=answer.degraded,
            evidence=Evidence(answer.evidence, answer.evidence_probability),
        )


class MemoryWrite(MemoryTool):
    """Keeps a text as a memory."""

    description = (
        "Store something in memory that will be useful later: a preference, a decision, a fact about the user. "
        "What is stored already is not stored again."
    )
    parameters = WRITE

    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        """Writes; the same text in the same scope is one memory.

        What rests on what others wrote, and not on the user's words, waits until it is confirmed.

        Raises:
            Forbidden: others would read it, and neither the user's words nor a role allow that.
        """
        asked = arguments_of(arguments, WriteArguments)
        scope = asked.scope or ("user" if "user" in places(turn) else "session")
        subject, reading = acting(turn), turn.reading
        may = reading.trusted and turn.subject.role in ("admin", "service")
        ids = _ids(scope, turn)
        for_others = ids.get("user_id", subject.user_id) is None and scope != "session"
        if for_others and not may and not reading.is_users(asked.content, turn.said, WIDE_LEAST):
            raise Forbidden(WIDER.format(scope=scope))
        waits = not reading.trusted and not reading.is_users(asked.content, turn.said)
        through = Through(origin="tool", by=(turn.response_id,), read=tuple(reading.names), quarantined=waits)
        new = NewMemory(
            content=asked.content,
            kind="note" if waits else asked.kind or "note",
            role="assistant",
            source=WRITTEN,
            tags=asked.tags or [],
            importance=asked.importance or 0,
            source_refs=[item["id"]],
            **ids,
        )
        added = await Memories(turn.core, replace(subject, through=through)).add(new)
        verb = WAITS if waits else "Stored" if added.created else "Known already"
        output = f"{verb} {KEPT_FOR[scope]}: {shortened(added.memory.content, SHOWN)}"
        return Result(done_call(item, output), output)


def of_agent(turn: Turn) -> dict[str, Any]:
    """Return the filter of what an agent remembers: what was said to it, or to none, and what was said in this
    conversation."""
    return {
        "type": "or",
        "filters": [
            {"type": "in", "key": "$agent_id", "value": [*dict.fromkeys([None, turn.agent_id])]},
            {"type": "eq", "key": "$session_id", "value": turn.memory.session_id or turn.session_id},
        ],
    }


def _scope(scope: str, turn: Turn) -> str:
    return scope if scope == "global" else f"{scope}:{_place(scope, turn)}"


def _ids(scope: str, turn: Turn) -> dict[str, Any]:
    """The ids of a memory in this scope. It belongs to its user; a global one belongs to no user."""
    return {"user_id": None} if scope == "global" else {f"{scope}_id": _place(scope, turn)}


def _place(scope: str, turn: Turn) -> str:
    ids = places(turn)
    if scope not in ids:
        raise InvalidInput("scope", f"no {scope} is known here; use one of {', '.join([*ids, 'global'])}")
    return ids[scope]


def said(memory: Memory) -> str | None:
    """Return the speaker and the day of a message, or since when a fact is valid; None for other kinds."""
    if memory.kind == "message":
        who = speaker_name(memory)
        day = _day(memory, memory.occurred_at)
        return f"{line(who)}, {day}" if who else day
    return f"fact since {_day(memory, since(memory))}" if memory.kind == "fact" else None


def title_of(memory: Memory) -> str:
    """Return the title of a memory that the model is given: as `said` has it, else its kind."""
    return said(memory) or memory.kind


def form_of(memory: Memory) -> Form:
    """Return the form of a memory as a source."""
    return "summary" if memory.kind in SUMMARIES else "fact" if memory.kind == "fact" else "text"


def _source(hit: Hit) -> Source:
    memory = hit.memory
    title = said(memory) or memory.source or memory.kind
    return Source(
        number=0,
        text=shortened(without_sources(memory.content, title), SHOWN),
        title=title,
        kind="memory",
        id=memory.id,
        score=hit.score,
        form=form_of(memory),
    )


def _message(numbered: Sequence[Source], hits: Sequence[Hit], doubtful: bool, user: str | None) -> str:
    return prompts.found_memories(
        [
            prompts.found_memory(
                source.number,
                source.score,
                line(shortened(hit.memory.content, SHOWN)),
                f"{quoted(source.title)}{origin_mark(hit.memory, user)}",
                _time(hit.memory.created_at),
            )
            for source, hit in zip(numbered, hits, strict=True)
        ],
        doubtful=doubtful,
    )


def _day(memory: Memory, at: datetime) -> str:
    return f"{at.astimezone(memory.occurred_at.tzinfo):%d %B %Y}"


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
