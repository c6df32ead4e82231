"""A search of memories: embeds the question and the rows that still lack a vector, then searches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from memoranda.clock import moment, now_micros
from memoranda.errors import InvalidInput
from memoranda.providers.embeddings.base import Embedder, QueryEmbedding
from memoranda.store.core import Core
from memoranda.store.retrieval.candidates import NONE_WAITING, Fresh, Waiting
from memoranda.store.retrieval.query_expansion import Aid, channel_of, headed, helped
from memoranda.store.retrieval.questions import Questions, embed_questions
from memoranda.store.retrieval.search import ModelChanged, check
from memoranda.store.usage import SEARCH, Cost
from memoranda.store.validation import check_vector
from memoranda.types import Query, SearchResult, Subject


async def search(
    core: Core, subject: Subject, asked: Query, questions: Questions | None = None
) -> SearchResult:
    """Return the best memories for a query. Where the configuration says so, a model helps with a weak result. Searches
    that belong together share `questions`.

    Raises:
        InvalidInput: names the field of the query and the fix.
        Forbidden: scope `all` without the admin role.
    """
    check(asked)
    if len(asked.query) > core.max_query_chars:
        raise InvalidInput("query", f"is longer than {core.max_query_chars} characters")
    question = _Search(core, subject, questions)
    try:
        result = await question.run(asked)
    except ModelChanged:
        result = await question.run(asked)
    below = "" if questions is None else questions.below
    aid = Aid(core.model, core.embedder, core.costs, subject.tenant_id, core.config.search, below)
    return await helped(asked, result, aid, question.run)


class _Search:
    """Searches as one subject."""

    def __init__(self, core: Core, subject: Subject, questions: Questions | None) -> None:
        self._core = core
        self._subject = subject
        self._questions = questions

    async def run(self, asked: Query) -> SearchResult:
        core, embedder = self._core, self._core.embedder
        (embedding, degraded), waiting = await asyncio.gather(
            self._embedded(asked, embedder), self._waiting(asked)
        )
        fresh = None if embedding is None else await self._fresh(waiting)
        ready = core.recall.ready(self._subject.tenant_id, asked.limit)
        search = core.recall.search
        result = await core.threads.soon(ready, search, self._subject, asked, embedding, fresh)
        result.degraded += degraded
        return result

    async def _waiting(self, asked: Query) -> Waiting:
        """Return the rows relevant to a vector search that are not embedded yet."""
        recall = self._core.recall
        if asked.mode == "keyword" or not recall.pending.possible(self._subject.tenant_id):
            return NONE_WAITING
        return await self._core.threads.run(recall.unembedded, self._subject, asked)

    async def _fresh(self, waiting: Waiting) -> Fresh:
        """Return vectors for rows that are not embedded yet."""
        rows, ingest = waiting.rows, self._core.ingest
        vectors = await ingest.embed_first(self._subject.tenant_id, rows, SEARCH) if rows else {}
        return Fresh(vectors, complete=waiting.complete and len(vectors) == len(rows))

    async def _embedded(
        self, asked: Query, embedder: Embedder
    ) -> tuple[QueryEmbedding | None, Sequence[str]]:
        """Return the embedding of the query and the degraded parts; None if none is needed or it cannot be made; see
        `embed_questions`."""
        costs, tenant = self._core.costs, self._subject.tenant_id
        if asked.mode != "keyword" and asked.embedding is None:
            enriched = self._core.config.search.enrich if asked.enrich is None else asked.enrich
            text = asked.query
            if enriched:
                text = headed(text, asked.as_of or moment(now_micros()), channel_of(asked))
            shared = self._questions
            embedded, degraded = await (
                embed_questions(costs, embedder, [text], tenant)
                if shared is None
                else shared.embedded([text])
            )
            return (None if embedded is None else embedded[0]), degraded
        costs.note(tenant, SEARCH, Cost(operations=1))
        if asked.mode == "keyword":
            return None, ()
        return QueryEmbedding(check_vector(asked.embedding, embedder.dim, "embedding")), ()
