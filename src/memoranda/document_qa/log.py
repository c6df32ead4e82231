"""The log of questions: rows are written once, read page by page, and only forgetting erases their texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from memoranda.clock import moment, now_micros
from memoranda.document_qa.access import called, ids_of, seen_as, whose
from memoranda.document_qa.values import AskSession, LogEntry
from memoranda.errors import NotFound
from memoranda.storage.sql.base import Connection
from memoranda.store.ids import nameable
from memoranda.store.paging import Listed, as_page, cursors, page
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


def entry(subject: Subject, row: QueryRow) -> LogEntry:
    """Return the row as the subject sees it."""
    return LogEntry(
        id=row.id,
        session_id=called(subject, row.session_id),
        user_id=row.user_id,
        question=row.question,
        answer=row.answer,
        sources=msgspec.json.decode(row.sources),
        memories=msgspec.json.decode(row.memories),
        status=row.status,  # type: ignore[arg-type]
        model=row.model,
        latency_ms=row.latency_ms,
        question_tokens=row.question_tokens,
        answer_tokens=row.answer_tokens,
        document_tokens=row.document_tokens,
        memory_tokens=row.memory_tokens,
        history_tokens=row.history_tokens,
        created_at=moment(row.created_at),
        erased_at=None if row.erased_at is None else moment(row.erased_at),
    )


def by_id(c: Connection, tenant: str, id_: str) -> QueryRow | None:
    """Return the row of this id, without a check of access; None if there is none."""
    row = c.one("query_by_id", [tenant, id_]) if nameable(id_) else None
    return None if row is None else QueryRow._make(row)


def seen(c: Connection, subject: Subject, id_: str) -> QueryRow:
    """Return a row that the subject may see.

    Raises:
        NotFound: there is none for this subject.
    """
    where, params = whose(subject, "q")
    rows = []
    if nameable(id_):
        sql = f"SELECT {COLUMNS} FROM query_log q WHERE q.tenant_id = ? AND q.id = ? AND {where}"
        rows = c.select(sql, [subject.tenant_id, id_, *params])
    if not rows:
        raise NotFound(f"no question {id_!r}")
    return QueryRow._make(rows[0])


def logged(
    c: Connection,
    subject: Subject,
    *,
    session_id: str | None,
    limit: int,
    after: str | None,
    before: str | None,
    order: str,
) -> Listed[LogEntry]:
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
        try:
            return seen(c, subject, id_).seq
        except NotFound:
            return None

    at, until = cursors(after, before, seq_of)
    page_rows, more = page(
        c,
        f"SELECT {COLUMNS} FROM query_log q WHERE q.tenant_id = ? AND {where}",
        [subject.tenant_id, *params],
        "q.seq",
        limit=limit,
        after=at,
        before=until,
        descending=order == "desc",
    )
    rows = [QueryRow._make(row) for row in page_rows]
    return as_page([entry(subject, row) for row in rows], [row.id for row in rows], more)


def sessions(
    c: Connection, subject: Subject, *, limit: int, after: str | None, before: str | None, order: str
) -> Listed[AskSession]:
    """Return one page of the sessions that a subject may see, in the order in which they began.

    Raises:
        InvalidInput: a cursor names none of them.
    """
    where, params = whose(subject, "a")
    tenant = subject.tenant_id
    select = (
        "SELECT a.id, a.user_id, a.created_at, s.message_count, s.ended_at, a.seq FROM ask_sessions a"
        f" JOIN sessions s ON s.tenant_id = a.tenant_id AND s.id = a.id WHERE a.tenant_id = ? AND {where}"
    )

    def seq_of(id_: str) -> int | None:
        if not nameable(id_):
            return None
        rows = c.select(f"{select} AND a.id = ?", [tenant, *params, seen_as(c, subject, id_)])
        return int(rows[0][5]) if rows else None

    at, until = cursors(after, before, seq_of)
    page_rows, more = page(
        c, select, [tenant, *params], "a.seq", limit=limit, after=at, before=until, descending=order == "desc"
    )
    titles = {id_: _title(c, tenant, id_) for id_, *_ in page_rows}
    values = [_session(subject, row, titles[row[0]]) for row in page_rows]
    return as_page(values, [value.id for value in values], more)


def session(c: Connection, subject: Subject, id_: str) -> AskSession:
    """Return a session that the subject may see.

    Raises:
        NotFound: there is none for this subject.
    """
    where, params = whose(subject, "a")
    rows = []
    stored_id = seen_as(c, subject, id_)
    if nameable(id_):
        rows = c.select(
            "SELECT a.id, a.user_id, a.created_at, s.message_count, s.ended_at FROM ask_sessions a"
            " JOIN sessions s ON s.tenant_id = a.tenant_id AND s.id = a.id"
            f" WHERE a.tenant_id = ? AND a.id = ? AND {where}",
            [subject.tenant_id, stored_id, *params],
        )
    if not rows:
        raise NotFound(f"no session {id_!r}")
    return _session(subject, rows[0], _title(c, subject.tenant_id, stored_id))


def _title(c: Connection, tenant: str, id_: str) -> str:
    row = c.one("first_query", [tenant, id_])
    return "" if row is None else str(row[0])


def _session(subject: Subject, row: Sequence[Any], title: str) -> AskSession:
    return AskSession(
        id=called(subject, row[0]),
        user_id=row[1],
        title=title,
        message_count=row[3],
        created_at=moment(row[2]),
        last_asked_at=moment(row[4]),
    )


# --- forgetting --------------------------------------------------------------------------------------


def erase(c: Connection, tenant: str, seqs: Sequence[int]) -> int:
    """Erase the texts of these rows: question, answer, sources and memories. Their shells stay (ids, times, counts),
    with the time of the erasure. Return the number of rows erased."""
    return c.run("erase_queries", [now_micros(), tenant, json.dumps(list(seqs))]) if seqs else 0
