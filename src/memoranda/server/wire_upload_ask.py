"""What `/api/v1/upload-ask` takes and answers, beside the values of `memoranda.document_qa`; names are in camel
case."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import msgspec
from msgspec import Meta

from memoranda.document_qa.values import AskedText, AskRequest, AskSession, Document, Few, LogEntry
from memoranda.types import Content, Id, Importance, Order, Rate, some_text
from memoranda.validation.constraints import Constraint, NotBoth, OneOf

T = TypeVar("T")
Heading = Annotated[str, some_text(500)]
Limit = Annotated[int, Meta(ge=1, le=1_000)]
DocumentsLimit = Annotated[int, Meta(ge=1, le=100)]

# --- bodies and query strings ----------------------------------------------------------------------


class AskBody(AskRequest, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A question, as `question` or as `query`. `topK` is another name for `topKDocs`; `userId` is whom a service or an
    admin asks for."""

    constraints: ClassVar[tuple[Constraint, ...]] = (
        OneOf(("question", "query"), "is required"),
        NotBoth("query", "question", "is another name for question; send one of the two"),
        NotBoth("top_k", "top_k_docs", "is another name for topKDocs; send one of the two"),
    )
    question: AskedText | None = None  # type: ignore[assignment]
    query: AskedText | None = None
    top_k: Few | None = None
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


class PageQuery(UserQuery, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A page."""

    limit: Limit = 20
    after: str | None = None
    before: str | None = None
    order: Order = "desc"


class DocumentsQuery(PageQuery, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A page of documents."""

    limit: DocumentsLimit = 20


class MessagesQuery(PageQuery, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A page of what was said, in order."""

    limit: Limit = 100
    order: Order = "asc"


class LogsQuery(PageQuery, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A page of the log, of one session when it is named."""

    session_id: str | None = None


# --- answers ---------------------------------------------------------------------------------------


class Page(msgspec.Struct, Generic[T], kw_only=True, rename="camel"):
    """A page; `after=lastId` asks for the next one."""

    data: list[T]
    first_id: str | None
    last_id: str | None
    has_more: bool


class DocumentPage(Page[Document], kw_only=True, rename="camel"):
    """A page of documents; `after=lastId` asks for the next one."""


class AskSessionPage(Page[AskSession], kw_only=True, rename="camel"):
    """A page of sessions; `after=lastId` asks for the next one."""


class SaidMessage(msgspec.Struct, kw_only=True, rename="camel"):
    """A question or an answer as the message log has it."""

    id: str
    role: str
    content: str
    token_count: int
    created_at: datetime


class AskMessagePage(Page[SaidMessage], kw_only=True, rename="camel"):
    """A page of what was said; `after=lastId` asks for the next one."""


class SessionWithMessages(AskSession, kw_only=True, rename="camel"):
    """A session, and a page of what was said in it."""

    messages: AskMessagePage


class AskLogPage(Page[LogEntry], kw_only=True, rename="camel"):
    """A page of the log; `after=lastId` asks for the next one."""


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


class AskMemoryPage(Page[AskMemory], kw_only=True, rename="camel"):
    """A page of memories; `after=lastId` asks for the next one."""


class Deleted(msgspec.Struct, kw_only=True, rename="camel"):
    """The id that is gone."""

    id: str
    deleted: bool = True
