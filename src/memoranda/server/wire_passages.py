"""What a search in `/v1/vector_stores` takes and answers: OpenAI's shapes, and what we add to them."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from memoranda.knowledge.values import MAX_RESULTS
from memoranda.server.wire_knowledge import TextContent
from memoranda.types import (
    EvidenceLevel,
    Explanation,
    Name,
    PlainFilters,
    Question,
    SearchMode,
    Share,
    configured,
)
from memoranda.validation.constraints import Constraint, OneAbove

OneQuestion = Annotated[
    str, Meta(extra_json_schema={"pattern": r"\S", **configured(maxLength="limits.max_query_chars")})
]
"""A question where a list of them may stand, too."""
Results = Annotated[int, Meta(ge=1, le=MAX_RESULTS)]
Weight = Annotated[float, Meta(ge=0, le=100)]


class HybridWeights(msgspec.Struct, kw_only=True):
    """How much meaning counts, and how much words; one of them more than 0."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        OneAbove(("embedding_weight", "text_weight"), "or `text_weight` must be more than 0"),
    )
    embedding_weight: Weight
    text_weight: Weight


class RankingOptions(msgspec.Struct, kw_only=True):
    """A floor on the similarity, 0 for none, and the weights of both sides. All rankers are one here."""

    ranker: Literal["none", "auto", "default-2024-11-15", "default_2024_08_21"] | None = None
    score_threshold: Share | None = None
    hybrid_search: HybridWeights | None = None


class Expand(msgspec.Struct, kw_only=True):
    """Widens each passage by so many chunks on either side, or to the whole of its section."""

    neighbours: Annotated[int, Meta(ge=0, le=10)] = 0
    section: bool = False


class PassagesBody(msgspec.Struct, kw_only=True):
    """A search. `filter` and `max_results` are other names of `filters` and `max_num_results`."""

    query: OneQuestion | Annotated[list[Question], Meta(min_length=1, max_length=32)]
    filters: PlainFilters | None = None
    filter: PlainFilters | None = None
    max_num_results: Results | None = None
    max_results: Results | None = None
    ranking_options: RankingOptions | None = None
    hybrid_search: HybridWeights | None = None
    rewrite_query: bool | None = None
    diversity: Share = 0.0
    expand: Expand | None = None
    mode: SearchMode = "hybrid"
    merge: bool = True
    explain: bool = False


class StoresPassagesBody(PassagesBody, kw_only=True):
    """A search in several stores, answered as one."""

    vector_store_ids: Annotated[list[Name], Meta(min_length=1, max_length=100)]


class PassagesQuery(msgspec.Struct, kw_only=True):
    """`flat` is a list whose `content` is a string."""

    format: Literal["openai", "flat"] = "openai"


class PassagePlace(msgspec.Struct, kw_only=True):
    """A passage: its score, and where it is. `chunk_ids` are its chunks, the best first, which is `chunk_id` and
    `chunk_index`. `start` and `end` are characters of the file's text, `page` and
    `last_page` the pages that they are on; `columns` is the row that names the columns of the table in which it
    begins."""

    file_id: str
    filename: str
    score: float
    similarity: float | None
    attributes: dict[str, str | float | bool | None]
    vector_store_id: str
    chunk_id: str
    chunk_ids: list[str]
    chunk_index: int
    start: int
    end: int
    page: int | None
    last_page: int | None
    heading: str | None
    title: str | None
    columns: str | None
    explanation: Explanation | UnsetType = UNSET


class PassageHit(PassagePlace, kw_only=True):
    """A passage that was found, as OpenAI writes it."""

    content: list[TextContent]


class FlatHit(PassagePlace, kw_only=True):
    """A passage that was found, its text as a string."""

    content: str


class PassagePage(msgspec.Struct, kw_only=True, tag_field="object", tag="vector_store.search_results.page"):
    """Passages, best first. `evidence` says whether they answer, see `SearchAnswer`; `degraded` names the sides that
    could not answer in full."""

    search_query: list[str]
    data: list[PassageHit]
    has_more: bool = False
    next_page: str | None = None
    evidence: EvidenceLevel
    evidence_probability: float
    degraded: list[str]


class FlatPage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """The same passages, as a flat list."""

    data: list[FlatHit]
    has_more: bool = False
    evidence: EvidenceLevel
    evidence_probability: float
    degraded: list[str]
