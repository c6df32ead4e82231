"""What happens to facts when their sources are deleted, in the same transaction.

- A fact loses a source that goes; with the last one that is a message it goes itself, and one that was extracted with
  the last that a person said. A message whose text became another counts as gone, and facts are taken out of it anew.
- A fact that was put together of others goes with the first of them; the rest hold again by themselves.
- What a fact took the place of holds again when it goes, or until what took its own place.
- On one source thousands of facts may rest. A transaction changes a bounded number of them and leaves the others to a
  job, which the request for the change runs before it answers (`Jobs.finish`).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from memoranda.clock import now_micros
from memoranda.facts import versions
from memoranda.sessions.records import MessageRow, messages_by_id, session_of
from memoranda.sessions.values import EXTRACT_JOB
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.core import Core
from memoranda.store.forget_preview import Preview
from memoranda.store.ids import listed
from memoranda.store.jobs import RELEASE_JOB, Run
from memoranda.store.rows import Record, fetch, refs_of
from memoranda.store.steps import ROWS, parted
from memoranda.store.transaction import Gone, Writing
from memoranda.text.hashing import digest
from memoranda.text.instructions import EXTRACTED
from memoranda.text.json import compact_json

FACT, MESSAGE = "fact", "message"
LATEST = 1 << 62
"""A revision beyond all others."""
RELEASE_AFTER = 1.0
"""Seconds after which a worker goes on, if the request for the change has not finished the job."""


class Provenance:
    """Hooks of the store, see `Writing`, and the handler of the job that continues them."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self.core = core
        self.jobs = core.jobs
        self.loop = loop

    def gone(self, w: Writing, removed: Sequence[Gone]) -> tuple[int, int]:
        """Delete the facts that rest on removed memories or messages; return (rows, vectors)."""
        ids = [item.id for item in removed]
        part = _part(w, ids)
        if part.more:
            self._leave(w, ids)
        return _let_go(w, ids, part)

    def edited(self, w: Writing, before: Record, after: Record) -> None:
        """Update the facts of an edited memory or message."""
        if before.content == after.content and before.kind == after.kind:
            return
        if before.kind not in (FACT, MESSAGE):
            return
        part = _part(w, [after.id], edited=True)
        if part.more:
            self._leave(w, [after.id], edited=True)
        _let_go(w, [after.id], part)
        if not part.more:
            self._again(w, after.id)

    def _leave(self, w: Writing, ids: Sequence[str], *, edited: bool = False) -> None:
        """Leave the rest to a job if one transaction is too short, before anything changes: facts to be deleted are not
        restored meanwhile. The job skips facts that are written later: they rest on the present text of a message."""
        payload = {"sources": sorted(ids), "until": w.draw(1), "edited": edited}
        self._place(w, RELEASE_JOB, payload, digest(compact_json(payload)), delay=RELEASE_AFTER)

    async def release(self, run: Run) -> dict[str, Any]:
        """Handler of that job: continue until nothing rests on the sources; return the numbers of memories and vectors
        deleted. Only then are facts of an edited message extracted again."""
        ids, until, edited = list(run.payload["sources"]), int(run.payload["until"]), run.payload["edited"]
        totals = Counter[str]()

        def step(w: Writing) -> tuple[tuple[int, int], bool]:
            w.draw(1)  # others that remove sources wait
            part = _part(w, ids, until, edited=edited)
            removed = _let_go(w, ids, part)
            if edited and not part.more:
                self._again(w, ids[0])
            return removed, part.more

        more = True
        while more:
            (rows, vectors), more = await self.core.threads.result(self.core.store.transact(run.tenant, step))
            totals.update(memories=rows, vectors=vectors)
            await run.report(totals["memories"])
        return dict(totals)

    def _again(self, w: Writing, id_: str) -> None:
        """Enqueue the extraction of a message again, if it was extracted before."""
        row = messages_by_id(w.c, w.tenant, [id_]).get(id_)
        session = None if row is None else session_of(w.c, w.tenant, row.session_id)
        if row is None or session is None or not row.extract or row.seq > session.facts_seq:
            return
        if session.extraction == "off" or EXTRACT_JOB not in self.jobs.handlers:
            return
        payload = {"session_id": session.id, "messages": [id_]}
        self._place(w, EXTRACT_JOB, payload, f"{session.id} {id_}")

    def _place(self, w: Writing, kind: str, payload: dict[str, Any], key: str, *, delay: float = 0.0) -> None:
        self.jobs.place(w.c, w.tenant, kind, payload, dedup_key=key, delay=delay)
        w.then(partial(self._wake, kind))

    def _wake(self, kind: str) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended: the next start looks by itself
            self.loop.call_soon_threadsafe(self.jobs.wake, kind)


class _Part(NamedTuple):
    """What one transaction changes when sources are deleted: facts that rest on them, facts that these superseded, and
    whether there are more."""

    resting: list[Record]
    superseded: list[Record]
    more: bool


def _part(w: Writing, ids: Sequence[str], until: int = LATEST, *, edited: bool = False) -> _Part:
    """Return at most `ROWS` facts of each kind, of those that were written up to a revision."""
    resting, more = _some(w, "facts_made_of", ids, until)
    superseded, others = ([], False) if edited else _some(w, "facts_to_restore", ids, until)
    return _Part(resting, superseded, more or others)


def _some(w: Writing, statement: str, ids: Sequence[str], until: int = LATEST) -> tuple[list[Record], bool]:
    seqs = [int(seq) for (seq,) in w.c.all(statement, [w.tenant, compact_json(sorted(ids)), until, ROWS + 1])]
    return list(fetch(w.c, w.tenant, seqs[:ROWS]).values()), len(seqs) > ROWS


def _let_go(w: Writing, ids: Sequence[str], part: _Part) -> tuple[int, int]:
    """Remove sources from facts. Facts without a source, and those consolidated of facts among the sources, are
    deleted; facts that the sources superseded are restored. Return (rows, vectors) removed."""
    _restore(w, part.superseded)
    gone = set(ids)
    going = [row.seq for row in _ending(w.c, w.tenant, part.resting, gone)]
    staying = {row.seq for row in part.resting} - set(going)
    w.mark(staying, lambda row: _without(row, gone))
    return w.remove(going) if going else (0, 0)


def _restore(w: Writing, rows: Sequence[Record]) -> None:
    """Restore facts of which the replacement is deleted. A fact that jobs are about to delete stays ended until then,
    so that it never reappears."""
    pending = w.c.all("jobs_under_way", [w.tenant, RELEASE_JOB]) if rows else ()
    jobs, now = [json.loads(payload) for _, payload in pending], now_micros()
    leaving = set[int]()
    for row in rows if jobs else ():
        gone = {source for job in jobs if row.seq <= job["until"] for source in job["sources"]}
        leaving |= {fact.seq for fact in _ending(w.c, w.tenant, [row], gone)}

    def change(row: Record) -> Record:
        if row.seq in leaving:
            return row._replace(superseded_by=None)
        return versions.restored(row, [row.superseded_by or ""], now, "what took its place is gone")

    w.mark([row.seq for row in rows], change)


def _ending(c: Connection, tenant: str, rows: Sequence[Record], gone: set[str]) -> list[Record]:
    """Return those of some facts that are deleted with these sources."""
    left = {row.seq: refs_of(_without(row, gone)) for row in rows}
    said = messages_by_id(c, tenant, {ref for refs in left.values() for ref in refs})
    return [row for row in rows if _ends(row, gone, left[row.seq], said)]


async def count_facts(run: Preview, ids: Sequence[str]) -> None:
    """Count the facts that go with some messages and memories, if all of `run.gone` does."""
    tenant = run.aim.tenant
    resting = await run.read(lambda c: c.all("facts_made_of", [tenant, listed(ids), LATEST, LATEST]))
    for some in parted(resting, lambda _: 1, ROWS):

        def read(c: Connection, seqs: Sequence[Row] = some) -> list[Record]:
            return _ending(c, tenant, [*fetch(c, tenant, [seq for (seq,) in seqs]).values()], run.gone)

        await run.memories(await run.read(read))


def _without(row: Record, gone: set[str]) -> Record:
    return row._replace(source_refs=compact_json([ref for ref in refs_of(row) if ref not in gone]))


def _ends(row: Record, gone: set[str], left: Sequence[str], said: Mapping[str, MessageRow]) -> bool:
    """Return True if a fact cannot stay: a part of it or the last message it rests on is deleted, or only messages of
    an assistant or a tool are left of its sources."""
    if gone & set(versions.parts_of(row)) or all(ref.startswith("resp_") for ref in left):
        return True
    messages = [said[ref] for ref in left if ref in said]
    extracted = row.source == EXTRACTED and bool(messages)
    return extracted and not any(message.personal for message in messages)


def cut(w: Writing, message_ids: Sequence[str], response_id: str | None = None) -> bool:
    """Remove messages and a response from the sources of facts, which stay without them: for a response that is deleted
    while its facts are kept. At most `ROWS` facts change; return True if there are more."""
    gone = {*message_ids, *([response_id] if response_id is not None else [])}
    rows, more = _some(w, "facts_made_of", [*gone])
    w.mark([row.seq for row in rows], lambda row: _without(row, gone))
    return more
