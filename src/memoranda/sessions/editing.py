"""Messages changed and removed, whether a search finds them or not: one way for both, so that all that follows does."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.clock import moment, now_micros
from memoranda.config.sections import Sessions as Settings
from memoranda.providers.embeddings.base import Embedder
from memoranda.sessions.following import write_message
from memoranda.sessions.message_drafts import SOURCE, found, found_as
from memoranda.sessions.records import MessageRow, messages_by_id
from memoranda.store.ingest import windows
from memoranda.store.rows import Record, fetch_ids
from memoranda.store.transaction import Gone, Writing
from memoranda.store.validation import Bounds, Draft, changed, draft
from memoranda.types import Change, NewMemory, Subject


def remove_messages(w: Writing, rows: Sequence[MessageRow]) -> tuple[int, int]:
    """Removes messages from the log and from what is found, with all that was made of them; (memories, vectors) that
    went."""
    held = fetch_ids(w.c, w.tenant, [row.id for row in rows if row.indexed])
    found = w.remove([memory.seq for memory in held.values()])
    rest = [row for row in rows if row.id not in held]
    more = w.gone([Gone(0, row.id, "message", row.channel_id, row.session_id) for row in rest])
    return found[0] + more[0], found[1] + more[1]


def rewritten(
    w: Writing,
    row: MessageRow,
    content: str,
    subject: Subject,
    settings: Settings,
    bounds: Bounds,
    embedder: Embedder,
) -> MessageRow:
    """Gives a message another text; the message as it is then. What was found stays found; what was too short to be may
    be found now.

    Raises:
        InvalidInput: the text cannot be kept.
    """
    now, change = now_micros(), Change(content=content)
    held = fetch_ids(w.c, w.tenant, [row.id]).get(row.id) if row.indexed else None
    if held is not None:
        w.replace(held.seq, lambda before: _replaced(before, change, now, bounds, embedder))
    else:
        before = memory_of(row, subject, bounds)
        after = _same(before.row, changed(before.row, change, now, bounds))
        if found(row.role, content, settings):
            w.insert([Draft(after, named=True)])
            write_message(w.c, row._replace(indexed=1))
        w.edited(before.row, after)
    return messages_by_id(w.c, w.tenant, [row.id])[row.id]


def _replaced(before: Record, change: Change, now: int, bounds: Bounds, embedder: Embedder) -> Draft:
    """The memory with another text, its vector to be made."""
    after = _same(before, changed(before, change, now, bounds))
    return Draft(after, named=True, parts=windows(after, embedder), model="")


def _same(before: Record, after: Record) -> Record:
    """A message stays the message it was, whatever its text."""
    return after._replace(dedup_key=before.dedup_key)


def memory_of(row: MessageRow, subject: Subject, bounds: Bounds) -> Draft:
    """The memory in which a message is, or would be, found."""
    metadata = {} if row.speaker is None else {"speaker": row.speaker}
    new = NewMemory(
        content=row.content,
        id=row.id,
        kind="message",
        user_id=row.user_id,
        agent_id=row.agent_id,
        channel_id=row.channel_id,
        session_id=row.session_id,
        role=row.role,
        source=SOURCE,
        metadata=metadata,
        occurred_at=moment(row.occurred_at),
    )
    return found_as(draft(new, subject, row.created_at, bounds, ""), row.key)
