"""`file_search`: the passages of the vector stores that a request names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from memoranda import filters
from memoranda.clock import now_micros
from memoranda.config.agent_sections import Responses as Settings
from memoranda.contexts.assembly import Count, cut
from memoranda.errors import InvalidInput, NotFound
from memoranda.knowledge import Knowledge
from memoranda.knowledge.access import stores_seen
from memoranda.knowledge.passages import distinct, search_limit, source
from memoranda.knowledge.search import MAX_STORES
from memoranda.knowledge.values import Passage, PassageQuery
from memoranda.providers.chat.base import Source
from memoranda.responses.tools.base import Result, Tool, Turn
from memoranda.responses.values import Item
from memoranda.storage.sql.base import Connection
from memoranda.store.ids import new_id
from memoranda.store.retrieval.evidence import Evidence
from memoranda.text import prompts
from memoranda.text.prompts import quoted
from memoranda.validation import convert

MAX_QUERIES = 8
PROBABLE = 0.5
"""The probability of being relevant from which on the model reads a passage, however little similar it is."""
NEAREST = 3
"""The first passages, which are returned where none reaches the configured floor."""
WIDEST = 999
"""A number as long as any that a passage gets, by which its tokens are counted before it has one."""

PARAMETERS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for."},
        "queries": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Other wordings, searched together with the query.",
        },
    },
    "required": ["query"],
    "additionalProperties": False,
}


class HybridSearch(msgspec.Struct, kw_only=True, frozen=True):
    """How much meaning counts, and how much words."""

    embedding_weight: Annotated[float, Meta(ge=0)] = 1.0
    text_weight: Annotated[float, Meta(ge=0)] = 1.0


class Ranking(msgspec.Struct, kw_only=True, frozen=True):
    """`score_threshold` is a floor on the similarity: 0 is none, None the configured one. All rankers are one here."""

    ranker: str | None = None
    score_threshold: Annotated[float, Meta(ge=0, le=1)] | None = None
    hybrid_search: HybridSearch | None = None


class Declared(msgspec.Struct, kw_only=True, frozen=True):
    """The tool as a request declares it."""

    type: Literal["file_search"]
    vector_store_ids: Annotated[list[str], Meta(min_length=1, max_length=MAX_STORES)]
    max_num_results: Annotated[int, Meta(ge=1, le=50)] | None = None
    filters: dict[str, Any] | None = None
    ranking_options: Ranking | None = None


class FileSearch(Tool):
    """Searches the stores that it was made for, and no other."""

    name = "file_search"
    family = "file_search_call"
    description = (
        "Searches the user's files and returns the passages that fit best, with numbers to cite them by. "
        "Ask in full sentences or with the words that the answer would hold; search again with other words when "
        "the passages do not answer."
    )
    parameters = PARAMETERS

    def __init__(
        self,
        store_ids: Sequence[str],
        max_results: int,
        filters: dict[str, Any] | None = None,
        ranking: Ranking | None = None,
    ) -> None:
        self.store_ids = list(dict.fromkeys(store_ids))
        self._limit = max_results
        self._filters = filters
        self._ranking = ranking or Ranking()

    @classmethod
    def declared(cls, raw: dict[str, Any], settings: Settings, where: str) -> FileSearch:
        """The tool of a declaration.

        Raises:
            InvalidInput: names the field, below `where`, and the fix.
        """
        asked = convert(raw, Declared, where)
        if asked.filters is not None:
            filters.parse(asked.filters, f"{where}.filters")
        weights = None if asked.ranking_options is None else asked.ranking_options.hybrid_search
        if weights is not None and not weights.embedding_weight + weights.text_weight > 0:
            at = f"{where}.ranking_options.hybrid_search"
            raise InvalidInput(at, "one of the two weights must be more than 0")
        limit = asked.max_num_results or settings.file_results
        return cls(asked.vector_store_ids, limit, asked.filters, asked.ranking_options)

    async def check(self, turn: Turn) -> None:
        """Refuses stores that the subject cannot see, or that have expired."""

        def read(c: Connection) -> None:
            seen = stores_seen(c, turn.subject, self.store_ids)
            for id_ in self.store_ids:
                if id_ not in seen:
                    raise NotFound(f"no vector store {id_!r}")
                if seen[id_].lapsed(now_micros()):
                    raise InvalidInput("vector_store_ids", f"the vector store {id_} has expired")

        await turn.core.threads.run(turn.core.store.db.read, read)

    def begun(self, arguments: str) -> Item:
        """The item of a search that begins."""
        return {
            "id": new_id("fs_"),
            "type": self.family,
            "status": "in_progress",
            "queries": [],
            "results": None,
        }

    async def run(self, item: Item, arguments: dict[str, Any], turn: Turn) -> Result:
        """Searches; the passages that fit into the budget become the sources."""
        weights = self._ranking.hybrid_search
        floor = self._ranking.score_threshold
        queries = _queries(arguments)
        query = PassageQuery(
            queries=queries,
            limit=search_limit(self._limit if floor is not None else 2 * self._limit, self.store_ids),
            filters=self._filters,
            threshold=floor or 0.0,
            weights=None
            if weights is None
            else {"dense": weights.embedding_weight, "words": weights.text_weight},
        )
        stores = Knowledge(turn.core, turn.subject).stores
        answer = await stores.search(self.store_ids, query)
        found, doubtful = distinct(answer.data), answer.evidence == "none"
        if floor is None:
            least = turn.settings.file_min_score
            below = all(_similarity(passage) < least for passage in found)
            found = _likely(found, least, NEAREST if below else 0)
            doubtful = doubtful or below
        # Counting some thousand tokens takes milliseconds, which the loop has no time for.
        passages = await turn.core.threads.run(
            fitting, found[: self._limit], turn.settings.file_tokens, turn.count
        )
        turn.reading.note([p.file_id for p in passages], [f"{p.filename}\n{p.text}" for p in passages])
        results = [_result(passage) for passage in passages]
        done = {**item, "status": "completed", "queries": queries, "_results": results}
        if not passages:
            nothing = Evidence("none", 0.0)
            return Result(done, prompts.no_passages(), degraded=answer.degraded, evidence=nothing)
        return Result(
            done,
            sources=[source(passage) for passage in passages],
            render=lambda numbered: _message(numbered, passages, doubtful),
            degraded=answer.degraded,
            evidence=Evidence(answer.evidence, answer.evidence_probability),
        )

    def failed(self, item: Item, reason: str) -> Result:
        """The result of a search that failed."""
        return Result({**item, "status": "failed", "_results": []}, prompts.failed(reason))


def _similarity(passage: Passage) -> float:
    """Return the similarity of a passage, 1 where only words answered."""
    return 1.0 if passage.similarity is None else passage.similarity


def _likely(passages: Sequence[Passage], floor: float, first: int) -> list[Passage]:
    """Return the passages that are similar enough to the queries, or probably relevant, and the `first` ones."""
    return [
        passage
        for at, passage in enumerate(passages)
        if at < first or _similarity(passage) >= floor or (passage.relevance or 0.0) >= PROBABLE
    ]


def fitting(passages: Sequence[Passage], tokens: int, count: Count) -> list[Passage]:
    """The passages, best first, that are at most so many tokens as the model reads them, how to cite included. When the
    first one alone is too long, it is cut where a character ends."""
    fit: list[Passage] = []
    left = tokens - count(f"{prompts.CITING}\n\n\n\n{prompts.UNANSWERED}")
    for passage in passages:
        cost = count(_block(WIDEST, passage))
        if cost <= left:
            fit.append(passage)
            left -= cost
    if fit or not passages:
        return fit
    first = passages[0]
    text = cut(first.text, left, lambda some: count(_block(WIDEST, replace(first, text=some))))
    return [replace(first, text=text)] if text.strip() else []


def _message(sources: Sequence[Source], passages: Sequence[Passage], doubtful: bool) -> str:
    blocks = [_block(source.number, passage) for source, passage in zip(sources, passages, strict=True)]
    return prompts.passages(blocks, doubtful=doubtful)


def _block(number: int, passage: Passage) -> str:
    return prompts.passage(
        number,
        quoted(passage.filename),
        quoted(passage.readable),
        prompts.on_pages(passage.page, passage.last_page),
        passage.heading and quoted(passage.heading),
        file_id=passage.file_id,
        score=passage.score,
    )


def _queries(arguments: dict[str, Any]) -> list[str]:
    """The queries of the model, from either of the two fields."""
    given = [arguments.get("query"), *_listed(arguments.get("queries"))]
    texts = [text.strip() for text in given if isinstance(text, str)]
    queries = [text for text in dict.fromkeys(texts) if text]
    if not queries:
        raise InvalidInput("query", "is missing; say what to look for, as a string")
    return queries[:MAX_QUERIES]


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _result(passage: Passage) -> dict[str, Any]:
    return {
        "file_id": passage.file_id,
        "filename": passage.filename,
        "score": passage.score,
        "text": passage.text,
        "attributes": passage.attributes,
        "page": passage.page,
        "last_page": passage.last_page,
        "heading": passage.heading,
    }
