"""What `/api/v1/upload-ask` takes and answers, beside the values of `memoranda.document_qa`; names are in camel
case."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from memoranda.document_qa.values import MAX_NAMED, AskSession, Document, LogEntry, MemoryScope
from memoranda.types import SOME_TEXT, Content, Diversity, Id, Importance, Rate, configured, says, some_text
from memoranda.validation.constraints import Constraint, NotBoth, OneOf

Asked = Annotated[
    str,
    Meta(
        pattern=SOME_TEXT,
        extra=says("must hold some text, without NUL characters"),
        extra_json_schema=configured(maxLength="limits.max_query_chars"),
    ),
]
Heading = Annotated[str, some_text(500)]
Found = Annotated[int, Meta(ge=0, le=50)]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
DocumentsLimit = Annotated[int, Meta(ge=1, le=100)]
Order = Literal["asc", "desc"]

# --- bodies and query strings ----------------------------------------------------------------------


class AskBody(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A question, as `question` or as `query`. `topK` is another name for `topKDocs`; `userId` is whom a service or an
    admin asks for."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        OneOf(("question", "query"), "is required"),
        NotBoth("query", "question", "is another name for question; send one of the two"),
        NotBoth("top_k", "top_k_docs", "is another name for topKDocs; send one of the two"),
    )
    question: Asked | None = None
    query: Asked | None = None
    session_id: Id | None = None
    top_k_docs: Found | None = None
    top_k: Found | None = None
    top_k_mems: Found | None = None
    max_history_tokens: Annotated[int, Meta(ge=0, le=32_000)] | None = None
    include_history: bool = True
    document_ids: Annotated[list[str], Meta(min_length=1, max_length=MAX_NAMED)] | None = None
    memory_scope: MemoryScope = "user"
    diversity: Diversity = 0.0
    user_id: Id | None = None


class DocumentBody(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A text as a document."""

    title: Heading
    text: Content
    user_id: Id | None = None


class DocumentFields(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What goes with an uploaded file."""

    user_id: Id | None = None


class NoteBody(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Something to remember for answers to come. The more important it is, the longer it stays, and the earlier it is
    found."""

    content: Content
    session_id: Id | None = None
    importance: Importance = 2
    user_id: Id | None = None


class DeriveBody(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """At most so many answers a second."""

    rows_per_second: Rate | None = None


class UserQuery(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Whose it is, where a service or an admin asks."""

    user_id: Id | None = None


class PageQuery(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A page."""

    limit: Limit = 20
    after: str | None = None
    before: str | None = None
    order: Order = "desc"
    user_id: Id | None = None


class DocumentsQuery(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A page of documents."""

    limit: DocumentsLimit = 20
    after: str | None = None
    before: str | None = None
    order: Order = "desc"
    user_id: Id | None = None


class MessagesQuery(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A page of what was said, in order."""

    limit: Limit = 100
    after: str | None = None
    before: str | None = None
    order: Order = "asc"
    user_id: Id | None = None


class LogsQuery(msgspec.Struct, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A page of the log, of one session when it is named."""

    limit: Limit = 20
    after: str | None = None
    before: str | None = None
    order: Order = "desc"
    session_id: str | None = None
    user_id: Id | None = None


# --- answers ---------------------------------------------------------------------------------------


class DocumentPage(msgspec.Struct, kw_only=True, rename="camel"):
    """A page of documents; `after=lastId` asks for the next one."""

    data: list[Document]
    first_id: str | None
    last_id: str | None
    has_more: bool


class AskSessionPage(msgspec.Struct, kw_only=True, rename="camel"):
    """A page of sessions; `after=lastId` asks for the next one."""

    data: list[AskSession]
    first_id: str | None
    last_id: str | None
    has_more: bool


class SaidMessage(msgspec.Struct, kw_only=True, rename="camel"):
    """A question or an answer as the message log has it."""

    id: str
    role: str
    content: str
    token_count: int
    created_at: datetime


class AskMessagePage(msgspec.Struct, kw_only=True, rename="camel"):
    """A page of what was said; `after=lastId` asks for the next one."""

    data: list[SaidMessage]
    first_id: str | None
    last_id: str | None
    has_more: bool


class SessionWithMessages(AskSession, kw_only=True, rename="camel"):
    """A session, and a page of what was said in it."""

    messages: AskMessagePage


class AskLogPage(msgspec.Struct, kw_only=True, rename="camel"):
    """A page of the log; `after=lastId` asks for the next one."""

    data: list[LogEntry]
    first_id: str | None
    last_id: str | None
    has_more: bool


class AskMemory(msgspec.Struct, kw_only=True, rename="camel"):
    """Something that is remembered: of a question (`qa_turn`), of some (`summary`), or because a user said so
    (`manual`)."""

    id: str
    source: str
    content: str
    importance: int
    session_id: str | None
    metadata: dict[str, Any]
    created_at: datetime


class AskMemoryPage(msgspec.Struct, kw_only=True, rename="camel"):
    """A page of memories; `after=lastId` asks for the next one."""

    data: list[AskMemory]
    first_id: str | None
    last_id: str | None
    has_more: bool


class Deleted(msgspec.Struct, kw_only=True, rename="camel"):
    """The id that is gone."""

    id: str
    deleted: bool = True
