"""`/api/v1/upload-ask`: documents, questions to them with memory, sessions, the log of questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from memoranda.document_qa.asking import UploadAsk
from memoranda.document_qa.values import AskRequest, Document, DocumentAnswer, LogEntry
from memoranda.server import wire_upload_ask as own
from memoranda.server.form_files import arrived
from memoranda.server.route import Call, Form, Route
from memoranda.store.paging import Listed, as_page
from memoranda.types import Job, Memory

P = TypeVar("P")


def _asking(call: Call[Any, Any], user_id: str | None) -> UploadAsk:
    return call.workspace.upload_ask.acting_for(user_id)


def _paging(query: own.PageQuery) -> dict[str, Any]:
    return {name: getattr(query, name) for name in ("limit", "after", "before", "order")}


def _page(type_: Callable[..., P], listed: Listed[Any]) -> P:
    return type_(data=listed.data, first_id=listed.first_id, last_id=listed.last_id, has_more=listed.has_more)


# --- documents -------------------------------------------------------------------------------------


async def add(call: Call[own.DocumentBody | None, None]) -> Document:
    """A text, or a file in the body."""
    if call.body is not None:
        return await _asking(call, call.body.user_id).documents.add_text(call.body.title, call.body.text)
    async with arrived(call, FORM) as form:
        documents = _asking(call, form.fields.user_id).documents
        form.adopted = True
        return await documents.adopt(form.staged, form.part.filename, form.part.media_type)


async def documents(call: Call[None, own.DocumentsQuery]) -> own.DocumentPage:
    documents = _asking(call, call.query.user_id).documents
    return _page(own.DocumentPage, await documents.list(**_paging(call.query)))


async def document(call: Call[None, own.UserQuery]) -> Document:
    return await _asking(call, call.query.user_id).documents.get(call.id)


async def delete_document(call: Call[None, own.UserQuery]) -> own.Deleted:
    await _asking(call, call.query.user_id).documents.delete(call.id)
    return own.Deleted(id=call.id)


# --- questions -------------------------------------------------------------------------------------


async def ask(call: Call[own.AskBody, None]) -> DocumentAnswer:
    body = call.body
    fields = {name: getattr(body, name) for name in AskRequest.__struct_fields__}
    fields["top_k_docs"] = body.top_k if body.top_k_docs is None else body.top_k_docs
    fields["question"] = body.question or body.query
    answered = await _asking(call, body.user_id).ask(AskRequest(**fields))
    telemetry = call.state.telemetry
    if answered.memory_search_ms is not None:
        telemetry.stage_seconds.labels("memory_search").observe(answered.memory_search_ms / 1_000)
    return answered


# --- sessions and the log --------------------------------------------------------------------------


async def sessions(call: Call[None, own.PageQuery]) -> own.AskSessionPage:
    asking = _asking(call, call.query.user_id)
    return _page(own.AskSessionPage, await asking.sessions(**_paging(call.query)))


async def session(call: Call[None, own.MessagesQuery]) -> own.SessionWithMessages:
    asking = _asking(call, call.query.user_id)
    ask_session = await asking.session(call.id)
    messages_page = await _said(asking, call)
    return own.SessionWithMessages(
        **{name: getattr(ask_session, name) for name in ask_session.__struct_fields__}, messages=messages_page
    )


async def messages(call: Call[None, own.MessagesQuery]) -> own.AskMessagePage:
    return await _said(_asking(call, call.query.user_id), call)


async def _said(asking: UploadAsk, call: Call[None, own.MessagesQuery]) -> own.AskMessagePage:
    listed = await asking.messages(call.id, **_paging(call.query))
    data = [
        own.SaidMessage(
            id=message.id,
            role=message.role,
            content=message.content,
            token_count=message.tokens,
            created_at=message.occurred_at,
        )
        for message in listed.data
    ]
    return _page(own.AskMessagePage, as_page(data, [message.id for message in data], listed.has_more))


async def delete_session(call: Call[None, own.UserQuery]) -> own.Deleted:
    await _asking(call, call.query.user_id).delete_session(call.id)
    return own.Deleted(id=call.id)


async def logs(call: Call[None, own.LogsQuery]) -> own.AskLogPage:
    asking = _asking(call, call.query.user_id)
    return _page(own.AskLogPage, await asking.logs(session_id=call.query.session_id, **_paging(call.query)))


async def log_entry(call: Call[None, own.UserQuery]) -> LogEntry:
    return await _asking(call, call.query.user_id).log_entry(call.id)


# --- memories --------------------------------------------------------------------------------------


async def remember(call: Call[own.NoteBody, None]) -> own.AskMemory:
    body = call.body
    memory = await _asking(call, body.user_id).remember(
        body.content, session_id=body.session_id, importance=body.importance
    )
    return _memory(memory)


async def memories(call: Call[None, own.PageQuery]) -> own.AskMemoryPage:
    asking = _asking(call, call.query.user_id)
    return _page(own.AskMemoryPage, (await asking.memories(**_paging(call.query))).each(_memory))


async def delete_memory(call: Call[None, own.UserQuery]) -> own.Deleted:
    await _asking(call, call.query.user_id).delete_memory(call.id)
    return own.Deleted(id=call.id)


def _memory(memory: Memory) -> own.AskMemory:
    return own.AskMemory(
        id=memory.id,
        source=memory.source or "",
        content=memory.content,
        importance=memory.importance,
        session_id=memory.session_id,
        metadata=memory.metadata,
        created_at=memory.created_at,
    )


async def derive(call: Call[own.DeriveBody, None]) -> Job:
    return await call.workspace.upload_ask.derive(rows_per_second=call.body.rows_per_second)


FORM = Form("file", own.DocumentFields)
AT = "/api/v1/upload-ask"
DOCUMENTS, SESSIONS, MEMORIES, LOGS = (
    f"{AT}/{name}" for name in ("documents", "sessions", "memories", "logs")
)
DOCUMENT = f"{DOCUMENTS}/{{document_id}}"
SESSION = f"{SESSIONS}/{{ask_session_id}}"
USER = own.UserQuery
ROUTES = (
    Route("POST", DOCUMENTS, "Upload a document", add, "write", Document, own.DocumentBody, long=True, form=FORM),
    Route("GET", DOCUMENTS, "A page of documents", documents, "read", own.DocumentPage, query=own.DocumentsQuery),
    Route("GET", DOCUMENT, "One document", document, "read", Document, query=USER),
    Route("DELETE", DOCUMENT, "Delete a document", delete_document, "write", own.Deleted, query=USER),
    Route("POST", f"{AT}/query", "Ask the documents", ask, "write", DocumentAnswer, own.AskBody, long=True),
    Route("POST", f"{AT}/qa/query", "Ask the documents", ask, "write", DocumentAnswer, own.AskBody, long=True),
    Route("GET", SESSIONS, "A page of sessions", sessions, "read", own.AskSessionPage, query=own.PageQuery),
    Route(
        "GET", SESSION, "A session, and what was said in it", session, "read", own.SessionWithMessages,
        query=own.MessagesQuery,
    ),
    Route(
        "GET", f"{SESSION}/messages", "What was said in a session", messages, "read", own.AskMessagePage,
        query=own.MessagesQuery,
    ),
    Route("DELETE", SESSION, "Delete a session", delete_session, "write", own.Deleted, query=USER),
    Route("GET", LOGS, "A page of the log of questions", logs, "read", own.AskLogPage, query=own.LogsQuery),
    Route("GET", f"{LOGS}/{{query_id}}", "One row of the log", log_entry, "read", LogEntry, query=USER),
    Route("POST", MEMORIES, "Remember a note", remember, "write", own.AskMemory, own.NoteBody),
    Route("GET", MEMORIES, "A page of what is remembered", memories, "read", own.AskMemoryPage, query=own.PageQuery),
    Route(
        "DELETE", f"{MEMORIES}/{{memory_id}}", "Delete a memory", delete_memory, "write", own.Deleted, query=USER,
    ),
    Route(
        "POST", f"{AT}/backfill", "Make memories of past answers", derive, "admin", Job, own.DeriveBody,
    ),
)  # fmt: skip
