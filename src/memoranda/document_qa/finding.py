"""Retrieval for a question: chunks of the user's documents and memories, searched with one embedding."""

from __future__ import annotations

import time

import msgspec
import numpy as np

from memoranda.clock import now_micros
from memoranda.contexts.finding import concurrently, with_questions
from memoranda.document_qa.documents import MARK
from memoranda.document_qa.values import KIND_OF, SOURCES, AskRequest
from memoranda.filters import Compare, Filter, all_of
from memoranda.knowledge.search import Searching
from memoranda.knowledge.values import Passage, PassageQuery
from memoranda.memories.duplicates import jaccard
from memoranda.store.access import selection_filter
from memoranda.store.core import Core
from memoranda.store.retrieval.fusion import Target, boosted
from memoranda.store.retrieval.questions import Questions
from memoranda.store.retrieval.search import RankedRows, hit
from memoranda.types import Hit, Query, Selection, Subject

POOL = 4
"""Candidates as a multiple of the wanted memories: boosts and overlaps change the order."""
OVERLAP = 0.8
"""The Jaccard index of terms above which a memory repeats a chunk."""
DAY = 86_400_000_000


class Results(msgspec.Struct):
    """The results for a question. `memory_ms` is the duration of the search for memories, None without one."""

    passages: list[Passage] = msgspec.field(default_factory=list)
    memories: list[Hit] = msgspec.field(default_factory=list)
    degraded: set[str] = msgspec.field(default_factory=set)
    memory_ms: float | None = None


async def find(
    core: Core, subject: Subject, query: str, asked: AskRequest, store_id: str | None, session_id: str
) -> Results:
    """Return the chunks (none without a store) and the memories nearest to a query, which is embedded once for both:
    `asked.top_k_docs` and `asked.top_k_mems`. Memories that repeat a chunk are left out."""

    stores = [] if store_id is None or not asked.top_k_docs else [store_id]
    named = asked.document_ids
    wanted = PassageQuery(
        queries=[query],
        limit=asked.top_k_docs or 0,
        filters=None if named is None else {"type": "in", "key": MARK, "value": named},
        threshold=0.0,
        diversity=asked.diversity,
        merge=False,  # a citation names one chunk
    )

    async def search(questions: Questions) -> Results:
        passages, remembered = await concurrently(
            Searching(core, subject).search(stores, wanted, questions) if stores else None,
            _memories(core, subject, query, asked, session_id, questions) if asked.top_k_mems else None,
        )
        found: Results = remembered or Results()
        if passages is not None:
            found.passages = passages.data
            found.degraded.update(passages.degraded)
        return found

    found = await with_questions(core, subject, search)
    texts = [passage.text for passage in found.passages]
    found.memories = [
        each
        for each in found.memories
        if all(jaccard(each.memory.content, text) <= OVERLAP for text in texts)
    ][: asked.top_k_mems]
    return found


async def _memories(
    core: Core, subject: Subject, query: str, asked: AskRequest, session_id: str, questions: Questions
) -> Results:
    began, most = time.perf_counter(), asked.top_k_mems or 0
    embedded, degraded = await questions.embedded([query])
    where = memories_of(subject, session_id if asked.memory_scope == "session" else None)
    results = await core.threads.run(
        core.recall.find,
        subject.tenant_id,
        Query(query=query, limit=POOL * most),
        None if embedded is None else embedded[0],
        [Target(None, 1.0, where)],
        core.config.upload_ask.memory_min_score,
    )
    memories = await core.threads.run(_ranked, core, results)
    core.tally["ask_memory_searches"] += 1
    core.tally["ask_memory_hits"] += min(most, len(results.rows))
    took = (time.perf_counter() - began) * 1_000
    return Results(memories=memories, degraded={*degraded, *results.degraded}, memory_ms=took)


def memories_of(subject: Subject, session_id: str | None) -> Filter:
    """Return a filter for the memories of questions that are valid now: the user's own, of one session or of all."""
    return all_of(
        selection_filter(Selection(), subject, now_micros()),
        Compare("$user_id", "eq", subject.user_id),
        Compare("$source", "in", SOURCES),
        Compare("$kind", "in", tuple(KIND_OF.values())),
        None if session_id is None else Compare("$session_id", "eq", session_id),
    )


def _ranked(core: Core, found: RankedRows) -> list[Hit]:
    """Rank memories by similarity, boosted by importance and recency. A memory of unknown similarity counts as the
    least similar; if all are unknown, the fused score decides."""
    now = now_micros()
    hits = [hit(core.store, found, at, None, explain=False) for at in range(len(found.rows))]
    known = [each.similarity for each in hits if each.similarity is not None]
    base = [min(known, default=each.score) if each.similarity is None else each.similarity for each in hits]
    importance = np.array([row.importance for row in found.rows], np.float64)
    ages = np.array([(now - row.occurred_at) / DAY for row in found.rows])
    scores = np.array(base) * boosted(importance, ages)
    return [
        msgspec.structs.replace(hits[at], score=round(float(scores[at]), 6))
        for at in np.argsort(-scores, kind="stable")
    ]
