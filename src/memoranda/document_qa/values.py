"""Values of questions to documents, as callers see them; over the wire their fields are in camel case."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict, get_args

import msgspec
from msgspec import Meta

from memoranda.knowledge.values import FileError, FileState
from memoranda.types import SOME_TEXT, Diversity, EvidenceLevel, Id, configured, says

MAX_NAMED = 100
"""The most documents that a question names."""
AskedText = Annotated[
    str,
    Meta(
        pattern=SOME_TEXT,
        extra=says("must hold some text, without NUL characters"),
        extra_json_schema=configured(maxLength="limits.max_query_chars"),
    ),
]
Few = Annotated[int, Meta(ge=0, le=50)]
MemoryScope = Literal["user", "session"]
By = Literal["model", "heuristic"]
Status = Literal["answered", "quoted", "fallback", "empty"]
"""How a question ended: by the model; with quotes, where there is no model; with quotes, as the model failed; with
no quote that is likely to answer."""
MemorySource = Literal["qa_turn", "summary", "manual"]
SOURCES: tuple[str, ...] = get_args(MemorySource)
KIND_OF: dict[str, str] = {"qa_turn": "qa_turn", "summary": "summary", "manual": "note"}
"""The kind of a memory by its source."""
IMPORTANCE: dict[str, int] = {"qa_turn": 0, "summary": 1, "manual": 2}
"""The default importance of a memory by its source: turns are pruned before notes."""


class Document(msgspec.Struct, kw_only=True, rename="camel"):
    """An uploaded document. Until it is `completed` (or `failed`, for the reason in `error`) no question finds it."""

    id: str
    title: str
    filename: str
    status: FileState
    error: FileError | None
    bytes: int
    chunk_count: int
    created_at: datetime


class AskRequest(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A question. What is left out is as configured.

    `session_id` goes on with a session of one's own, or begins it, if it is a UUID; without it another one begins.
    `top_k_docs` chunks and `top_k_mems` memories are looked up, 0 of either is none. History has at most
    `max_history_tokens`, and with `include_history` false there is none. Only `document_ids` are searched, when given.
    With `memory_scope` `session` memories of this session alone are looked up. `diversity` 0 to 1 trades relevance of
    chunks for variety (maximal marginal relevance); 0 is off."""

    question: AskedText
    session_id: Id | None = None
    top_k_docs: Few | None = None
    top_k_mems: Few | None = None
    max_history_tokens: Annotated[int, Meta(ge=0, le=32_000)] | None = None
    include_history: bool = True
    document_ids: Annotated[list[str], Meta(min_length=1, max_length=MAX_NAMED)] | None = None
    memory_scope: MemoryScope = "user"
    diversity: Diversity = 0.0


class AskFields(TypedDict, total=False):
    """The fields of `AskRequest` beside the question, as keywords."""

    session_id: str | None
    top_k_docs: int | None
    top_k_mems: int | None
    max_history_tokens: int | None
    include_history: bool
    document_ids: list[str] | None
    memory_scope: MemoryScope
    diversity: float


class SourceChunk(msgspec.Struct, kw_only=True, rename="camel"):
    """A chunk that the answer was made from. `citation` is what it is cited as, `cited` whether the answer does."""

    document_id: str
    filename: str
    chunk_index: int
    citation: str
    preview: str
    score: float
    page: int | None = None
    last_page: int | None = None
    heading: str | None = None
    cited: bool = False


class MemoryHit(msgspec.Struct, kw_only=True, rename="camel"):
    """A memory that goes with an answer. `score` is its similarity with the boosts, `similarity` without; `cited` says
    whether the answer names it, `in_history` that the prompt has its messages as history, not as a memory."""

    id: str
    source: str
    preview: str
    score: float
    similarity: float | None
    importance: int
    cited: bool = False
    in_history: bool = False


class DocumentAnswer(msgspec.Struct, kw_only=True, rename="camel"):
    """An answer and what it was made of.

    `id` names its row in the log. `used` lists what went before the model, or was quoted: `documents`, `memories`,
    `history`. `evidence` and `evidence_probability` say how likely the documents and memories answer, for quotes the
    documents alone. `degraded` lists what could not do its part: `documents` (some are still being read), `model`,
    `spending`, `embedding`, `index`, `words`. Tokens
    are those of the prompt's parts; `latency_ms` is from the request to the answer, `memory_search_ms` the part of it
    that looking up memories took (None: none were looked up)."""

    id: str
    session_id: str
    answer: str
    answered_by: By
    model: str
    status: Status
    evidence: EvidenceLevel
    evidence_probability: float
    degraded: list[str]
    sources: list[SourceChunk]
    memories: list[MemoryHit]
    used: list[str]
    used_document_tokens: int
    used_memory_tokens: int
    used_history_tokens: int
    latency_ms: int
    memory_search_ms: float | None
    created_at: datetime


class LogEntry(msgspec.Struct, kw_only=True, rename="camel"):
    """A row of the query log. Once its texts were forgotten they are empty, and `erased_at` says since when."""

    id: str
    session_id: str
    user_id: str | None
    question: str
    answer: str
    sources: list[dict[str, Any]]
    memories: list[dict[str, Any]]
    status: Status
    model: str
    latency_ms: int
    question_tokens: int
    answer_tokens: int
    document_tokens: int
    memory_tokens: int
    history_tokens: int
    created_at: datetime
    erased_at: datetime | None


class AskSession(msgspec.Struct, kw_only=True, rename="camel"):
    """A session in which documents were asked. `title` is how its first question begins."""

    id: str
    user_id: str | None
    title: str
    message_count: int
    created_at: datetime
    last_asked_at: datetime
