"""What happens to facts when that of which they were made goes, in the same transaction.

- A fact loses a source that goes; with the last one that is a message it goes itself, and one that was extracted with
  the last that a person said. A message whose text became another counts as gone, and facts are taken out of it anew.
- A fact that was put together of others goes with the first of them; the rest hold again by themselves.
- What a fact took the place of holds again when it goes, or until what took its own place.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping, Sequence

from memoranda.clock import now_micros
from memoranda.facts import versions
from memoranda.sessions.records import MessageRow, messages_by_id, session_of
from memoranda.sessions.values import EXTRACT_JOB
from memoranda.store.jobs import Jobs
from memoranda.store.rows import Record, fetch, refs_of
from memoranda.store.transaction import Gone, Writing
from memoranda.text.instructions import EXTRACTED
from memoranda.text.json import compact_json

FACT = "fact"
WAKE_AFTER = (0.1, 2.0)
"""Seconds after which workers look for a job that was placed in a transaction whose end this cannot see."""


class Provenance:
    """Hooks of the store, see `Writing`."""

    def __init__(self, jobs: Jobs, loop: asyncio.AbstractEventLoop) -> None:
        self.jobs = jobs
        self.loop = loop

    def gone(self, w: Writing, told: Sequence[Gone]) -> tuple[int, int]:
        """Memories went, or messages that were in none: what was made of them goes; (rows, vectors)."""
        ids = [one.id for one in told]
        _restore(w, ids)
        return lose(w, ids)

    def edited(self, w: Writing, before: Record, after: Record) -> None:
        """The text of a memory, or of a message, became another."""
        if before.content == after.content and before.kind == after.kind:
            return
        if before.kind == FACT:
            lose(w, [after.id])
        elif before.kind == "message":
            lose(w, [after.id])
            self._again(w, after.id)

    def _again(self, w: Writing, id_: str) -> None:
        """Has facts taken out of a message anew, if they were before."""
        row = messages_by_id(w.c, w.tenant, [id_]).get(id_)
        session = None if row is None else session_of(w.c, w.tenant, row.session_id)
        if row is None or session is None or not row.extract or row.seq > session.facts_seq:
            return
        if session.extraction == "off" or EXTRACT_JOB not in self.jobs.handlers:
            return
        payload = {"session_id": session.id, "messages": [id_]}
        self.jobs.place(w.c, w.tenant, EXTRACT_JOB, payload, dedup_key=f"{session.id} {id_}")
        for seconds in WAKE_AFTER:
            with contextlib.suppress(RuntimeError):  # the loop has ended: the next start looks by itself
                self.loop.call_soon_threadsafe(self.loop.call_later, seconds, self.jobs.wake, EXTRACT_JOB)


def lose(w: Writing, ids: Iterable[str]) -> tuple[int, int]:
    """Takes sources from the facts that rest on them; those that rest on nothing then, and those that were put
    together of facts that are among these, go; (rows, vectors) removed."""
    gone = set(ids)
    rows = _made_of(w, gone)
    left = {row.seq: [ref for ref in refs_of(row) if ref not in gone] for row in rows}
    said = messages_by_id(w.c, w.tenant, {ref for refs in left.values() for ref in refs})
    going = [row.seq for row in rows if _ends(row, gone, left[row.seq], said)]
    staying = set(left) - set(going)
    w.mark(staying, lambda row: row._replace(source_refs=compact_json(left[row.seq])))
    return w.remove(going) if going else (0, 0)


def _ends(row: Record, gone: set[str], left: Sequence[str], said: Mapping[str, MessageRow]) -> bool:
    """Return True if a fact cannot stay: a part of it went, or the last message it rests on, or only what an assistant
    or a tool said is left of its sources."""
    if gone & set(versions.parts_of(row)) or all(ref.startswith("resp_") for ref in left):
        return True
    messages = [said[ref] for ref in left if ref in said]
    extracted = row.source == EXTRACTED and bool(messages)
    return extracted and not any(message.personal for message in messages)


def cut(w: Writing, message_ids: Sequence[str], response_id: str | None = None) -> int:
    """Takes messages and a response from the sources of facts, which stay without them: for a response that is deleted
    while what was learned from it is kept. Facts that changed."""
    gone = {*message_ids, *([response_id] if response_id is not None else [])}
    rows = _made_of(w, gone)
    w.mark(
        [row.seq for row in rows],
        lambda row: row._replace(source_refs=compact_json([ref for ref in refs_of(row) if ref not in gone])),
    )
    return len(rows)


def _made_of(w: Writing, ids: set[str]) -> list[Record]:
    """The facts that rest on any of these."""
    listed = compact_json(sorted(ids))
    seqs = [int(seq) for (seq,) in w.c.all("made_of", [w.tenant, listed])]
    return [row for row in fetch(w.c, w.tenant, seqs).values() if row.kind == FACT]


def _restore(w: Writing, ids: Sequence[str]) -> None:
    """What was superseded by memories that went is not any more."""
    seqs = [int(seq) for (seq,) in w.c.all("facts_ended_by", [w.tenant, compact_json(list(ids))])]
    if seqs:
        now = now_micros()
        w.mark(
            seqs,
            lambda row: versions.restored(row, [row.superseded_by or ""], now, "what took its place is gone"),
        )
