"""Search in stores: access, the chunks that count, and their passages. The ranking itself is in `recall`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from memoranda.clock import now_micros
from memoranda.errors import InvalidInput, NotFound
from memoranda.filters import Compare, Filter, all_of, parse
from memoranda.knowledge.access import stores_seen
from memoranda.knowledge.chunks import Part, joined, merged, neighbouring
from memoranda.knowledge.records import StoreRow, source_of
from memoranda.knowledge.values import Passage, PassageQuery, Passages
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.core import Core
from memoranda.store.ids import listed
from memoranda.store.retrieval.evidence import LOOKED_AT, Evidence, Result, evidence
from memoranda.store.retrieval.fusion import Target, mmr
from memoranda.store.retrieval.questions import Questions, embed_questions
from memoranda.store.retrieval.search import ModelChanged, RankedRows, check
from memoranda.store.rows import CHUNK, Record, searched_text
from memoranda.store.usage import SEARCH, Cost
from memoranda.text.questions import normalise, only_asks
from memoranda.text.splitting import columns_of
from memoranda.text.stored import compact_json
from memoranda.types import Query, Subject

MAX_STORES = 100
MAX_QUERIES = 32
MAX_NEIGHBOURS = 10
ACTIVE_WITHIN = 60_000_000
"""Microseconds in which the last use of a store is not updated again."""
POOL = 50
"""The number of best candidates that diversity reorders; the others follow."""


class Best(msgspec.Struct):
    """A chunk among the best: its score in the search that ranks it best, its place in that ranking, its similarity,
    and the probability that it is relevant (None where these are not known). `at` is the place of its row, None if that
    was not read."""

    score: float
    result: RankedRows
    place: int
    at: int | None
    similarity: float | None
    relevance: float | None

    @property
    def first(self) -> bool:
        """Return True if it is among the first hits of its search, not found by a deeper search."""
        return self.place < self.result.first

    @property
    def key(self) -> tuple[str, int]:
        """Tenant and seq."""
        return self.result.tenant, int(self.result.ranked.seqs[self.place])

    @property
    def row(self) -> Record:
        """The row of the chunk, which must have been read."""
        assert self.at is not None
        return self.result.rows[self.at]


class ChunkLocation(msgspec.Struct):
    """The place of a chunk in a file of a store."""

    attached: int
    index: int
    start: int
    end: int
    page: int | None
    last_page: int | None
    heading: str | None
    tokens: int
    store_id: str
    file_id: str
    attributes: str
    title: str | None
    filename: str


class Searching:
    """Searches in the stores that one subject sees."""

    def __init__(self, core: Core, subject: Subject) -> None:
        self._core = core
        self.subject = subject

    async def search(
        self, store_ids: Sequence[str], query: PassageQuery, questions: Questions | None = None
    ) -> Passages:
        """See `Stores.search`. Searches that belong together share `questions`."""
        began = time.perf_counter()
        asked = self._checked(store_ids, query)
        scopes = await self._core.threads.run(self._scopes, list(dict.fromkeys(store_ids)), query)
        await self._touch([row for rows, _ in scopes.values() for row in rows])
        try:
            results = await self._results(asked, query, scopes, questions)
        except ModelChanged:
            results = await self._results(asked, query, scopes, questions)
        queries = [question.query for question in asked]
        data, (level, probability) = await self._core.threads.run(self._answer, query, queries, results)
        return Passages(
            queries=queries,
            data=data,
            query_time=time.perf_counter() - began,
            evidence=level,
            evidence_probability=probability,
            degraded=sorted({side for result in results for side in result.degraded}),
        )

    def _checked(self, store_ids: Sequence[str], query: PassageQuery) -> list[Query]:
        """Return a validated query for each text."""
        if not 1 <= len(store_ids) <= MAX_STORES:
            raise InvalidInput("vector_store_ids", f"must name 1 to {MAX_STORES} vector stores")
        if not 1 <= len(query.queries) <= MAX_QUERIES:
            raise InvalidInput("query", f"must be 1 to {MAX_QUERIES} texts")
        if not 0.0 <= query.diversity <= 1.0:
            raise InvalidInput("diversity", "must be between 0 and 1; 0 is off")
        if not 0 <= query.neighbours <= MAX_NEIGHBOURS:
            raise InvalidInput("expand.neighbours", f"must be between 0 and {MAX_NEIGHBOURS} chunks")
        depth = max(query.limit, POOL if query.diversity else LOOKED_AT)
        asked = []
        for i, text in enumerate(query.queries):
            if isinstance(text, str) and len(text) > self._core.max_query_chars:
                where = "query" if len(query.queries) == 1 else f"query[{i}]"
                raise InvalidInput(where, f"is longer than {self._core.max_query_chars} characters")
            search_query = Query(
                query=text,
                limit=query.limit,
                threshold=query.threshold,
                mode=query.mode,
                weights=query.weights,
            )
            check(search_query)
            said = normalise(text) if query.rewrite else text
            asked.append(msgspec.structs.replace(search_query, query=said, limit=depth))
        return asked

    def _scopes(
        self, store_ids: Sequence[str], query: PassageQuery
    ) -> dict[str, tuple[list[StoreRow], Filter]]:
        """Return by tenant the stores to search and the filter of their chunks."""
        extra = None if query.filters is None else parse(query.filters)

        def read(c: Connection) -> dict[str, tuple[list[StoreRow], Filter]]:
            seen = stores_seen(c, self.subject, store_ids)
            by_tenant: dict[str, list[StoreRow]] = defaultdict(list)
            for id_ in store_ids:
                if id_ not in seen:
                    raise NotFound(f"no vector store {id_!r}")
                if seen[id_].lapsed(now_micros()):
                    raise InvalidInput("vector_store_id", f"the vector store {id_} has expired")
                by_tenant[seen[id_].tenant_id].append(seen[id_])
            return {tenant: (rows, _where(c, tenant, rows, extra)) for tenant, rows in by_tenant.items()}

        return self._core.store.db.read(read)

    async def _results(
        self,
        asked: Sequence[Query],
        query: PassageQuery,
        scopes: dict[str, tuple[list[StoreRow], Filter]],
        questions: Questions | None,
    ) -> list[RankedRows]:
        embedder = self._core.embedder
        embedded, degraded = None, list[str]()
        if query.mode == "keyword":
            self._core.costs.note(self.subject.tenant_id, SEARCH, Cost(operations=1))
        else:
            texts = [question.query for question in asked]
            tenant = self.subject.tenant_id
            embedded, degraded = await (
                embed_questions(self._core.costs, embedder, texts, tenant)
                if questions is None
                else questions.embedded(texts)
            )
        threads, recall = self._core.threads, self._core.recall

        def find() -> list[RankedRows]:
            return [
                recall.find(
                    tenant,
                    question,
                    None if embedded is None else embedded[i],
                    [Target(None, 1.0, where)],
                    query.threshold,
                )
                for tenant, (_, where) in scopes.items()
                for i, question in enumerate(asked)
            ]

        results = await threads.run(find)
        for result in results:
            result.candidates.degraded.update(degraded)
        return results

    async def _touch(self, rows: Sequence[StoreRow]) -> None:
        """Record the use of stores, once a minute."""
        now = now_micros()
        for row in rows:
            if row.last_active_at + ACTIVE_WITHIN < now:
                values = [now, row.tenant_id, row.id]
                noted = self._core.store.db.write(_run("touch_store", values), tenant=row.tenant_id)
                await self._core.threads.result(noted)

    # --- from rows to passages ---------------------------------------------------------------------

    def _answer(
        self, query: PassageQuery, queries: Sequence[str], results: Sequence[RankedRows]
    ) -> tuple[list[Passage], Evidence]:
        judged = [
            evidence(
                queries[number % len(queries)],
                [
                    Result(
                        _judged(row),
                        None,
                        result.similarity(at),
                        result.relevance(at),
                        written=True,
                    )
                    for at, row in enumerate(result.rows[:LOOKED_AT])
                ],
            )
            for number, result in enumerate(results)  # by tenant, then by query
        ]
        best = max(judged, key=lambda item: item.probability, default=Evidence("none", 0.0))
        return self._passages(query, results), best

    def _passages(self, query: PassageQuery, results: Sequence[RankedRows]) -> list[Passage]:
        read = [best for best in self._ranked(query, results) if best.at is not None][: query.limit]
        places = self._places(read)
        hits = [(best, places[best.key]) for best in read if best.key in places]
        parts = [self._part(query, best, place) for best, place in hits]
        return [
            self._passage(query, [hits[at] for at in group], merged([parts[at] for at in group]))
            for group in (neighbouring(parts) if query.merge else [[at] for at in range(len(parts))])
        ]

    def _ranked(self, query: PassageQuery, results: Sequence[RankedRows]) -> list[Best]:
        """Return the candidates of several searches, each with its best score; the first ones diversified if the query
        asks for it: then the hit at a place takes the score that was there, so that scores still fall."""
        best_by_key: dict[tuple[str, int], Best] = {}
        for result in results:
            rows = {place: at for at, place in enumerate(result.places)}
            similarities, chances = result.similarities(), result.chances()
            for place, score in enumerate(result.ranked.scores.tolist()):
                best = Best(score, result, place, rows.get(place), similarities[place], chances[place])
                if best.key not in best_by_key or best_by_key[best.key].score < score:
                    best_by_key[best.key] = best
        ranked = sorted(best_by_key.values(), key=lambda best: (not best.first, -best.score))
        if not query.diversity or len(ranked) <= 1:
            return ranked
        return [*self._varied(ranked[:POOL], query.diversity), *ranked[POOL:]]

    def _varied(self, ranked: list[Best], diversity: float) -> list[Best]:
        vectors = np.zeros((len(ranked), self._core.store.index.dim), np.float32)
        at = {best.key: i for i, best in enumerate(ranked)}
        for tenant in {best.result.tenant for best in ranked}:
            seqs = [best.key[1] for best in ranked if best.result.tenant == tenant]
            key = [tenant, self._core.store.space, compact_json(seqs)]
            rows = self._core.store.db.read(_all("part_vectors", key), tenant)
            for seq, blob in rows:
                vectors[at[tenant, seq]] = np.frombuffer(blob, dtype="<f4")
        scores = [best.score for best in ranked]
        order = mmr(np.array(scores), vectors, len(ranked), diversity)
        return [
            msgspec.structs.replace(ranked[i], score=score) for i, score in zip(order, scores, strict=True)
        ]

    def _places(self, chunks: Sequence[Best]) -> dict[tuple[str, int], ChunkLocation]:
        places: dict[tuple[str, int], ChunkLocation] = {}
        for tenant in {chunk.result.tenant for chunk in chunks}:
            seqs = compact_json([chunk.key[1] for chunk in chunks if chunk.result.tenant == tenant])
            rows = self._core.store.db.read(_all("places_of_chunks", [tenant, seqs]), tenant, late=True)
            places |= {(tenant, row[0]): ChunkLocation(*row[1:]) for row in rows}
        return places

    def _passage(
        self, query: PassageQuery, hits: Sequence[tuple[Best, ChunkLocation]], part: Part
    ) -> Passage:
        """Return the passage of neighbouring hits, best first, whose text is `part`."""
        best, place = hits[0]
        at = best.at
        assert at is not None
        known = [hit.similarity for hit, _ in hits if hit.similarity is not None]
        return Passage(
            vector_store_id=place.store_id,
            file_id=place.file_id,
            filename=place.filename,
            attributes=msgspec.json.decode(place.attributes),
            score=round(best.score, 6),
            similarity=max(known, default=None),
            text=part.text,
            chunk_id=best.row.id,
            chunk_ids=[hit.row.id for hit, _ in hits],
            chunk_index=place.index,
            start=part.start,
            end=part.end,
            page=part.page,
            last_page=part.last_page,
            heading=place.heading if len(hits) == 1 else part.heading,
            title=place.title,
            columns=columns_of(part.header),
            explanation=best.result.explain(at) if query.explain else None,
            relevance=best.relevance,
        )

    def _part(self, query: PassageQuery, best: Best, place: ChunkLocation) -> Part:
        """Return the text of a chunk, with its neighbours or the rest of its section where the query asks for them."""
        rows: Sequence[Row] = ()
        if query.neighbours or query.section:
            rows = self._widened(query, best, place)
        file = (best.result.tenant, place.attached)
        if not rows:
            return Part(
                file=file,
                first=place.index,
                last=place.index,
                tokens=place.tokens,
                text=best.row.content,
                start=place.start,
                end=place.end,
                page=place.page,
                last_page=place.last_page,
                heading=place.heading,
                header=best.row.header,
            )
        return Part(
            file=file,
            first=rows[0][0],
            last=rows[-1][0],
            tokens=sum(row[4] for row in rows),
            text=joined((row[1], row[5]) for row in rows),
            start=rows[0][1],
            end=rows[-1][2],
            page=rows[0][6],
            last_page=rows[-1][7],
            heading=rows[0][3],
            header=rows[0][8],
        )

    def _widened(self, query: PassageQuery, best: Best, place: ChunkLocation) -> list[Row]:
        """Return the chunk with its neighbours, or with the rest of its section, as rows in their order; none if it is
        gone."""
        reach = query.neighbours
        if query.section:
            reach = max(reach, min(200, query.section_tokens // 20))
        key = [best.result.tenant, place.attached, place.index - reach, place.index + reach]
        rows = self._core.store.db.read(lambda c: c.all("chunks_between", key), best.result.tenant, late=True)
        near = [row for row in rows if abs(row[0] - place.index) <= query.neighbours]
        if query.section:
            near = sorted({*near, *_section(rows, place, query.section_tokens)})
        return near


def _all(name: str, params: Sequence[object]) -> Callable[[Connection], list[Row]]:
    return lambda c: c.all(name, params)


def _run(name: str, params: Sequence[object]) -> Callable[[Connection], int]:
    return lambda c: c.run(name, params)


def _judged(row: Record) -> str:
    """Return the text of a chunk as evidence: as it was searched, with the name of its file. The name of a file of mere
    questions answers none."""
    return row.content if only_asks(row.content) else searched_text(row)


def _section(rows: Sequence[Row], place: ChunkLocation, tokens: int) -> list[Row]:
    """Return the chunks around one that are under the same heading, nearest first, within a budget of tokens."""
    by_index = {row[0]: row for row in rows}
    taken = [by_index[place.index]] if place.index in by_index else []
    left = tokens - sum(row[4] for row in taken)
    ends = {1: True, -1: True}
    for reach in range(1, len(rows) + 1):
        for side in (-1, 1):
            row = by_index.get(place.index + side * reach)
            ends[side] = ends[side] and row is not None and row[3] == place.heading and row[4] <= left
            if ends[side] and row is not None:
                left -= row[4]
                taken.append(row)
        if not any(ends.values()):
            break
    return taken


def _where(c: Connection, tenant: str, rows: Sequence[StoreRow], extra: Filter | None) -> Filter:
    """Return a filter for the chunks of these stores: those of files that are complete and not being removed."""
    ids = [row.id for row in rows]
    hidden = tuple(source_of(store, seq) for store, seq in c.all("hidden_in", [tenant, listed(ids)]))
    return all_of(
        Compare("$channel_id", "eq", ids[0]) if len(ids) == 1 else Compare("$channel_id", "in", tuple(ids)),
        Compare("$kind", "eq", CHUNK),
        Compare("$source", "nin", hidden) if hidden else None,
        extra,
    )
