"""Merging of two sessions that a message between them connects.

A short one is merged at once, a long one by a job, some messages at a time and the earliest first. Until the last has
moved both sessions exist: each message is in one of them, and each counts its own. So readers always see a consistent
state, and a job that fails resumes where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memoranda.clock import now_micros
from memoranda.sessions import boundaries
from memoranda.sessions.boundaries import Cluster, SessionCloser
from memoranda.sessions.records import (
    MessageRow,
    SessionRow,
    kept_owner,
    messages_of,
    session_of,
    set_session,
    texts_of,
)
from memoranda.sessions.summary_memories import withdraw
from memoranda.sessions.switches import summarized
from memoranda.sessions.values import MODES
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import MARKS
from memoranda.store.job_kinds import Run
from memoranda.store.rows import fetch_ids
from memoranda.store.transaction import Writing
from memoranda.text.stored import compact_json

JOIN_JOB = "sessions.join"


STOPPED_AFTER = 60_000_000
"""Microseconds after which a session whose merge was stopped is summarized by itself."""


def near(
    c: Connection, tenant: str, channel: str | None, owner: str | None, cluster: Cluster, gap: int
) -> list[SessionRow]:
    """Return the sessions of a channel that messages belong to, the earliest first. `owner` is the user who owns the
    sessions, None for shared ones."""
    sessions: list[SessionRow] = []
    since = cluster.started_at - gap
    while True:
        values = [tenant, channel, since, int(owner is not None), owner]
        rows = [SessionRow._make(row) for row in c.all("sessions_near", values)]
        sessions += rows
        if len(rows) < 4 or rows[-1].started_at > cluster.ended_at + gap:
            return boundaries.near(cluster, sessions, gap)
        since = rows[-1].ended_at + 1


def united(listed: str, more: Sequence[str]) -> str:
    """Return a JSON list of strings with `more` added, each once."""
    there = texts_of(listed)
    fresh = [name for name in dict.fromkeys(more) if name not in there]
    return compact_json([*there, *fresh]) if fresh else listed


def merged(w: Writing, row: SessionRow, other: SessionRow, now: int) -> SessionRow:
    """Return the session with all messages of `other`, which is deleted."""
    seqs = [int(seq) for (seq,) in w.c.all("seqs_of_messages", [w.tenant, other.id])]
    w.c.run("move_messages", [row.id, w.tenant, other.id])
    w.mark(seqs, lambda memory: memory._replace(session_id=row.id))
    withdraw(w, other, now)
    w.c.run("drop_session", [w.tenant, other.id])
    return _grown(row, other, other.ended_at, other.message_count)


def _grown(row: SessionRow, other: SessionRow, ended_at: int, messages: int) -> SessionRow:
    """Return the session with some messages of `other`, up to a moment."""
    users = united(row.users, texts_of(other.users))
    owned = row if row.user_id is not None else row._replace(user_id=other.user_id)
    return row._replace(
        user_id=kept_owner(owned, texts_of(users)),
        agent_id=row.agent_id or other.agent_id,
        started_at=min(row.started_at, other.started_at),
        ended_at=max(row.ended_at, ended_at),
        message_count=row.message_count + messages,
        participants=united(row.participants, texts_of(other.participants)),
        users=users,
        extraction=max(row.extraction, other.extraction, key=MODES.index),
        facts_seq=min(row.facts_seq, other.facts_seq),
    )


class SessionMerge:
    """The handler of the job."""

    def __init__(self, closer: SessionCloser) -> None:
        self.closer = closer

    async def join(self, run: Run) -> dict[str, Any]:
        """Merge adjacent later sessions into a session; return how many messages moved."""
        core, moved = self.closer.core, 0
        while True:
            step = core.store.transact(run.tenant, lambda w: self._step(w, run))
            row, some = await core.threads.result(step)
            if row is None:
                return {"messages": moved}
            core.due_times.announce(row.due_at)
            moved += some
            await run.report(moved)

    def _step(self, w: Writing, run: Run) -> tuple[SessionRow | None, int]:
        """Run one step; return the session as it is then, None if it has no neighbour to merge, and how many messages
        moved."""
        w.draw(1)  # writers of messages wait
        now, id_ = now_micros(), str(run.payload["session_id"])
        row = session_of(w.c, w.tenant, id_)
        stopped = w.c.one("is_cancelling", [w.tenant, run.id])
        other = None if row is None or stopped is None or stopped[0] else self._beside(w, row)
        if row is None or other is None:
            w.c.run("free_job_key", [w.tenant, run.id])  # later merges get a job of their own
            return None, 0
        first = messages_of(w.c, w.tenant, other.id, MARKS + 1)
        if len(first) <= MARKS:
            row, some = merged(w, row, other, now), len(first)
        else:
            pending = summarized(w.c, self.closer.core.config, w.tenant, other.channel_id)
            row, some = _moved(w, row, other, first, now, pending), MARKS
        due = boundaries.due_at(row.ended_at, now, self.closer.gap)
        row = row._replace(
            rev=w.draw(1), last_seen_at=now, due_at=due, status="open", failure=None, pending=0, attempts=0,
            next_try_at=0, updated_at=now,
        )  # fmt: skip
        set_session(w.c, row)
        return row, some

    def _beside(self, w: Writing, row: SessionRow) -> SessionRow | None:
        """Return the adjacent session that began next; None if there is none."""
        owner = row.user_id if row.private else None
        cluster = Cluster(row.started_at, row.ended_at)
        nearby = near(w.c, w.tenant, row.channel_id, owner, cluster, self.closer.gap)
        later = [other for other in nearby if (other.started_at, other.seq) > (row.started_at, row.seq)]
        return later[0] if later else None


def _moved(
    w: Writing, row: SessionRow, other: SessionRow, first: Sequence[MessageRow], now: int, pending: bool
) -> SessionRow:
    """Return the session with the first `MARKS` messages of a long one, which keeps the others."""
    some, rest = first[:MARKS], first[MARKS]
    w.c.run("move_these_messages", [row.id, w.tenant, compact_json([message.id for message in some])])
    memories = fetch_ids(w.c, w.tenant, [message.id for message in some if message.indexed])
    w.mark([memory.seq for memory in memories.values()], lambda memory: memory._replace(session_id=row.id))
    withdraw(w, other, now)
    set_session(w.c, _shrunk(other, rest, w.draw(1), now, pending))
    return _grown(row, other, some[-1].occurred_at, len(some))


def _shrunk(other: SessionRow, rest: MessageRow, rev: int, now: int, pending: bool) -> SessionRow:
    """Return a session without its first messages, beginning with `rest`. It is summarized only if it still exists
    after a while, because the job was stopped."""
    is_open = other.status == "open"
    return other._replace(
        rev=rev,
        started_at=rest.occurred_at,
        message_count=other.message_count - MARKS,
        status="open" if is_open else "closed",
        failure=None,
        pending=int(pending and not is_open),
        attempts=0,
        next_try_at=now + STOPPED_AFTER,
        updated_at=now,
    )
