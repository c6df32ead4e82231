"""Tools over memories: `recall`, `remember`, `forget`, `get`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from memoranda.arguments import ForgetFields
from memoranda.errors import InvalidInput, NotFound
from memoranda.mcp.caller import GLOBAL, Caller
from memoranda.mcp.tool import Tool
from memoranda.store.access import default_scopes
from memoranda.store.retrieval.evidence import unrelated
from memoranda.store.rows import speaker_name
from memoranda.text.terms import query_terms, terms
from memoranda.text.tokens import count
from memoranda.types import Kind, Memory, NewMemory

MOST = 50
SHOWN = 20
"""Memories that `forget` lists."""
SOURCES = 20
"""Sources of a memory that `get` shows."""
SOURCE = "mcp"
"""The `source` of a memory that a tool wrote."""
Text = Annotated[str, Meta(min_length=1)]
Tags = Annotated[list[str], Meta(description="memories with all of these tags")]
Since = Annotated[datetime, Meta(description="from this time on, such as 2026-05-01 or 2026-05-01T09:30:00Z")]
Until = Annotated[datetime, Meta(description="before this time; a day is included")]
Scopes = Annotated[
    list[str],
    Meta(description="user, agent, global, session:ID, channel:ID; left out: user, agent and global"),
]
MaxTokens = Annotated[int, Meta(ge=1, description="the results have at most so many tokens together")]


class Recall(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    query: Annotated[Text, Meta(description="a question, or words that the memory has")]
    limit: Annotated[int, Meta(ge=1, le=MOST)] = 10
    scopes: Scopes | None = None
    kinds: list[Kind] | None = None
    tags: Tags | None = None
    since: Since | None = None
    until: Until | None = None
    as_of: Annotated[datetime, Meta(description="what was known and valid at this time")] | None = None
    max_tokens: MaxTokens | None = None


class Recalled(msgspec.Struct, kw_only=True):
    """A memory that was found. `time` is when it was said or happened; `speaker` is who said a message; `score` orders
    the results, 0 to 1."""

    id: str
    text: str
    time: datetime
    kind: str
    score: float
    source: str | None
    speaker: str | None = None


class RecallResult(msgspec.Struct, kw_only=True):
    """`evidence` says whether the memories are likely to answer, and `evidence_probability`, 0 to 1, how likely;
    `omitted` did not fit within `max_tokens`; `degraded` names what could not answer in full."""

    scopes: list[str]
    evidence: str
    evidence_probability: float
    results: list[Recalled]
    omitted: int
    degraded: list[str]


async def recall(caller: Caller, asked: Recall) -> RecallResult:
    """Search memories."""
    scopes = caller.scopes(asked.scopes)
    answer = await caller.memories.search(
        asked.query,
        limit=asked.limit,
        scopes=scopes if asked.scopes is not None else None,
        hierarchy=caller.places or None if asked.scopes is None else None,
        kinds=asked.kinds,
        tags=asked.tags,
        since=asked.since,
        until=asked.until,
        as_of=asked.as_of,
        count_access=True,
    )
    results = [
        Recalled(
            id=hit.memory.id,
            text=hit.memory.content,
            time=hit.memory.occurred_at,
            kind=hit.memory.kind,
            score=round(hit.score, 4),
            source=hit.memory.source,
            speaker=speaker_name(hit.memory) if hit.memory.kind == "message" else None,
        )
        for hit in answer.results
    ]
    included = within(asked.max_tokens, [memory.text for memory in results])
    return RecallResult(
        scopes=scopes or default_scopes(caller.subject, caller.core.config.search.default_scope),
        evidence=answer.evidence,
        evidence_probability=answer.evidence_probability,
        results=results[:included],
        omitted=len(results) - included,
        degraded=answer.degraded,
    )


def within(most: int | None, texts: Sequence[str]) -> int:
    """Return how many of the texts, from the first one on, have at most `most` tokens together; all for None."""
    if most is None:
        return len(texts)
    spent = 0
    for number, text in enumerate(texts):
        spent += count(text)
        if spent > most:
            return number
    return len(texts)


class Remember(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[Text, Meta(description="sentences that are understood without this conversation")]
    kind: Annotated[
        Literal["note", "fact"],
        Meta(description="fact: what is true of a person or a thing until a statement ends it"),
    ] = "note"
    scope: (
        Annotated[
            Literal["user", "agent", "global"],
            Meta(description="whom it is for; left out: the user if known, else everyone"),
        ]
        | None
    ) = None
    tags: list[str] | None = None
    occurred_at: Annotated[datetime, Meta(description="when it happened; left out: now")] | None = None
    replaces: Annotated[list[str], Meta(description="of a fact, ids of facts that do not hold any more")] = []


class RememberResult(msgspec.Struct, kw_only=True):
    """`created` is false where the same text was there already."""

    id: str
    created: bool
    scope: str


async def remember(caller: Caller, asked: Remember) -> RememberResult:
    """Write a memory."""
    scope: str = asked.scope or next(iter([*caller.places, GLOBAL]))
    new = NewMemory(
        content=asked.text,
        kind=asked.kind,
        source=SOURCE,
        tags=asked.tags or [],
        occurred_at=asked.occurred_at,
        replaces=asked.replaces,
        **caller.owner(scope),  # type: ignore[arg-type]
    )
    added = await caller.writing.add(new)
    return RememberResult(id=added.memory.id, created=added.created, scope=scope)


class Forget(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    ids: Annotated[list[str], Meta(min_length=1, max_length=MOST, description="these memories")] | None = None
    query: Annotated[Text, Meta(description="only lists memories about this, to choose ids from")] | None = (
        None
    )
    text: Annotated[Text, Meta(description="all that contains these words, files too")] | None = None
    tags: Tags | None = None
    since: Since | None = None
    until: Until | None = None
    confirm: Annotated[
        bool, Meta(description="true once the user agreed to delete by text, tags or time")
    ] = False


class Forgettable(msgspec.Struct, kw_only=True):
    """A memory that is, or would be, deleted."""

    id: str
    text: str
    time: datetime


class ForgetResult(msgspec.Struct, kw_only=True):
    """`deleted` memories are gone for good, with what was made of them (`counts`, by kind). Else `matches` are memories
    that would be, the first of `matching`, with `counts` of all that would, and `next` says what to do."""

    deleted: int
    counts: dict[str, int]
    matching: int
    matches: list[Forgettable]
    next: str | None


async def forget(caller: Caller, asked: Forget) -> ForgetResult:
    """Delete memories, or list those that would be."""
    selection: ForgetFields = {}
    if asked.text is not None:
        selection["text"] = asked.text
    if asked.tags is not None:
        selection["tags"] = asked.tags
    if asked.since is not None:
        selection["since"] = asked.since
    if asked.until is not None:
        selection["until"] = asked.until
    ways = [asked.ids is not None, asked.query is not None, bool(selection)]
    if sum(ways) != 1:
        raise InvalidInput("ids", "give one of: ids, query, or a selection by text, tags, since and until")
    if asked.ids is not None:
        receipt = await caller.memories.forget(asked.ids)
        return _deleted(receipt.memories, receipt.counts)
    if asked.query is not None:
        about = await _about(caller, asked.query)
        says = "nothing was deleted; ask the user, then call forget with the ids to delete"
        return _listed(len(about), about, {}, says if about else None)
    own = next(iter(caller.places.items()), None)
    if own is not None:
        selection["scopes"] = [":".join(own)]
    if asked.confirm:
        receipt = await caller.memories.forget(**selection)
        return _deleted(receipt.memories, receipt.counts)
    says = "nothing was deleted; ask the user, then call forget with the same arguments and confirm=true"
    preview = await caller.memories.preview_forget(examples=SHOWN, **selection)
    shown = [memory for kind in preview.kinds for memory in kind.examples]
    matching = preview.counts.get("memories", 0)
    if not preview.counts:
        says = "nothing is stored of this; with confirm=true it is erased from the records of jobs, too"
    return _listed(
        matching, shown[:SHOWN], preview.counts, says if preview.counts or not asked.tags else None
    )


async def _about(caller: Caller, query: str) -> list[Memory]:
    """The memories that a query may be about: those of the user, if the user is known."""
    wanted = set(query_terms(query))
    answer = await caller.memories.search(
        query, limit=2 * SHOWN, hierarchy=caller.places or None, threshold=0.0
    )
    return [
        hit.memory
        for hit in answer.results
        if caller.subject.user_id in (None, hit.memory.user_id)
        and not unrelated(hit.relevance, wanted, set(terms(hit.memory.content)), hit.similarity)
    ][:SHOWN]


def _deleted(number: int, counts: dict[str, int]) -> ForgetResult:
    return ForgetResult(deleted=number, counts=counts, matching=0, matches=[], next=None)


def _listed(
    number: int, memories: Iterable[Memory], counts: dict[str, int], says: str | None
) -> ForgetResult:
    matches = [Forgettable(id=memory.id, text=memory.content, time=memory.occurred_at) for memory in memories]
    return ForgetResult(deleted=0, counts=counts, matching=number, matches=matches, next=says)


class Get(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    id: Text


class Version(msgspec.Struct, kw_only=True):
    """One version of a fact: it held from `begins` to `ends` (null: it still holds)."""

    id: str
    text: str
    begins: datetime
    ends: datetime | None
    current: bool


class Origin(msgspec.Struct, kw_only=True):
    """What a memory was derived from: a message or another memory."""

    id: str
    text: str
    time: datetime
    kind: str


class GetResult(msgspec.Struct, kw_only=True):
    """A memory in full. `versions` are those of a fact, oldest first; `sources` is what it was derived from."""

    memory: Memory
    versions: list[Version]
    sources: list[Origin]


async def get(caller: Caller, asked: Get) -> GetResult:
    """Read a memory with its versions and its provenance."""
    memory = await caller.memories.get(asked.id)
    versions = await versions_of(caller, asked.id) if memory.kind == "fact" else []
    sources = []
    for ref in memory.source_refs[:SOURCES]:
        with suppress(NotFound):
            source = await caller.memories.get(ref)
            sources.append(
                Origin(id=source.id, text=source.content, time=source.occurred_at, kind=source.kind)
            )
    return GetResult(memory=memory, versions=versions, sources=sources)


async def versions_of(caller: Caller, id_: str) -> list[Version]:
    """The versions of a fact, in the order in which they hold."""
    history = await caller.facts.history(id_)
    return [
        Version(
            id=version.memory.id,
            text=version.memory.content,
            begins=version.begins,
            ends=version.ends,
            current=version.live,
        )
        for version in history.data
    ]


RECALL = Tool(
    "recall",
    "Search memory",
    "Search what is remembered of this user and agent: earlier conversations, facts, notes. Call it before you answer"
    " anything that may depend on the user, on earlier work or on decisions. When evidence is none, say that you do"
    " not know instead of guessing.",
    Recall,
    RecallResult,
    recall,
)
REMEMBER = Tool(
    "remember",
    "Remember",
    "Store what will be useful later: a preference, a decision, a fact about the user or the project. One statement"
    " per call. The same text is stored once.",
    Remember,
    RememberResult,
    remember,
    changes=True,
)
FORGET = Tool(
    "forget",
    "Forget",
    "Delete for good what the user asks you to forget. First call it with query: it lists memories with their ids."
    " Then call it with ids. By text, tags or time it deletes everything that matches, once confirm is true.",
    Forget,
    ForgetResult,
    forget,
    changes=True,
    deletes=True,
)
GET = Tool(
    "get",
    "Read one memory",
    "Read a memory by id: in full, with the versions of a fact and the messages that it is based on.",
    Get,
    GetResult,
    get,
)
