"""Hooks that update the log, sessions and summaries when a message is removed or changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import partial

from memoranda.clock import now_micros
from memoranda.sessions import boundaries
from memoranda.sessions.boundaries import SessionCloser
from memoranda.sessions.records import (
    MessageRow,
    SessionRow,
    kept_owner,
    messages_by_id,
    session_of,
    sessions_by_id,
    set_session,
)
from memoranda.sessions.summary_memories import rollup_ids, schedule_rollups, withdraw
from memoranda.sessions.switches import summarized
from memoranda.sessions.values import name_of
from memoranda.storage.sql.base import Connection
from memoranda.store.rows import Record, fetch_ids
from memoranda.store.rows import speaker as speaker_of
from memoranda.store.transaction import RemovedMemory, Writing, added_up
from memoranda.text.stored import compact_json
from memoranda.text.tokens import count

SUMMARY = "session_summary"
ROLLUP = "rollup"
AFTERWARDS = 2_000_000
"""Microseconds after which a summary is made again while a phrase is forgotten: it may have the phrase again, as the id
of a user or a channel, and a later pass would find it."""


class MessageReactions:
    """Hooks of the store: see `Writing`."""

    def __init__(self, closer: SessionCloser) -> None:
        self.closer = closer

    # --- going -------------------------------------------------------------------------------------

    def gone(self, w: Writing, removed: Sequence[RemovedMemory]) -> tuple[int, int]:
        """Update the log and the sessions after memories, or messages without one, were removed. Return the
        (memories, vectors) of summaries and rollups that were removed with them."""
        more = [(0, 0)]
        messages = [item.id for item in removed if item.kind == "message"]
        if messages:
            logged = messages_by_id(w.c, w.tenant, messages)
            w.c.run("drop_messages", [w.tenant, json.dumps(list(logged))])
            w.note(("messages", id_) for id_ in logged)
            more.append(self.measure(w, {row.session_id for row in logged.values()}))
        now = now_micros()
        for item in removed:
            if item.kind == SUMMARY and item.session_id is not None:
                more.append(self._summary_gone(w, item, now))
            elif item.kind == ROLLUP and item.channel_id is not None:
                w.c.run("drop_rollup_of", [now, w.tenant, item.id])
        return added_up(more)

    def _summary_gone(self, w: Writing, gone: RemovedMemory, now: int) -> tuple[int, int]:
        """Clear a deleted summary: the session gets none until it changes or one is requested, unless it goes with a
        phrase."""
        row = session_of(w.c, w.tenant, gone.session_id or "")
        if row is None or row.summary_id != gone.id:
            return 0, 0
        w.c.run("clear_summary", [w.tenant, row.id])
        if row.status == "summarized":
            pending, at = w.by_text and self._wanted(w, row), now + AFTERWARDS
            set_session(
                w.c, row._replace(status="closed", pending=int(pending), next_try_at=at, updated_at=now)
            )
            if pending:
                self._expect(w, now, at)
        return self._rollup_gone(w, row, now)

    def _rollup_gone(self, w: Writing, row: SessionRow, now: int) -> tuple[int, int]:
        """Withdraw the rollups that include a session."""
        if row.channel_id is None:
            return 0, 0
        memories = fetch_ids(w.c, w.tenant, rollup_ids(w.c, row))
        schedule_rollups(w.c, w.tenant, [row], now)
        return w.remove([memory.seq for memory in memories.values()])

    # --- changing ----------------------------------------------------------------------------------

    def edited(self, w: Writing, before: Record, after: Record) -> None:
        """Update the message of an edited memory."""
        if before.kind != "message" or before.id != after.id:
            return
        row = messages_by_id(w.c, w.tenant, [after.id]).get(after.id)
        if row is None:
            return
        updated = row if after.kind != "message" else _changed(row, after)
        if updated != row:
            write_message(w.c, updated)
            self.measure(w, {row.session_id})

    # --- sessions ----------------------------------------------------------------------------------

    def measure(self, w: Writing, ids: Iterable[str]) -> tuple[int, int]:
        """Update sessions with removed or changed messages: count again, drop the summary, or delete them if empty.
        Return the (memories, vectors) removed."""
        now, changed, removed = now_micros(), False, [(0, 0)]
        at = now + AFTERWARDS if w.by_text else now
        for row in sessions_by_id(w.c, w.tenant, ids).values():
            removed.append(withdraw(w, row, now))
            changed |= self._measured(w, row, now, at)
        if changed:
            self._expect(w, now, at)
        return added_up(removed)

    def _expect(self, w: Writing, now: int, at: int) -> None:
        """Have pending summaries made at a moment, by a job that is placed now or by the clock."""
        if at <= now:
            self.closer.place(w.c, {w.tenant})
        w.then(partial(self.closer.core.due_times.announce, at))

    def _wanted(self, w: Writing, row: SessionRow) -> bool:
        """Return True if the session's channel is to have summaries."""
        return summarized(w.c, self.closer.core.config, w.tenant, row.channel_id)

    def _measured(self, w: Writing, row: SessionRow, now: int, at: int) -> bool:
        """Measure a session again; return True if it must be summarized again, at a moment or later."""
        measures = w.c.one("measure_session", [w.tenant, row.id])
        number, started, ended = measures or (0, None, None)
        if not number:
            w.c.run("drop_session", [w.tenant, row.id])
            w.note([("sessions", row.id)])
            return False
        spoke = w.c.all("speakers_of", [w.tenant, row.id])
        users = list(dict.fromkeys(user for _, user, _, _ in spoke if user is not None))
        agents = [agent for agent, _ in w.c.all("agents_of", [w.tenant, row.id])]
        open_ = row.status == "open"
        pending = not open_ and self._wanted(w, row)
        fresh = row._replace(
            rev=w.draw(1),
            user_id=kept_owner(row, users),
            agent_id=row.agent_id if row.agent_id in agents else next(iter(agents), None),
            started_at=started,
            ended_at=ended,
            message_count=number,
            due_at=boundaries.due_at(ended, row.last_seen_at, self.closer.gap),
            participants=compact_json(list(dict.fromkeys(name_of(*who) for *who, _ in spoke))),
            users=compact_json(users),
            status="open" if open_ else "closed",
            failure=None,
            pending=int(pending),
            attempts=0,
            next_try_at=at,
            updated_at=now,
        )
        set_session(w.c, fresh)
        return pending


def _changed(row: MessageRow, memory: Record) -> MessageRow:
    """Return the message as its memory has it now."""
    metadata = json.loads(memory.metadata)
    named = metadata.pop("speaker", None)
    speaker = speaker_of(memory) if isinstance(named, str) and named else None
    same = row.content == memory.content
    return row._replace(
        role=memory.role or row.role,
        speaker=speaker,
        content=memory.content,
        tokens=row.tokens if same else count(memory.content),
        metadata=compact_json(metadata),
        occurred_at=memory.occurred_at,
    )


def write_message(c: Connection, row: MessageRow) -> None:
    """Write what may change of a message."""
    c.run(
        "set_message",
        [
            row.key, row.role, row.speaker, row.content, row.tokens, row.metadata, row.indexed, row.occurred_at,
            row.tenant_id, row.id,
        ],
    )  # fmt: skip
