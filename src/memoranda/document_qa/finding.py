"""Retrieval for a question: chunks of the user's documents and memories, searched with one embedding."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

import msgspec
import numpy as np

from memoranda.clock import now_micros
from memoranda.document_qa.documents import MARK
from memoranda.document_qa.prompting import Remembered, preview
from memoranda.document_qa.values import KIND_OF, SOURCES, MemoryHit
from memoranda.filters import Compare, Filter, all_of
from memoranda.knowledge.search import Searching
from memoranda.knowledge.values import Passage, PassageQuery
from memoranda.memories.duplicates import jaccard
from memoranda.store.access import selection_filter
from memoranda.store.core import Core
from memoranda.store.retrieval.candidates import Target
from memoranda.store.retrieval.fusion import boosted
from memoranda.store.retrieval.hits import Found
from memoranda.store.retrieval.questions import Questions
from memoranda.store.retrieval.search import ModelChanged
from memoranda.store.rows import Record, refs_of
from memoranda.types import Query, Selection, Subject

POOL = 4
"""Candidates as a multiple of the wanted memories: boosts and overlaps change the order."""
OVERLAP = 0.8
"""The Jaccard index of terms above which a memory repeats a chunk."""
DAY = 86_400_000_000


class Results(msgspec.Struct):
    """The results for a question. `memory_ms` is the duration of the search for memories, None without one."""

    passages: list[Passage] = msgspec.field(default_factory=list)
    memories: list[Remembered] = msgspec.field(default_factory=list)
    degraded: set[str] = msgspec.field(default_factory=set)
    memory_ms: float | None = None


class Wanted(msgspec.Struct, frozen=True):
    """What to search: `store_id` (None: there are no documents), how many of each, and where. `diversity` 0 to 1 trades
    relevance of chunks for variety."""

    store_id: str | None
    documents: int
    document_ids: Sequence[str] | None
    memories: int
    session_id: str | None
    min_score: float
    diversity: float = 0.0


async def find(core: Core, subject: Subject, query: str, wanted: Wanted) -> Results:
    """Return the chunks and memories nearest to a query, which is embedded once for both. Memories that repeat a chunk
    are left out."""
    try:
        found = await _search(core, subject, query, wanted)
    except ModelChanged:
        found = await _search(core, subject, query, wanted)
    texts = [passage.text for passage in found.passages]
    distinct = [
        memory for memory in found.memories if all(jaccard(memory.content, text) <= OVERLAP for text in texts)
    ]
    found.memories = distinct[: wanted.memories]
    return found


async def _search(core: Core, subject: Subject, query: str, wanted: Wanted) -> Results:
    questions = Questions(core.ledger, core.embedder, subject.tenant_id)
    found = Results()
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_documents(core, subject, query, wanted, questions, found))
            both.create_task(_memories(core, subject, query, wanted, questions, found))
    except* Exception as several:
        raise several.exceptions[0] from several
    finally:
        await questions.end()
    return found


async def _documents(
    core: Core, subject: Subject, query: str, wanted: Wanted, questions: Questions, into: Results
) -> None:
    if wanted.store_id is None or not wanted.documents:
        return
    filters = None
    if wanted.document_ids is not None:
        filters = {"type": "in", "key": MARK, "value": list(wanted.document_ids)}
    asked = PassageQuery(
        queries=[query],
        limit=wanted.documents,
        filters=filters,
        threshold=0.0,
        diversity=wanted.diversity,
        merge=False,  # a citation names one chunk
    )
    passages = await Searching(core, subject).search([wanted.store_id], asked, questions)
    into.passages = passages.data
    into.degraded.update(passages.degraded)


async def _memories(
    core: Core, subject: Subject, query: str, wanted: Wanted, questions: Questions, into: Results
) -> None:
    if not wanted.memories:
        return
    began = time.perf_counter()
    embedded, degraded = await questions.embedded([query])
    asked = Query(query=query, limit=POOL * wanted.memories)
    targets = [Target(None, 1.0, memories_of(subject, wanted.session_id))]
    embedding = None if embedded is None else embedded[0]
    results = await core.threads.run(
        core.recall.find, subject.tenant_id, asked, embedding, targets, wanted.min_score
    )
    into.memories = _ranked(core, results)
    into.degraded.update(degraded, results.degraded)
    into.memory_ms = (time.perf_counter() - began) * 1_000
    core.tally["ask_memory_searches"] += 1
    core.tally["ask_memory_hits"] += min(wanted.memories, len(results.rows))


def memories_of(subject: Subject, session_id: str | None) -> Filter:
    """Return a filter for the memories of questions that are valid now: the user's own, of one session or of all."""
    return all_of(
        selection_filter(Selection(), subject, now_micros()),
        Compare("$user_id", "eq", subject.user_id),
        Compare("$source", "in", SOURCES),
        Compare("$kind", "in", tuple(KIND_OF.values())),
        None if session_id is None else Compare("$session_id", "eq", session_id),
    )


def _ranked(core: Core, results: Found) -> list[Remembered]:
    """Rank memories by similarity, boosted by importance and recency. A memory of unknown similarity counts as the
    least similar; if all are unknown, the fused score decides."""
    if not results.rows:
        return []
    now = now_micros()
    similar = [results.similarity(at) for at in range(len(results.rows))]
    known = [similarity for similarity in similar if similarity is not None]
    fused = [min(known, default=float(results.ranked.scores[place])) for place in results.places]
    base = np.array(
        [
            similarity if similarity is not None else other
            for similarity, other in zip(similar, fused, strict=True)
        ]
    )
    importance = np.array([row.importance for row in results.rows], np.float64)
    ages = np.array([(now - row.occurred_at) / DAY for row in results.rows])
    scores = base * boosted(importance, ages)
    return [
        _remembered(results.rows[at], float(scores[at]), similar[at], results.relevance(at))
        for at in np.argsort(-scores, kind="stable")
    ]


def _remembered(row: Record, score: float, similarity: float | None, relevance: float | None) -> Remembered:
    hit = MemoryHit(
        id=row.id,
        source=row.source or "",
        preview=preview(row.content),
        score=round(score, 6),
        similarity=similarity,
        importance=row.importance,
    )
    return Remembered(hit, row.content, refs_of(row), relevance)
