"""Stores a question with its answer: both messages, the row of the log and the job that remembers them, in one
transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec

from memoranda.clock import moment
from memoranda.document_qa import log
from memoranda.document_qa.access import called, is_own, is_uuid
from memoranda.document_qa.log import QueryRow
from memoranda.document_qa.prompting import HistoryMessage
from memoranda.errors import Conflict, NotFound
from memoranda.sessions.message_drafts import Written, changed
from memoranda.sessions.sessions import Sessions
from memoranda.sessions.values import NewMessage
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.ids import nameable
from memoranda.store.transaction import Writing
from memoranda.types import Subject

REMEMBER_JOB = "upload_ask.remember"
HISTORY = 64
"""The most messages of a session in its history, the latest."""


class Turn(msgspec.Struct, frozen=True):
    """What is stored of a question. `asked_at` is its time, the row's `created_at` that of the answer; `begins` is True
    for the first of a session without an id of the caller; `used` are the memories in the prompt."""

    row: QueryRow
    asked_at: int
    begins: bool
    used: Sequence[str] = ()


def check_session(c: Connection, subject: Subject, session_id: str) -> bool:
    """Refuse a session that the subject's user does not own. Return False if there is none yet and its id is a UUID,
    which may begin one.

    Raises:
        NotFound: there is none of this id, or it is another's.
        Conflict: it was cut out of a channel.
    """
    named = called(subject, session_id)
    known = c.one("session_known", [subject.tenant_id, session_id]) if nameable(session_id) else None
    if known is None and is_uuid(named):
        return False
    if known is None or not is_own(subject, known[0]):
        raise NotFound(f"no session {named!r}")
    if not known[1]:
        raise Conflict(f"sessionId: {named!r} was cut out of a channel; choose another")
    return True


def history(c: Connection, tenant: str, session_id: str) -> list[HistoryMessage]:
    """Return the last messages of a session, the oldest first."""
    rows = c.all("ask_history", [tenant, session_id, HISTORY])
    return [HistoryMessage(*row) for row in reversed(rows)]


async def store(core: Core, subject: Subject, turn: Turn, *, remember: bool) -> None:
    """Store a turn; with `remember` its memories follow by a job.

    Raises:
        NotFound: the session was deleted meanwhile.
        StorageError: nothing was stored.
    """
    row = turn.row
    said = [
        NewMessage(
            id=log.question_id(row.id), role="user", content=row.question, occurred_at=moment(turn.asked_at)
        ),
        NewMessage(
            id=log.answer_id(row.id), role="assistant", content=row.answer, occurred_at=moment(row.created_at)
        ),
    ]
    ready = await Sessions(core, subject).prepare(said, session_id=row.session_id, user_id=subject.user_id)

    def work(w: Writing) -> Written:
        seq = w.draw(1)  # other writers wait from here on
        if not turn.begins:
            check_session(w.c, subject, row.session_id)
        w.c.run("add_ask_session", [row.tenant_id, row.session_id, seq, row.user_id, row.created_at])
        written = ready.write(w)
        log.write(w.c, row._replace(seq=seq))
        _count_access(w.c, row, turn.used)
        if remember:
            core.jobs.place(w.c, row.tenant_id, REMEMBER_JOB, {"query": row.id})
        return written

    written = await changed(core, row.tenant_id, work, lambda done: {*ready.woken(done), REMEMBER_JOB})
    ready.observed(written)


def _count_access(c: Connection, row: QueryRow, used: Sequence[str]) -> None:
    """Count the access to the memories of an answer."""
    if not used:
        return
    rows = c.all("memories_by_id", [row.tenant_id, json.dumps(list(used))])
    c.run("count_access", [row.created_at, row.tenant_id, json.dumps([seq for _, seq, _ in rows])])
