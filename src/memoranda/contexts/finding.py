"""Retrieval for a question: memories, summaries of sessions, chunks of documents; one embedding, concurrent
searches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

import msgspec

from memoranda.clock import micros
from memoranda.contexts import choosing, matters
from memoranda.contexts.assembly import once, semantic_query
from memoranda.contexts.choosing import Chosen
from memoranda.contexts.matters import note_ended, standing
from memoranda.contexts.neighbours import Reach, Window, widened
from memoranda.contexts.result_text import SUMMARIES
from memoranda.contexts.values import ContextQuery, LeftOut
from memoranda.errors import IndexUnavailable, InvalidInput
from memoranda.knowledge.passages import distinct, search_limit
from memoranda.knowledge.search import Searching
from memoranda.knowledge.values import Passage, PassageQuery, Passages
from memoranda.memories.search import search
from memoranda.memories.vectors import stored_vectors
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.retrieval.questions import Questions
from memoranda.store.retrieval.search import ModelChanged
from memoranda.text import tokens
from memoranda.types import DEFAULT_KINDS, Hit, Query, SearchResult, Subject

T = TypeVar("T")
SPARE, DEEP = 5, 60
"""Candidates beyond the limit, since some say the same; the second number applies if too few are left."""
FEWEST, MOST, TOKENS_EACH = 10, 45, 10
"""The default number of memories: one for so many tokens of the budget, within bounds."""
POOL = 4
"""Candidates as a multiple of the limit if diversity is on."""
FIELDS = {
    "vector_store_ids": "stores",
    "vector_store_id": "stores",
    "filters": "passage_filters",
    "threshold": "passage_threshold",
}
"""The names of fields of a search in stores here."""


class ContextResults(msgspec.Struct):
    """The results for a question: memories with their neighbouring messages, summaries, chunks, each best first.
    `irrelevant` is how many were left out as not relevant, `searched` how many memories and summaries there were to
    compare, None: many. `user` is for whom it is, if known."""

    query: str
    memories: list[Window] = msgspec.field(default_factory=list)
    sessions: list[Chosen] = msgspec.field(default_factory=list)
    passages: list[Passage] = msgspec.field(default_factory=list)
    left_out: list[LeftOut] = msgspec.field(default_factory=list)
    irrelevant: int = 0
    searched: int | None = None
    degraded: set[str] = msgspec.field(default_factory=set)
    user: str | None = None

    @property
    def candidates(self) -> list[Chosen]:
        """The memories and summaries."""
        return [candidate for window in self.memories for candidate in window.found] + self.sessions


class _Answers(msgspec.Struct):
    """The results of the searches; `unfloored` those for memories without a threshold."""

    memories: list[Hit] = msgspec.field(default_factory=list)
    sessions: list[Hit] = msgspec.field(default_factory=list)
    unfloored: list[Hit] = msgspec.field(default_factory=list)
    passages: list[Passage] = msgspec.field(default_factory=list)
    searched: int | None = None
    degraded: set[str] = msgspec.field(default_factory=set)


class Finding:
    """Searches what one subject may see."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def find(self, asked: ContextQuery, *, together: bool = False) -> ContextResults:
        """Return the results for a question. With `together` one search finds memories and summaries, at most `limit`
        of both.

        Raises:
            InvalidInput: names the field and the fix.
            NotFound: no such store for this subject.
            Forbidden: scope `all` without the admin role.
        """
        brief = [said.content for said in asked.recent or () if said.role != "system"]
        query = semantic_query(asked.query, brief)[: self._core.max_query_chars]
        question = asked.query[: self._core.max_query_chars]

        async def retrieve(questions: Questions) -> ContextResults:
            return await self._retrieve(questions, asked, question, together)

        # keyword search is for the question alone, vector search for it together with recent messages
        results = await with_questions(self._core, self.subject, retrieve, below=query[len(question) :])
        results.query = query
        return results

    async def _retrieve(
        self, questions: Questions, asked: ContextQuery, query: str, together: bool
    ) -> ContextResults:
        """Return the results; if too few are left and there may be more, search again, deeper."""
        answers = await self._answers(questions, asked, query, together)
        results = await self._chosen(asked, query, answers, together)
        chosen = sum(len(window.found) for window in results.memories) + together * len(results.sessions)
        chosen += results.irrelevant
        if chosen < limit_of(asked) and len(answers.memories) == _depth(asked, SPARE):
            kinds, _ = _kinds(asked, together)
            deep = await self._memories(questions, asked, query, kinds, _depth(asked, DEEP))
            if isinstance(deep, SearchResult):
                answers.memories = deep.results
                results = await self._chosen(asked, query, answers, together)
        return results

    async def _chosen(
        self, asked: ContextQuery, query: str, answers: _Answers, together: bool
    ) -> ContextResults:
        results = ContextResults(
            query, passages=answers.passages, searched=answers.searched, degraded=answers.degraded
        )
        await self._core.threads.run(self._choose, asked, answers, together, results)
        return results

    # --- looking -----------------------------------------------------------------------------------

    async def _answers(
        self, questions: Questions, asked: ContextQuery, query: str, together: bool
    ) -> _Answers:
        """Run all searches concurrently, with one embedding."""
        kinds, summaries = _kinds(asked, together)
        most = 0 if together else self.most_sessions(asked)
        looks = limit_of(asked) and kinds != []
        floored = looks and asked.explain and asked.threshold
        combined = _Answers()
        memories = partial(self._memories, questions, asked, query)
        answers = await concurrently(
            memories(kinds, _depth(asked, SPARE), aided=True) if looks else None,
            memories(summaries, most + SPARE) if most and summaries else None,
            memories(kinds, limit_of(asked), floor=0.0) if floored else None,
            self._passages(questions, asked, query) if asked.passages and asked.stores else None,
        )
        for part, answer in zip(("memories", "sessions", "unfloored"), answers, strict=False):
            if isinstance(answer, SearchResult):
                setattr(combined, part, answer.results)
                combined.degraded.update(answer.degraded)
        numbers = [answer.searched for answer in answers[:2] if isinstance(answer, SearchResult)]
        combined.searched = None if None in numbers else sum(number or 0 for number in numbers)
        combined.passages = answers[3].data if isinstance(answers[3], Passages) else []
        combined.degraded.update(answers[3].degraded if isinstance(answers[3], Passages) else ())
        combined.degraded.update(answer for answer in answers if isinstance(answer, str))
        return combined

    async def _memories(
        self,
        questions: Questions,
        asked: ContextQuery,
        query: str,
        kinds: list[str] | None,
        limit: int,
        floor: float | None = None,
        *,
        aided: bool = False,
    ) -> SearchResult | str:
        """Search memories; return `memory` if they cannot be searched. `aided`: a language model may help."""
        try:
            return await search(
                self._core,
                self.subject,
                Query(
                    query=query,
                    scopes=asked.scopes,
                    hierarchy=self._places(asked),
                    kinds=kinds,  # type: ignore[arg-type]
                    roles=asked.roles,
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
                ),
                questions,
            )
        except IndexUnavailable:
            return "memory"

    async def _passages(self, questions: Questions, asked: ContextQuery, query: str) -> Passages | str:
        wanted = PassageQuery(
            queries=[query],
            limit=search_limit(asked.passages, asked.stores),
            filters=asked.passage_filters,
            threshold=asked.passage_threshold,
            mode=asked.mode,
            weights={
                name: value for name, value in (asked.weights or {}).items() if name in ("dense", "words")
            },
            explain=asked.explain,
        )
        try:
            answer = await Searching(self._core, self.subject).search(asked.stores, wanted, questions)
        except IndexUnavailable:
            return "documents"
        except InvalidInput as exc:
            field, dot, inside = exc.field.partition(".")
            name = f"{FIELDS.get(field, field)}{dot}{inside}"
            raise InvalidInput(name, str(exc).partition(": ")[2]) from exc
        found = distinct(answer.data) if asked.distinct else answer.data
        answer.data = found[: asked.passages]
        return answer

    def _places(self, asked: ContextQuery) -> dict[str, str] | None:
        """Return the scopes of the conversation, if none are given."""
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
        """Return the most summaries in a context."""
        return self._core.config.sessions.max_retrieved if asked.sessions is None else asked.sessions

    # --- choosing ----------------------------------------------------------------------------------

    def _choose(
        self, asked: ContextQuery, answers: _Answers, together: bool, results: ContextResults
    ) -> None:
        """Fill in the results that are chosen from the answers of the searches."""
        recent = {said.id for said in asked.recent or () if said.id}
        ids = {*asked.exclude, *recent}
        said = {
            choosing.plain(text)
            for text in (asked.query, *(message.content for message in asked.recent or ()))
        }
        chosen, again = choosing.not_present(
            choosing.candidates([*answers.memories, *answers.sessions]), set(asked.exclude), recent, said
        )
        results.left_out += again
        if asked.summary:
            chosen, own = choosing.without_summary_of(chosen, (self._places(asked) or {}).get("session"))
            results.left_out += own
        if asked.distinct:
            for without in (choosing.distinct, lambda some: choosing.unrepeated(some, asked.query)):
                chosen, twice = without(chosen)
                results.left_out += twice
        calibration = self._core.recall.calibration
        vectors = stored_vectors(
            self._core, self.subject.tenant_id, [candidate.memory.id for candidate in chosen]
        )
        weights = self._core.config.search.kind_weights
        chosen = choosing.relevant_first(chosen, asked.query, weights)
        if asked.as_of is None:
            note_ended(self._core, self.subject, chosen, asked.query)
            chosen = choosing.current_first(chosen)
        memories = [candidate for candidate in chosen if candidate.part == "memories"]
        sessions = [candidate for candidate in chosen if candidate.part == "sessions"]
        if asked.threshold is None and not asked.diversity:
            parts = [chosen] if together else [memories, sessions]  # the candidates of one search each
            kept = self._relevant(asked.query, parts, vectors, answers.searched, results)
            chosen, memories, sessions = (
                [candidate for candidate in some if candidate.memory.id in kept]
                for some in (chosen, memories, sessions)
            )
        if together:
            best = {candidate.memory.id for candidate in chosen[: limit_of(asked)]}
            memories = [candidate for candidate in memories if candidate.memory.id in best]
            sessions = [candidate for candidate in sessions if candidate.memory.id in best]
        if asked.diversity:
            memories = choosing.varied(memories, vectors, limit_of(asked), asked.diversity)
        memories, sessions = memories[: limit_of(asked)], sessions[: self.most_sessions(asked)]
        if asked.as_of is None and not asked.diversity:
            memories = matters.together(memories, vectors, calibration)
        if asked.merge and memories and sessions:
            now = asked.as_of or datetime.now(UTC)
            memories, sessions = choosing.reranked(memories, sessions, asked.query, now)
        results.user = self._user(asked)
        first = [
            candidate for candidate in self._standing(asked, results.user) if candidate.memory.id not in ids
        ]
        sourced = {
            id_: candidate.memory.id
            for candidate in first
            for id_ in (candidate.memory.id, *candidate.memory.source_refs)
        }
        results.left_out += [
            choosing.left(candidate, "duplicate", sourced[candidate.memory.id])
            for candidate in memories
            if candidate.memory.id in sourced and candidate.memory.kind == "message"
        ]
        memories = [candidate for candidate in memories if candidate.memory.id not in sourced]
        results.sessions = sessions
        results.memories = [
            *(Window([candidate]) for candidate in first),
            *self._widened(asked, memories, ids, results.user),
        ]
        results.left_out += _below(answers)

    def _relevant(
        self,
        question: str,
        parts: Sequence[Sequence[Chosen]],
        vectors: matters.Vectors,
        searched: int | None,
        results: ContextResults,
    ) -> set[str]:
        """Return the ids of the relevant candidates, and note the others in the results."""
        kept: set[str] = set()
        for part in parts:
            some, other = matters.relevant(part, question, vectors, self._core.recall.calibration, searched)
            kept |= {candidate.memory.id for candidate in some}
            results.left_out += other
            results.irrelevant += len(other)
        return kept

    def _user(self, asked: ContextQuery) -> str | None:
        """Return the user whom a context is for."""
        named = (scope[5:] for scope in asked.scopes or () if scope.startswith("user:"))
        return (self._places(asked) or {}).get("user") or next(named, self.subject.user_id)

    def _standing(self, asked: ContextQuery, user: str | None) -> list[Chosen]:
        return standing(self._core, self.subject, asked, user) if limit_of(asked) else []

    def _widened(
        self, asked: ContextQuery, memories: Sequence[Chosen], ids: set[str], user: str | None
    ) -> list[Window]:
        if not asked.neighbours:
            return [Window([candidate], user=user) for candidate in memories]
        until = None if asked.as_of is None else micros(asked.as_of)
        reach = Reach(asked.neighbours, asked.neighbour_tokens, once(tokens.count), until, user, ids)

        def read(c: Connection) -> list[Window]:
            return widened(c, self.subject, memories, reach)

        return self._core.store.db.read(read, self.subject.tenant_id)


def relevant_hits(
    core: Core, subject: Subject, question: str, found: SearchResult, *, topic: bool = False
) -> list[Hit]:
    """Return the hits of a search (explained, best first) that are relevant to the question, as a context has them; see
    `relevance.relevant` for `topic`. Synchronous."""
    candidates = choosing.candidates(found.results)
    vectors = stored_vectors(core, subject.tenant_id, [candidate.memory.id for candidate in candidates])
    kept, _ = matters.relevant(
        candidates, question, vectors, core.recall.calibration, found.searched, topic=topic
    )
    return [candidate.hit for candidate in kept]


def _kinds(asked: ContextQuery, together: bool) -> tuple[list[str] | None, list[str]]:
    """Return the kinds of memories to search, and those of summaries; an empty list means none."""
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
    """Return how many memories to search for."""
    return min(1_000, limit_of(asked) * (POOL if asked.diversity else 1) + spare)


def _below(answers: _Answers) -> list[LeftOut]:
    """Return the memories below the threshold."""
    above = {hit.memory.id for hit in answers.memories}
    under = choosing.candidates(hit for hit in answers.unfloored if hit.memory.id not in above)
    return [choosing.left(candidate, "floor") for candidate in under]


async def with_questions(
    core: Core,
    subject: Subject,
    work: Callable[[Questions], Awaitable[T]],
    below: str = "",
    *,
    again: bool = True,
) -> T:
    """Run searches that share the embeddings of their questions, once more if the model was replaced meanwhile; `below`
    is what the model reads after each question."""
    questions = Questions(core.costs, core.embedder, subject.tenant_id, below=below)
    try:
        return await work(questions)
    except ModelChanged:
        if not again:
            raise
    finally:
        await questions.end()
    return await with_questions(core, subject, work, below, again=False)


async def concurrently(*work: Coroutine[Any, Any, Any] | None) -> list[Any]:
    """Run coroutines concurrently and return their results, None for None; if one fails, the others end before the
    error is raised."""
    tasks = [None if coroutine is None else asyncio.ensure_future(coroutine) for coroutine in work]
    under_way = [task for task in tasks if task is not None]
    try:
        await asyncio.gather(*under_way)
    finally:
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
    return [None if task is None else task.result() for task in tasks]
