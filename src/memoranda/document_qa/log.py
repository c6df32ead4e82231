"""The log of questions: rows are written once, read page by page, and only forgetting erases their texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from memoranda.clock import micros, moment, now_micros
from memoranda.document_qa.access import called, ids_of, seen_as, sees, whose
from memoranda.document_qa.values import AskSession, DocumentAnswer, LogEntry
from memoranda.errors import NotFound
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.ids import nameable
from memoranda.store.paging import Listed, Paging, as_page, page
from memoranda.text.tokens import count
from memoranda.types import Subject

ANSWERED = ("answered", "quoted")
"""The statuses of questions whose answers are remembered."""


class QueryRow(NamedTuple):
    """One row of `query_log`. `sources` and `memories` are JSON, `created_at` microseconds since 1970."""

    tenant_id: str
    seq: int
    id: str
    session_id: str
    user_id: str | None
    question: str
    answer: str
    sources: str
    memories: str
    status: str
    model: str
    latency_ms: int
    question_tokens: int
    answer_tokens: int
    document_tokens: int
    memory_tokens: int
    history_tokens: int
    created_at: int
    erased_at: int | None = None


COLUMNS = ", ".join(f"q.{name}" for name in QueryRow._fields)


def question_id(query_id: str) -> str:
    """Return the id that a question has in the message log."""
    return f"{query_id}.question"


def answer_id(query_id: str) -> str:
    """Return the id that an answer has in the message log."""
    return f"{query_id}.answer"


def of_message(message_id: str) -> str:
    """Return the row of the log that a message belongs to; None for other messages."""
    return message_id.rpartition(".")[0]


def write(c: Connection, row: QueryRow) -> None:
    """Write a row, permanently."""
    c.run("add_query", row[:-1])


def row_of(subject: Subject, session_id: str, question: str, asked: DocumentAnswer) -> QueryRow:
    """Return the row of a question with its answer, in the session that is stored under this id."""
    return QueryRow(
        tenant_id=subject.tenant_id,
        seq=0,
        id=asked.id,
        session_id=session_id,
        user_id=subject.user_id,
        question=question,
        answer=asked.answer,
        sources=msgspec.json.encode(asked.sources).decode(),
        memories=msgspec.json.encode(asked.memories).decode(),
        status=asked.status,
        model=asked.model,
        latency_ms=asked.latency_ms,
        question_tokens=count(question),
        answer_tokens=count(asked.answer),
        document_tokens=asked.used_document_tokens,
        memory_tokens=asked.used_memory_tokens,
        history_tokens=asked.used_history_tokens,
        created_at=micros(asked.created_at),
    )


def entry(subject: Subject, row: QueryRow) -> LogEntry:
    """Return the row as the subject sees it."""
    fields = row._asdict() | {
        "session_id": called(subject, row.session_id),
        "sources": msgspec.json.decode(row.sources),
        "memories": msgspec.json.decode(row.memories),
        "created_at": moment(row.created_at),
        "erased_at": None if row.erased_at is None else moment(row.erased_at),
    }
    return LogEntry(**{name: fields[name] for name in LogEntry.__struct_fields__})


def by_id(c: Connection, tenant: str, id_: str) -> QueryRow | None:
    """Return the row of this id, without a check of access; None if there is none."""
    row = c.one("query_by_id", [tenant, id_]) if nameable(id_) else None
    return None if row is None else QueryRow._make(row)


def seen(c: Connection, subject: Subject, id_: str) -> QueryRow:
    """Return a row that the subject may see.

    Raises:
        NotFound: there is none for this subject.
    """
    if (row := _seen(c, subject, id_)) is None:
        raise NotFound(f"no question {id_!r}")
    return row


def _seen(c: Connection, subject: Subject, id_: str) -> QueryRow | None:
    row = by_id(c, subject.tenant_id, id_)
    return row if row is not None and sees(subject, row.user_id) else None


def logged(c: Connection, subject: Subject, session_id: str | None, request: Paging) -> Listed[LogEntry]:
    """Return one page of the rows that a subject may see, or of those of one session.

    Raises:
        InvalidInput: a cursor names none of them.
    """
    where, params = whose(subject, "q")
    if session_id is not None:
        stored_ids = ids_of(subject, session_id)  # the session may be deleted: its questions stay
        where = f"{where} AND q.session_id IN ({', '.join('?' * len(stored_ids))})"
        params = [*params, *stored_ids]

    def seq_of(id_: str) -> int | None:
        row = _seen(c, subject, id_)
        return None if row is None else row.seq

    select = f"SELECT {COLUMNS} FROM query_log q WHERE q.tenant_id = ? AND {where}"
    rows, more = page(c, select, [subject.tenant_id, *params], "q.seq", seq_of, request)
    entries = [entry(subject, QueryRow._make(row)) for row in rows]
    return as_page(entries, [each.id for each in entries], more)


def sessions(c: Connection, subject: Subject, request: Paging) -> Listed[AskSession]:
    """Return one page of the sessions that a subject may see, in the order in which they began.

    Raises:
        InvalidInput: a cursor names none of them.
    """
    select, params = _sessions(subject)

    def seq_of(id_: str) -> int | None:
        row = _session_row(c, subject, id_)
        return None if row is None else int(row[-1])

    rows, more = page(c, select, params, "a.seq", seq_of, request)
    values = [_session(c, subject, row) for row in rows]
    return as_page(values, [value.id for value in values], more)


def session(c: Connection, subject: Subject, id_: str) -> AskSession:
    """Return a session that the subject may see.

    Raises:
        NotFound: there is none for this subject.
    """
    if (row := _session_row(c, subject, id_)) is None:
        raise NotFound(f"no session {id_!r}")
    return _session(c, subject, row)


def _sessions(subject: Subject) -> tuple[str, list[Any]]:
    """Return the sessions that a subject may see, as SQL."""
    where, params = whose(subject, "a")
    select = (
        "SELECT a.id, a.user_id, a.created_at, s.message_count, s.ended_at, a.seq FROM ask_sessions a"
        f" JOIN sessions s ON s.tenant_id = a.tenant_id AND s.id = a.id WHERE a.tenant_id = ? AND {where}"
    )
    return select, [subject.tenant_id, *params]


def _session_row(c: Connection, subject: Subject, id_: str) -> Row | None:
    select, params = _sessions(subject)
    known = nameable(id_) and c.select(f"{select} AND a.id = ?", [*params, seen_as(c, subject, id_)])
    return known[0] if known else None


def _session(c: Connection, subject: Subject, row: Row) -> AskSession:
    id_, user_id, created_at, message_count, ended_at, _ = row
    first = c.one("first_query", [subject.tenant_id, id_])
    return AskSession(
        id=called(subject, id_),
        user_id=user_id,
        title="" if first is None else str(first[0]),
        message_count=message_count,
        created_at=moment(created_at),
        last_asked_at=moment(ended_at),
    )


# --- forgetting --------------------------------------------------------------------------------------


def erase(c: Connection, tenant: str, seqs: Sequence[int]) -> int:
    """Erase the texts of these rows: question, answer, sources and memories. Their shells stay (ids, times, counts),
    with the time of the erasure. Return the number of rows erased."""
    return c.run("erase_queries", [now_micros(), tenant, json.dumps(list(seqs))]) if seqs else 0
