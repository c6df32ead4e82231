"""What bears on a question: memories, summaries of sessions, chunks of documents; one embedding, searches at once."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoranda.clock import micros
from memoranda.contexts import choosing
from memoranda.contexts.assembly import once, semantic_query
from memoranda.contexts.choosing import Chosen
from memoranda.contexts.neighbours import Reach, Window, widened
from memoranda.contexts.once import Once
from memoranda.contexts.standing import standing
from memoranda.contexts.telling import SUMMARIES
from memoranda.contexts.values import ContextQuery, LeftOut
from memoranda.errors import IndexUnavailable, InvalidInput
from memoranda.knowledge.search import Searching
from memoranda.knowledge.values import Passage, PassageQuery, Passages
from memoranda.memories.memories import Memories
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.retrieval.search import ModelChanged
from memoranda.text import tokens
from memoranda.text.json import compact_json
from memoranda.types import DEFAULT_KINDS, Hit, Query, SearchResult, Subject

T = TypeVar("T")
SPARE, DEEP = 5, 60
"""So many more than asked for are looked at, for those that say the same; and where too few are left of them."""
FEWEST, MOST, TOKENS_EACH = 10, 45, 10
"""Memories that are looked for where nobody says how many: one for so many tokens of the budget, within bounds."""
POOL = 4
"""So many times the limit are looked at where variety decides."""
FIELDS = {"vector_store_ids": "stores", "vector_store_id": "stores", "filters": "passage_filters"}
"""How fields of a search in stores are called here."""


@dataclass(slots=True)
class Found:
    """What was found for a question: memories with what was said around them, summaries, chunks, each best first."""

    query: str
    memories: list[Window] = field(default_factory=list)
    sessions: list[Chosen] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    degraded: set[str] = field(default_factory=set)

    @property
    def hits(self) -> list[Hit]:
        """The memories and summaries."""
        return [one.hit for window in self.memories for one in window.found] + [
            one.hit for one in self.sessions
        ]


@dataclass(slots=True)
class _Answers:
    """What the searches gave; `unfloored` what the memories' would have given without a threshold."""

    memories: list[Hit] = field(default_factory=list)
    sessions: list[Hit] = field(default_factory=list)
    unfloored: list[Hit] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)
    degraded: set[str] = field(default_factory=set)


class Finding:
    """Looks for what one subject may be told."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def find(self, asked: ContextQuery, *, together: bool = False) -> Found:
        """What bears on a question. `together` has one search find memories and summaries, at most `limit` of both.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: no such store for this subject.
            Forbidden: scope `all` without the admin role.
        """
        brief = [said.content for said in asked.recent or () if said.role != "system"]
        query = semantic_query(asked.query, brief)[: self._core.max_query_chars]
        try:
            return await self._with_one_embedding(asked, query, together)
        except ModelChanged:
            return await self._with_one_embedding(asked, query, together)

    async def _with_one_embedding(self, asked: ContextQuery, query: str, together: bool) -> Found:
        """The question is searched for by its words alone, and by its meaning together with what was said last."""
        question = asked.query[: self._core.max_query_chars]
        embedder = Once(self._core.embedder, question, query[len(question) :])
        core = replace(self._core, embedder=embedder)
        try:
            found = await self._found(core, asked, question, together)
        finally:
            await embedder.end()
        found.query = query
        return found

    async def _found(self, core: Core, asked: ContextQuery, query: str, together: bool) -> Found:
        """What was found; where too few are left of so many that more may be there, a second look goes deeper."""
        answers = await self._answers(core, asked, query, together)
        found = await self._chosen(asked, query, answers, together)
        chosen = sum(len(one.found) for one in found.memories) + together * len(found.sessions)
        if chosen < limit_of(asked) and len(answers.memories) == _depth(asked, SPARE):
            deep = await self._memories(core, asked, query, _kinds(asked, together)[0], _depth(asked, DEEP))
            if isinstance(deep, SearchResult):
                answers.memories = deep.results
                found = await self._chosen(asked, query, answers, together)
        return found

    async def _chosen(self, asked: ContextQuery, query: str, answers: _Answers, together: bool) -> Found:
        found = Found(query, passages=answers.passages, degraded=answers.degraded)
        await self._core.threads.run(self._choose, asked, answers, together, found)
        return found

    # --- looking -----------------------------------------------------------------------------------

    async def _answers(self, core: Core, asked: ContextQuery, query: str, together: bool) -> _Answers:
        """All searches at once, with one embedding."""
        kinds, summaries = _kinds(asked, together)
        most = 0 if together else self.most_sessions(asked)
        looks = limit_of(asked) and kinds != []
        floored = looks and asked.explain and asked.threshold
        made = _Answers()
        answers = await _all(
            self._memories(core, asked, query, kinds, _depth(asked, SPARE), aided=True) if looks else None,
            self._memories(core, asked, query, summaries, most + SPARE) if most and summaries else None,
            self._memories(core, asked, query, kinds, limit_of(asked), floor=0.0) if floored else None,
            self._passages(core, asked, query) if asked.passages and asked.stores else None,
        )
        for part, answer in zip(("memories", "sessions", "unfloored"), answers, strict=False):
            if isinstance(answer, SearchResult):
                setattr(made, part, answer.results)
                made.degraded.update(answer.degraded)
        made.passages = answers[3].data if isinstance(answers[3], Passages) else []
        made.degraded.update(answers[3].degraded if isinstance(answers[3], Passages) else ())
        made.degraded.update(answer for answer in answers if isinstance(answer, str))
        return made

    async def _memories(
        self,
        core: Core,
        asked: ContextQuery,
        query: str,
        kinds: list[str] | None,
        limit: int,
        floor: float | None = None,
        *,
        aided: bool = False,
    ) -> SearchResult | str:
        """Memories, or `memory` where nothing can be looked up. `aided`: a language model may help."""
        try:
            return await Memories(core, self.subject).search(
                Query(
                    query=query,
                    scopes=asked.scopes,
                    hierarchy=self._places(asked),
                    kinds=kinds,  # type: ignore[arg-type]
                    tags=asked.tags,
                    filters=asked.filters,
                    source=asked.source,
                    since=asked.since,
                    until=asked.until,
                    as_of=asked.as_of,
                    include_archived=asked.include_archived,
                    limit=limit,
                    threshold=asked.threshold if floor is None else floor,
                    mode=asked.mode,
                    weights=asked.weights,
                    rerank=asked.rerank,
                    recency=asked.recency,
                    times=asked.times,
                    enrich=asked.enrich,
                    hyde=asked.hyde if aided else False,
                    model_rerank=asked.model_rerank if aided else 0,
                    explain=True,
                )
            )
        except IndexUnavailable:
            return "memory"

    async def _passages(self, core: Core, asked: ContextQuery, query: str) -> Passages | str:
        wanted = PassageQuery(
            queries=[query],
            limit=asked.passages,
            filters=asked.passage_filters,
            threshold=asked.passage_threshold,
            mode=asked.mode,
            weights={
                name: value for name, value in (asked.weights or {}).items() if name in ("dense", "words")
            },
            explain=asked.explain,
        )
        try:
            return await Searching(core, self.subject).search(asked.stores, wanted)
        except IndexUnavailable:
            return "documents"
        except InvalidInput as exc:
            name = "passage_threshold" if exc.field == "threshold" else FIELDS.get(exc.field, exc.field)
            raise InvalidInput(name, str(exc).partition(": ")[2]) from exc

    def _places(self, asked: ContextQuery) -> dict[str, str] | None:
        """The scopes that the conversation is in, where none are named."""
        if asked.scopes is not None or asked.hierarchy is not None:
            return asked.hierarchy
        named = (asked.session_id, asked.channel_id, asked.user_id, asked.agent_id)
        if not any(named):
            return None
        ids = {
            "session": asked.session_id,
            "user": asked.user_id or self.subject.user_id,
            "agent": asked.agent_id,
            "channel": asked.channel_id,
        }
        return {scope: id_ for scope, id_ in ids.items() if id_}

    def most_sessions(self, asked: ContextQuery) -> int:
        """How many summaries are told at most."""
        return self._core.config.sessions.max_retrieved if asked.sessions is None else asked.sessions

    # --- choosing ----------------------------------------------------------------------------------

    def _choose(self, asked: ContextQuery, answers: _Answers, together: bool, found: Found) -> None:
        """Fills in what is to be told of what the searches gave."""
        ids = {*asked.exclude, *(said.id for said in asked.recent or () if said.id)}
        said = {choosing.plain(text) for text in (asked.query, *(one.content for one in asked.recent or ()))}
        chosen, again = choosing.untold(
            choosing.candidates([*answers.memories, *answers.sessions]), ids, said
        )
        chosen, other = choosing.applicable(chosen, asked.query)
        found.left_out += again + other
        if asked.distinct:
            for without in (choosing.distinct, lambda some: choosing.unrepeated(some, asked.query)):
                chosen, twice = without(chosen)
                found.left_out += twice
        weights = self._core.config.search.kind_weights
        chosen = choosing.relevant_first(chosen, asked.query, weights)
        memories = [one for one in chosen if one.part == "memories"]
        sessions = [one for one in chosen if one.part == "sessions"]
        if together:
            best = {one.memory.id for one in chosen[: limit_of(asked)]}
            memories = [one for one in memories if one.memory.id in best]
            sessions = [one for one in sessions if one.memory.id in best]
        if asked.diversity:
            vectors = self._vectors(memories)
            memories = choosing.varied(memories, vectors, limit_of(asked), asked.diversity)
        memories, sessions = memories[: limit_of(asked)], sessions[: self.most_sessions(asked)]
        if asked.merge and memories and sessions:
            now = asked.as_of or datetime.now(UTC)
            memories, sessions = choosing.reranked(memories, sessions, asked.query, now)
        first = [one for one in self._standing(asked) if one.memory.id not in ids]
        sourced = {id_: one.memory.id for one in first for id_ in (one.memory.id, *one.memory.source_refs)}
        found.left_out += [
            choosing.left(one, "duplicate", sourced[one.memory.id])
            for one in memories
            if one.memory.id in sourced and one.memory.kind == "message"
        ]
        memories = [one for one in memories if one.memory.id not in sourced]
        found.sessions = sessions
        found.memories = [*(Window([one]) for one in first), *self._widened(asked, memories, ids)]
        found.left_out += _below(answers)

    def _standing(self, asked: ContextQuery) -> list[Chosen]:
        if not limit_of(asked):
            return []
        places = self._places(asked) or {}
        user = places.get("user") or next(
            (scope[5:] for scope in asked.scopes or () if scope.startswith("user:")), self.subject.user_id
        )
        return standing(self._core, self.subject, asked, user)

    def _vectors(self, found: Sequence[Chosen]) -> dict[str, NDArray[np.float32]]:
        """The vectors of memories, by id."""
        store, tenant = self._core.store, self.subject.tenant_id
        ids = {row.seq: id_ for id_, row in store.by_id(tenant, [one.memory.id for one in found]).items()}
        key = [tenant, store.space, compact_json(list(ids))]
        rows = store.db.read(lambda c: c.all("part_vectors", key), tenant)
        return {ids[seq]: np.frombuffer(blob, dtype="<f4") for seq, blob in rows}

    def _widened(self, asked: ContextQuery, memories: Sequence[Chosen], ids: set[str]) -> list[Window]:
        if not asked.neighbours:
            return [Window([one]) for one in memories]
        until = None if asked.as_of is None else micros(asked.as_of)
        reach = Reach(asked.neighbours, asked.neighbour_tokens, once(tokens.count), until, ids)

        def read(c: Connection) -> list[Window]:
            return widened(c, self.subject, memories, reach)

        return self._core.store.db.read(read, self.subject.tenant_id)


def _kinds(asked: ContextQuery, together: bool) -> tuple[list[str] | None, list[str]]:
    """The kinds of memories to look for, and those of summaries; an empty list is none."""
    if together:
        return (None if asked.kinds is None else list(asked.kinds)), []
    kinds = DEFAULT_KINDS if asked.kinds is None else asked.kinds
    return [kind for kind in kinds if kind not in SUMMARIES], [kind for kind in kinds if kind in SUMMARIES]


def limit_of(asked: ContextQuery) -> int:
    """Return how many memories go into a context at most."""
    if asked.limit is not None:
        return asked.limit
    return max(FEWEST, min(MOST, asked.budget // TOKENS_EACH))


def _depth(asked: ContextQuery, spare: int) -> int:
    """How many memories to look at for those that are told."""
    return min(1_000, limit_of(asked) * (POOL if asked.diversity else 1) + spare)


def _below(answers: _Answers) -> list[LeftOut]:
    """What the floor kept away."""
    above = {hit.memory.id for hit in answers.memories}
    under = choosing.candidates(hit for hit in answers.unfloored if hit.memory.id not in above)
    return [choosing.left(one, "floor") for one in under]


async def _all(*work: Coroutine[Any, Any, Any] | None) -> list[Any]:
    """What they give, at once, None for none; when one fails, the others end before that is heard of."""
    tasks = [None if one is None else asyncio.ensure_future(one) for one in work]
    under_way = [task for task in tasks if task is not None]
    try:
        await asyncio.gather(*under_way)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    return [None if task is None else task.result() for task in tasks]
