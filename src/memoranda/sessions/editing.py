"""Changes and removals of messages, indexed or not, with everything that follows from them."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.clock import moment, now_micros
from memoranda.config.agent_sections import Sessions as Settings
from memoranda.providers.embeddings.base import Embedder
from memoranda.sessions.message_drafts import SOURCE, is_indexed, message_draft
from memoranda.sessions.reactions import write_message
from memoranda.sessions.records import MessageRow, messages_by_id
from memoranda.store.ingest import windows
from memoranda.store.origins import hidden
from memoranda.store.rows import Draft, Record, fetch_ids
from memoranda.store.transaction import RemovedMemory, Writing
from memoranda.store.validation import Bounds, changed, draft
from memoranda.text.stored import compact_json
from memoranda.types import Change, NewMemory, Subject


def remove_messages(w: Writing, rows: Sequence[MessageRow]) -> tuple[int, int]:
    """Remove messages from the log and the indexes, with everything derived from them; return (memories, vectors)
    removed."""
    memories = fetch_ids(w.c, w.tenant, [row.id for row in rows if row.indexed])
    removed = w.remove([memory.seq for memory in memories.values()])
    rest = [row for row in rows if row.id not in memories]
    more = w.gone(
        [
            RemovedMemory(
                0,
                row.id,
                "message",
                row.channel_id,
                row.session_id,
                row.content,
                row.key,
                row.speaker or row.user_id,
            )
            for row in rest
        ]
    )
    return removed[0] + more[0], removed[1] + more[1]


def rewritten(
    w: Writing,
    row: MessageRow,
    content: str,
    subject: Subject,
    settings: Settings,
    bounds: Bounds,
    embedder: Embedder,
) -> MessageRow:
    """Give a message another text and return it as it is then. An indexed message stays indexed; one that was too short
    may become indexed.

    Raises:
        InvalidInput: the text cannot be stored.
    """
    now, change = now_micros(), Change(content=content)
    memory = fetch_ids(w.c, w.tenant, [row.id]).get(row.id) if row.indexed else None
    if memory is not None:
        w.replace(memory.seq, lambda before: _replaced(before, change, now, bounds, embedder))
    else:
        before = memory_of(row, subject, bounds)
        after = _same(before.row, changed(before.row, change, now, bounds))
        if is_indexed(row.role, content, settings):
            w.insert([Draft(after, named=True)])
            write_message(w.c, row._replace(indexed=1))
        w.edited(before.row, after)
    return messages_by_id(w.c, w.tenant, [row.id])[row.id]


def _replaced(before: Record, change: Change, now: int, bounds: Bounds, embedder: Embedder) -> Draft:
    """Return the memory with another text, its embedding pending."""
    after = _same(before, changed(before, change, now, bounds))
    return Draft(after, named=True, parts=windows(after, embedder), model="")


def _same(before: Record, after: Record) -> Record:
    """Return the changed record with the identity of the message, whatever its text."""
    return after._replace(dedup_key=before.dedup_key)


def memory_of(row: MessageRow, subject: Subject, bounds: Bounds) -> Draft:
    """Return the memory by which search finds a message."""
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
    memory = draft(new, subject, row.created_at, bounds, "")
    if stamp := hidden(row.metadata):
        memory.row = memory.row._replace(metadata=compact_json({**metadata, **stamp}))
    return message_draft(memory, row.key)
