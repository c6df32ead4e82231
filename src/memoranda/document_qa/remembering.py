"""Memories of answered questions, made in the background: each turn, a summary from time to time, pruned to a limit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from memoranda.clock import moment, now_micros
from memoranda.document_qa import log
from memoranda.document_qa.condensing import condensed
from memoranda.document_qa.log import ANSWERED, QueryRow
from memoranda.document_qa.values import IMPORTANCE, KIND_OF, MemorySource
from memoranda.errors import MemorandaError
from memoranda.sessions.records import messages_by_id
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import ROWS
from memoranda.store.core import Core
from memoranda.store.job_kinds import Run
from memoranda.store.rows import Draft, Record, fetch
from memoranda.store.transaction import RemovedMemory, Writing
from memoranda.store.validation import draft
from memoranda.types import NewMemory, Subject


class Remembering:
    """The job that follows an answer."""

    def __init__(self, core: Core) -> None:
        self.core = core

    async def remember(self, run: Run) -> dict[str, Any] | None:
        """Make the memories of one row of the log. A second call changes nothing."""
        try:
            return await self._remember(run.tenant, str(run.payload["query"]))
        except MemorandaError:
            self.core.tally["ask_upsert_failures"] += 1
            raise

    async def _remember(self, tenant: str, query_id: str) -> dict[str, Any] | None:
        core = self.core
        db = core.store.db
        row = await core.threads.run(db.read, lambda c: log.by_id(c, tenant, query_id), tenant)
        if row is None or row.erased_at is not None or not core.config.upload_ask.memory:
            return None
        turn = await remember_turn(core, row)
        summary = await summarize_when_due(core, row)
        pruned = await prune(core, tenant, row.user_id)
        return {"turn": turn, "summary": summary, "pruned": pruned}


# --- turns ---------------------------------------------------------------------------------------------


async def remember_turn(core: Core, row: QueryRow) -> str | None:
    """Store a question with its answer as a memory and return its id. None if the answer is not to be remembered, was
    remembered before, or its messages are gone."""
    if row.status not in ANSWERED:
        return None
    memory = _draft(core, row, "qa_turn", f"{row.question}\n{row.answer}", [row.id], {"query_id": row.id})
    await core.ingest.prepare(row.tenant_id, [memory])

    def work(w: Writing) -> str | None:
        w.draw(1)  # other writers wait from here on
        if w.c.one("is_derived", [row.tenant_id, row.seq]) is not None:
            return None
        id_ = w.insert([memory])[0].row.id if _standing(w.c, row.tenant_id, [row.id]) else None
        w.c.run("note_derived", [row.tenant_id, row.seq, id_])
        return id_

    id_ = await core.threads.result(core.store.transact(row.tenant_id, work))
    core.tally["ask_memories.qa_turn"] += id_ is not None
    return id_


def _draft(
    core: Core,
    row: QueryRow,
    source: MemorySource,
    text: str,
    queries: Sequence[str],
    metadata: dict[str, Any],
) -> Draft:
    refs = [ref for query in queries for ref in (log.question_id(query), log.answer_id(query))]
    new = NewMemory(
        content=text,
        kind=KIND_OF[source],  # type: ignore[arg-type]
        source=source,
        user_id=row.user_id,
        session_id=row.session_id,
        importance=IMPORTANCE[source],
        source_refs=refs,
        occurred_at=moment(row.created_at),
        metadata=metadata,
    )
    return draft(new, Subject(tenant_id=row.tenant_id), now_micros(), core.ingest.bounds, "")


def _standing(c: Connection, tenant: str, queries: Sequence[str]) -> bool:
    """Return True if all messages of these questions are still in the message log: deleted ones are not remembered."""
    ids = [id_ for query in queries for id_ in (log.question_id(query), log.answer_id(query))]
    return len(messages_by_id(c, tenant, ids)) == len(ids)


# --- summaries -----------------------------------------------------------------------------------------


async def summarize_when_due(core: Core, row: QueryRow) -> str | None:
    """Summarize the questions since the last summary, if they are enough turns, or more tokens than the threshold;
    return the id of the summary. All rows of the log up to this one count, also those that a prompt still shows."""
    settings = core.config.upload_ask
    tenant = row.tenant_id
    last, asked = await core.threads.run(core.store.db.read, lambda c: _since(c, row), tenant)
    spent = sum(tokens for *_, tokens in asked)
    if len(asked) < settings.summary_every_turns and spent <= settings.summary_above_tokens:
        return None
    conversation = [(question, answer) for _, _, question, answer, _ in asked]
    text, author = await condensed(core, tenant, conversation)
    queries = [query for _, query, *_ in asked]
    summary = _draft(core, row, "summary", text, queries, {"turns": len(asked), "made_by": author})
    await core.ingest.prepare(tenant, [summary])

    def work(w: Writing) -> str | None:
        w.draw(1)  # other writers wait from here on
        if _since(w.c, row) != (last, asked) or not _standing(w.c, tenant, queries):
            return None  # summarized meanwhile, or part of it was deleted: the next turn checks again
        id_ = w.insert([summary])[0].row.id
        w.c.run("add_ask_summary", [tenant, row.session_id, row.seq, id_])
        return id_

    id_ = await core.threads.result(core.store.transact(tenant, work))
    core.tally["ask_memories.summary"] += id_ is not None
    return id_


def _since(c: Connection, row: QueryRow) -> tuple[int, list[tuple[Any, ...]]]:
    """Return the row of the log up to which the session was summarized, and the questions since, up to this row."""
    last_summary = c.one("last_ask_summary", [row.tenant_id, row.session_id])
    last = int(last_summary[0]) if last_summary else 0
    return last, c.all("queries_between", [row.tenant_id, row.session_id, last, row.seq])


# --- pruning -------------------------------------------------------------------------------------------


async def prune(core: Core, tenant: str, user_id: str | None) -> int:
    """Delete the memories of questions of this user beyond the limit, the least important first, of these the oldest.
    Return the number of memories deleted."""
    limit = core.config.upload_ask.prune_limit

    def work(w: Writing) -> int:
        rows = w.c.all("asked_beyond", [tenant, user_id or "", ROWS, limit])
        return w.remove([int(seq) for (seq,) in rows])[0] if rows else 0

    pruned = 0
    while some := await core.threads.result(core.store.transact(tenant, work)):
        pruned += some
    core.tally["ask_memories.pruned"] += pruned
    return pruned


async def remove_session(core: Core, tenant: str, session_id: str) -> None:
    """Delete the rest of a session whose messages were deleted."""

    def work(w: Writing) -> int:
        seqs = [int(seq) for (seq,) in w.c.all("asked_in_session", [tenant, session_id, ROWS])]
        w.by_request = True
        w.remove(seqs)
        if len(seqs) < ROWS:
            w.c.run("drop_ask_session", [tenant, session_id])
        return len(seqs)

    while await core.transact(tenant, work) == ROWS:
        pass


# --- deletion with messages ------------------------------------------------------------------------------


def gone(w: Writing, removed: Sequence[RemovedMemory]) -> tuple[int, int]:
    """Delete the turns and summaries of removed messages."""
    return _remove_made_of(w, [item.id for item in removed if item.kind == "message"])


def edited(w: Writing, before: Record, after: Record) -> None:
    """Delete the turns and summaries of an edited message."""
    if before.kind == "message" and before.content != after.content:
        _remove_made_of(w, [before.id])


def _remove_made_of(w: Writing, messages: Sequence[str]) -> tuple[int, int]:
    if not messages:
        return 0, 0
    rows = turns_of(w.c, w.tenant, messages)
    return w.remove([row.seq for row in rows]) if rows else (0, 0)


def turns_of(c: Connection, tenant: str, messages: Sequence[str]) -> list[Record]:
    """Return the memories that asking made of any of these messages."""
    seqs = [int(seq) for (seq,) in c.all("asked_made_of", [tenant, json.dumps(list(messages))])]
    return [*fetch(c, tenant, seqs).values()]
