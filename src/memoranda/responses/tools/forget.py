"""The tool `memory_forget`: lists memories of a topic, and deletes them once the user has confirmed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec

from memoranda.contexts.assembly import shortened
from memoranda.contexts.finding import relevant_hits
from memoranda.errors import NotFound
from memoranda.memories.memories import Memories
from memoranda.responses.steps import parsed
from memoranda.responses.tools.base import (
    SHOWN,
    MemoryTool,
    Reading,
    Result,
    Turn,
    acting,
    arguments_of,
    done_call,
    places,
    searched,
)
from memoranda.responses.values import OWN_LABEL, Item, text_of
from memoranda.store.retrieval.evidence import unrelated
from memoranda.text.terms import query_terms, terms
from memoranda.types import Memory

FORGET = "memory_forget"
"""The name of the tool, and the end of its other name."""
_LISTED = re.compile(r"^- (\S+) \(", re.MULTILINE)
LEAST = 0.5 - 1e-9
"""The share of the words of a query that the user must have said for the call to be the user's own."""
MOST = 20
"""Memories that one call lists, or deletes."""
ASK = {
    False: "Nothing was deleted yet. Ask the user, then call this with these ids and confirmed=true.",
    True: "They share only a part of the query and were not deleted. Call this with the ids of those that are meant.",
}
"""What to do about a list, by whether the first call with a query deletes."""
UNNAMED = "They were not deleted: the user has not named them. Ask which are meant, in the user's own words."
"""What to do about memories that were listed and confirmed, but not by words of the user."""
NOT_HERE = (
    "Nothing was deleted: a chat completion does not see what was listed before, so it cannot delete."
    " Tell the user the ids, and what deletes them: `memoranda forget ID --yes`, DELETE /v1/memories/{id},"
    " /v1/responses with previous_response_id, or a chat completion on a server with the setting"
    " responses.memory_forget: immediately."
)
"""What to do about a list where no earlier call is visible."""
PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to forget, in a few words"},
        "ids": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The ids to delete, of those that a call with `query` has listed",
        },
        "confirmed": {
            "type": "boolean",
            "description": "True only after the user has seen the list and said yes",
            "default": False,
        },
    },
}


class ForgetArguments(msgspec.Struct, kw_only=True):
    """The arguments of a call."""

    query: str | None = None
    ids: list[str] | None = None
    confirmed: bool = False


class MemoryForget(MemoryTool):
    """Deletes memories of the user, never those of others. Where no user is known it deletes those of the conversation,
    or, in a response that searches everything, any."""

    description = (
        "Forget something that the user asks you to forget. First call it with `query`: it lists what is remembered."
        " Show the list to the user and ask; when the user agrees, call it with the `ids` to delete and `confirmed`."
    )
    parameters = PARAMETERS

    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        """Lists, or deletes and reports."""
        asked = arguments_of(arguments, ForgetArguments)
        memories = Memories(turn.core, acting(turn))
        at_once = turn.settings.memory_forget == "immediately"
        messages: list[str] = []
        seen = False
        if asked.ids:
            candidates = await _named(memories, asked.ids[:MOST], turn)
            seen = asked.confirmed and all(_seen(memory, turn) for memory in candidates)
            if at_once:
                meant = [memory for memory in candidates if _may(memory.content, turn)]
            else:
                meant = _named_by_user(candidates, turn) if seen else []
        else:
            wanted = set(query_terms(asked.query or ""))
            candidates = await _about(memories, asked.query or "", wanted, turn)
            at_once = at_once and _may(asked.query or "", turn, LEAST)
            meant = [memory for memory in candidates if at_once and wanted <= set(terms(memory.content))]
        if meant:
            messages.append(await _forgotten(memories, meant))
        if left := [memory for memory in candidates if memory not in meant]:
            ask = NOT_HERE if turn.listed is None and not at_once else ASK[at_once]
            ask = UNNAMED if seen and not at_once else ask
            messages.append(f"{len(left)} memories would be deleted, for good:\n{_listed(left)}\n{ask}")
        output = "\n".join(messages) or "Nothing of this is remembered."
        return Result(done_call(item, output), output)


def listed_before(items: Sequence[Item]) -> dict[str, bool]:
    """Return the ids that calls have listed before the last message of the user, who has had time to say no, each with
    whether half of the words of the call's query are the user's."""
    questions = [
        at for at, item in enumerate(items) if item["type"] == "message" and item.get("role") == "user"
    ]
    listed: dict[str, bool] = {}
    said = ""
    for item in items[: questions[-1] if questions else 0]:
        if item["type"] == "message" and item.get("role") == "user":
            said = text_of(item)
        elif is_forget_call(item):
            query = parsed(item.get("arguments") or "{}")
            words = str(query.get("query") or "") if isinstance(query, dict) else ""
            by_user = Reading().is_users(words, said, LEAST)
            for id_ in _LISTED.findall(str(item.get("output") or "")):
                listed[id_] = by_user or listed.get(id_, False)
    return listed


def _may(text: str, turn: Turn, least: float = 0.0) -> bool:
    """Return True if a call may delete a text at once: the user's words have it, or a role allows it where nothing was
    read that others wrote."""
    by_role = turn.reading.trusted and turn.subject.role in ("admin", "service")
    return by_role or turn.reading.is_users(text, turn.said, least)


def _seen(memory: Memory, turn: Turn) -> bool:
    """Return True if the user has seen a memory in a list; after something was read that others wrote, in a list
    that the user's own words asked for."""
    by_user = (turn.listed or {}).get(memory.id)
    return by_user is not None and (by_user or turn.reading.trusted)


def asked_before(items: Sequence[Item]) -> str:
    """Return the messages of the user that were answered with lists before the last message of the user."""
    questions = [
        at for at, item in enumerate(items) if item["type"] == "message" and item.get("role") == "user"
    ]
    answered = {
        max(question for question in questions if question < at)
        for at, item in enumerate(items[: questions[-1] if questions else 0])
        if is_forget_call(item) and questions[0] < at
    }
    return "\n".join(text_of(items[at]) for at in sorted(answered))


def is_forget_call(item: Item) -> bool:
    """Return True for a call of this tool."""
    return (
        item.get("type") == "mcp_call"
        and item.get("server_label") == OWN_LABEL
        and str(item.get("name")).endswith(FORGET)
    )


async def _about(memories: Memories, query: str, wanted: set[str], turn: Turn) -> list[Memory]:
    """The user's own memories that a query may be about; `wanted` are its terms."""
    answer = await memories.search(query, limit=2 * MOST, **searched(turn), threshold=0.0, explain=True)
    core = turn.core
    hits = await core.threads.run(partial(relevant_hits, topic=True), core, acting(turn), query, answer)
    return [
        hit.memory
        for hit in hits
        if _own(hit.memory, turn)
        and not unrelated(hit.relevance, wanted, set(terms(hit.memory.content)), hit.similarity)
    ][:MOST]


def _named_by_user(candidates: Sequence[Memory], turn: Turn) -> list[Memory]:
    """Return the memories that the user has named since they were listed: those with a word of the last message, or
    with their id in it. Where that names none, as a bare yes, it is about what the user asked for before the list, or
    about the only one; not so after something was read that others wrote."""
    for words in (turn.said, turn.asked) if turn.reading.trusted else (turn.said,):
        wanted = set(query_terms(words))
        named = [one for one in candidates if wanted & set(terms(one.content)) or one.id in words]
        if named:
            return named
    only = turn.listed is not None and len(turn.listed) == 1
    return list(candidates) if only and turn.reading.trusted else []


async def _named(memories: Memories, ids: Sequence[str], turn: Turn) -> list[Memory]:
    existing = []
    for id_ in dict.fromkeys(ids):
        try:
            memory = await memories.get(id_)
        except NotFound:
            continue
        if _own(memory, turn):
            existing.append(memory)
    return existing


def _own(memory: Memory, turn: Turn) -> bool:
    """Return True if a memory is the user's; where no user is known, if it is of this conversation, or the response
    searches everything."""
    here = places(turn)
    if "user" in here:
        return memory.user_id == here["user"]
    return "scopes" in searched(turn) or (
        memory.user_id is None and memory.session_id is not None and memory.session_id == here.get("session")
    )


async def _forgotten(memories: Memories, meant: Sequence[Memory]) -> str:
    receipt = await memories.forget([memory.id for memory in meant])
    also = {name: number for name, number in receipt.counts.items() if name not in ("memories", "vectors")}
    more = f", with {', '.join(f'{number} {name}' for name, number in sorted(also.items()))}" if also else ""
    return f"Deleted for good: {receipt.memories} memories{more}.\n{_listed(meant)}"


def _listed(memories: Sequence[Memory]) -> str:
    return "\n".join(
        f"- {memory.id} ({memory.kind}, {memory.occurred_at:%Y-%m-%d}):"
        f" {shortened(' '.join(memory.content.split()), SHOWN)}"  # one line each: `listed_before` reads the lines
        for memory in memories
    )
