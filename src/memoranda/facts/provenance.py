"""What happens to facts when their sources are deleted, in the same transaction.

- A fact loses a source that goes; with the last one that is a message it goes itself, and one that was extracted with
  the last that a person said. A message whose text became another counts as gone, and facts are taken out of it anew.
- A fact with words that a source said which goes, and none that is left (`grounding.lost_words`), goes as well, and the
  messages that are left are read again. A tag with such words goes alone.
- A fact that was put together of others goes with the first of them; the rest hold again by themselves.
- What a fact took the place of holds again when it goes, or until what took its own place.
- On one source thousands of facts may rest. A transaction changes a bounded number of them and leaves the others to a
  job, which the request for the change runs before it answers (`Jobs.finish`). What the sources said is kept for it in
  memory, not in its row; without it, in another process, all words are lost that no source that is left said.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence, Set
from functools import cache, partial
from typing import Any, NamedTuple

from memoranda.clock import now_micros
from memoranda.facts import versions
from memoranda.facts.grounding import Source, lost_words, positions, words_of
from memoranda.facts.plans import source_of
from memoranda.sessions.records import MessageRow, messages_by_id, sessions_by_id
from memoranda.sessions.values import EXTRACT_JOB
from memoranda.storage.sql.base import Connection, Row
from memoranda.store.changes import MARKS, parted
from memoranda.store.core import Core
from memoranda.store.forget_preview import Preview
from memoranda.store.ids import listed
from memoranda.store.job_kinds import RELEASE_JOB, Run
from memoranda.store.rows import Record, fetch, fetch_ids, linked_to, refs_of, speaker_of
from memoranda.store.transaction import RemovedMemory, Writing
from memoranda.text.hashing import digest
from memoranda.text.instructions import EXTRACTED, TAG
from memoranda.text.stored import compact_json

FACT, MESSAGE = "fact", "message"
LATEST = 1 << 62
"""A revision beyond all others."""
RELEASE_AFTER = 1.0
"""Seconds after which a worker goes on, if the request for the change has not finished the job."""
KEPT_SECONDS = 300.0
"""Seconds for which this process keeps what deleted sources said, at most: a job that needs it runs at once."""
READ_AGAIN_AFTER = 2.0
"""Seconds after which messages that are left are read again: the same request may delete them, too."""
Sources = Mapping[str, Source | None]
"""Sources that are deleted, by id; None if what one said is not known any more."""
Heirs = Mapping[str, tuple[str, int]]
"""What took the place of facts that are deleted, and since when (microseconds), by id of the deleted."""


class Provenance:
    """Hooks of the store, see `Writing`, and the handler of the job that continues them."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self.core = core
        self.jobs = core.jobs
        self.loop = loop
        self._said: dict[str, Sources] = {}
        """What deleted sources said, by key of the job that needs it."""

    def gone(self, w: Writing, removed: Sequence[RemovedMemory]) -> tuple[int, int]:
        """Delete the facts that rest on removed memories or messages; return (rows, vectors)."""
        sources = {item.id: Source(item.content, item.name) for item in removed}
        heirs = _heirs(removed)
        part = _part(w, [*sources])
        if part.more:
            self._leave(w, sources, part.last, heirs)
        self._restore(w, part.superseded, heirs)
        return self._let_go(w, sources, part.resting)

    def edited(self, w: Writing, before: Record, after: Record) -> None:
        """Update the facts of an edited memory or message."""
        if before.content == after.content and before.kind == after.kind:
            return
        if before.kind not in (FACT, MESSAGE):
            return
        sources = {after.id: _source(before)}
        part = _part(w, [after.id], edited=True)
        if part.more:
            self._leave(w, sources, part.last, edited=True)
        self._let_go(w, sources, _touched(part.resting, sources, {after.id: _source(after)}))
        if not part.more:
            self._again(w, [after.id])

    def _leave(
        self, w: Writing, sources: Sources, last: int, heirs: Heirs | None = None, *, edited: bool = False
    ) -> None:
        """Leave the facts after the `last` row to a job if one transaction is too short, before anything changes: facts
        to be deleted are not restored meanwhile. The job skips facts that are written later: they rest on the present
        text of a message."""
        bounds = {"after": last, "until": w.draw(1)}
        payload = {"sources": sorted(sources), "heirs": heirs or {}, **bounds, "edited": edited}
        payload |= {"by_request": True} if w.by_request else {}
        key = _key(payload)
        self._said[key] = sources
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self._drop_later, key)
        self._place(w, RELEASE_JOB, payload, key, delay=RELEASE_AFTER)

    def _drop_later(self, key: str) -> None:
        self.loop.call_later(KEPT_SECONDS, self._said.pop, key, None)

    async def release(self, run: Run) -> dict[str, Any]:
        """Handler of that job: continue until nothing rests on the sources; return the numbers of memories and vectors
        deleted. Only then are facts of an edited message extracted again."""
        ids, until, edited = list(run.payload["sources"]), int(run.payload["until"]), run.payload["edited"]
        heirs, after = run.payload.get("heirs", {}), int(run.payload.get("after", 0))
        totals = Counter[str]()
        sources = self._sources(run.payload)

        def step(w: Writing, after: int) -> tuple[tuple[int, int], _Part]:
            w.draw(1)  # others that remove sources wait
            w.by_request = run.payload.get("by_request", False)
            part = _part(w, ids, until, after, edited=edited)
            self._restore(w, part.superseded, heirs)
            resting = part.resting
            if edited:
                present = _texts_of(w.c, w.tenant, ids, messages_by_id(w.c, w.tenant, ids))
                resting = _touched(resting, sources, present)
            removed = self._let_go(w, sources, resting)
            if edited and not part.more:
                self._again(w, ids)
            return removed, part

        more = True
        while more:
            work = partial(step, after=after)
            (rows, vectors), part = await self.core.threads.result(self.core.store.transact(run.tenant, work))
            more, after = part.more, max(part.last, after)
            totals.update(memories=rows, vectors=vectors)
            await run.report(totals["memories"])
        self._said.pop(_key(run.payload), None)
        return dict(totals)

    def _sources(self, payload: Mapping[str, Any]) -> Sources:
        """Return the sources of a job."""
        return self._said.get(_key(payload)) or dict.fromkeys(payload["sources"])

    def _let_go(self, w: Writing, sources: Sources, rows: Sequence[Record]) -> tuple[int, int]:
        """Remove sources from facts, and delete those that end without them; return (rows, vectors) removed."""
        losses = _losses(w.c, w.tenant, rows, sources)
        going = [loss.before.seq for loss in losses if loss.after is None]
        staying = {loss.after.seq: loss.after for loss in losses if loss.after is not None}

        def change(row: Record) -> Record:
            return versions.without(row, sources.keys())._replace(tags=staying[row.seq].tags)

        w.mark(staying, change)
        removed = w.remove(going) if going else (0, 0)
        about = defaultdict[str, set[str]](set)
        for loss in losses:
            words = words_of(Source(loss.before.content)) if loss.again else frozenset()
            for id_ in loss.again:
                about[id_] |= words
        self._again(w, [*about], about, delay=READ_AGAIN_AFTER)
        return removed

    def _restore(self, w: Writing, rows: Sequence[Record], heirs: Heirs) -> None:
        """Restore facts of which the replacement is deleted, until what took the place of that. A fact that jobs are
        about to delete stays ended until then, so that it never reappears."""
        pending = w.c.all("jobs_under_way", [w.tenant, RELEASE_JOB]) if rows else ()
        jobs, now = [json.loads(payload) for _, payload in pending], now_micros()
        there = fetch_ids(w.c, w.tenant, [by for by, _ in heirs.values()]) if rows and heirs else {}
        leaving = set[int]()
        for row in rows if jobs else ():
            sources = dict[str, Source | None]()
            for job in jobs:
                if row.seq <= job["until"]:
                    sources |= self._sources(job)
            leaving |= {
                loss.before.seq for loss in _losses(w.c, w.tenant, [row], sources) if loss.after is None
            }

        def change(row: Record) -> Record:
            if row.seq in leaving:
                return row._replace(superseded_by=None)
            by = row.superseded_by or ""
            if by in heirs and heirs[by][0] in there:
                return versions.ended(row, *heirs[by], now, "superseded")
            return versions.restored(row, [by], now, "what took its place is gone")

        w.mark([row.seq for row in rows], change)

    def _again(
        self,
        w: Writing,
        ids: Sequence[str],
        about: Mapping[str, Set[str]] | None = None,
        *,
        delay: float = 0.0,
    ) -> None:
        """Enqueue the extraction of messages again, of those that were extracted before: a job for each session. Of
        messages that did not change, only facts about the words of deleted facts are wanted: other facts of theirs may
        have been deleted or undone by hand. The job has the positions of these words, no texts."""
        if not ids or EXTRACT_JOB not in self.jobs.kinds:
            return
        rows = messages_by_id(w.c, w.tenant, ids).values()
        sessions = sessions_by_id(w.c, w.tenant, {row.session_id for row in rows})
        read = defaultdict[str, dict[str, list[tuple[int, int]]]](dict)
        for row in rows:
            session = sessions.get(row.session_id)
            if session is None or session.extraction == "off":
                continue
            if row.extract and row.seq <= session.facts_seq:
                spans = [] if about is None else positions(about[row.id], row.content)
                if spans or about is None:
                    read[session.id][row.id] = spans
        for id_, messages in read.items():
            payload: dict[str, Any] = {"session_id": id_, "messages": [*messages]}
            if about is not None:
                payload["about"] = messages
            self._place(w, EXTRACT_JOB, payload, f"{id_} {digest(compact_json(payload))}", delay=delay)

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

    @property
    def last(self) -> int:
        """The row of the last fact that rests on them; 0 if none does."""
        return max((row.seq for row in self.resting), default=0)


def _part(
    w: Writing, ids: Sequence[str], until: int = LATEST, after: int = 0, *, edited: bool = False
) -> _Part:
    """Return at most `MARKS` facts of each kind, of those that were written up to a revision; `after` has the last row
    of those that rest on the sources and were changed before."""
    resting, more = _some(w, "facts_made_of", ids, until, after)
    superseded, others = ([], False) if edited else _some(w, "facts_to_restore", ids, until)
    return _Part(resting, superseded, more or others)


def _some(w: Writing, statement: str, ids: Sequence[str], *bounds: int) -> tuple[list[Record], bool]:
    keys = [w.tenant, compact_json(sorted(ids)), *bounds, MARKS + 1]
    seqs = [int(seq) for (seq,) in w.c.all(statement, keys)]
    return list(fetch(w.c, w.tenant, seqs[:MARKS]).values()), len(seqs) > MARKS


class _Loss(NamedTuple):
    """What becomes of a fact that loses sources: the row as it is, and as it is without them (None: it is deleted), and
    the messages to read again."""

    before: Record
    after: Record | None
    again: Sequence[str] = ()


def _losses(c: Connection, tenant: str, rows: Sequence[Record], sources: Sources) -> list[_Loss]:
    """Return what becomes of facts without these sources, which may also be of their context."""
    staying = {row.seq: versions.without(row, sources.keys()) for row in rows}
    named = {ref for row in staying.values() for ref in linked_to(row)}
    messages = messages_by_id(c, tenant, named)
    texts = _texts_of(c, tenant, named, messages)
    words = cache(words_of)

    def loss(row: Record) -> _Loss:
        after = staying[row.seq]
        refs, linked = refs_of(after), linked_to(after)
        if _ends(row, sources.keys(), refs, messages):
            return _Loss(row, None)
        going = [sources[ref] for ref in linked_to(row) if ref in sources]
        known = [words(source) for source in going if source is not None]

        def loses(text: str) -> bool:
            left = (words(texts[ref]) for ref in linked if ref in texts)
            return bool(lost_words(text, known if len(known) == len(going) else None, left))

        if loses(row.content):
            return _Loss(row, None, [ref for ref in refs if ref in messages] if _is_current(row) else ())
        tags = [tag for tag in json.loads(row.tags) if tag == TAG or not loses(tag)]
        return _Loss(row, after._replace(tags=compact_json(tags)))

    return [loss(row) for row in rows]


def _heirs(removed: Sequence[RemovedMemory]) -> dict[str, tuple[str, int]]:
    """Return what took the place of removed facts and is not removed itself, one after the other."""
    facts = {item.id: item for item in removed}
    ends = dict[str, RemovedMemory]()
    for item in removed:
        chain, end = set[str](), item
        while end.id not in ends and end.id not in chain:  # imported facts may form a ring
            chain.add(end.id)
            end = facts.get(end.superseded_by or "", end)
        ends |= dict.fromkeys(chain, ends.get(end.id, end))
    return {
        id_: (end.superseded_by, end.invalid_at)
        for id_, end in ends.items()
        if end.superseded_by is not None and end.invalid_at is not None
    }


def _touched(rows: Sequence[Record], before: Sources, after: Mapping[str, Source]) -> list[Record]:
    """Return the facts that edited messages or memories change: those that rest on one, and those with a word that one
    of their context does not say any more."""
    lost = {
        id_: words_of(said) - words_of(after[id_])
        for id_, said in before.items()
        if said is not None and id_ in after
    }

    def is_touched(row: Record) -> bool:
        linked = before.keys() & set(linked_to(row))
        if linked & set(refs_of(row)) or linked - lost.keys():
            return True
        return any(lost[id_] & _written_in(row) for id_ in linked)

    return [row for row in rows if is_touched(row)]


def _written_in(row: Record) -> frozenset[str]:
    """Return the words of the text and the tags of a fact."""
    return words_of(Source(" ".join((row.content, *json.loads(row.tags)))))


def _is_current(row: Record) -> bool:
    """Return True if a fact was extracted, and not archived, ended or undone by hand."""
    ended = row.superseded_by is None and row.invalid_at != versions.metadata_of(row).get("told_until")
    return row.source == EXTRACTED and row.archived_at is None and not ended and not versions.is_undone(row)


def _texts_of(
    c: Connection, tenant: str, ids: Collection[str], messages: Mapping[str, MessageRow]
) -> dict[str, Source]:
    """Return what messages and memories say, by id."""
    texts = {id_: source_of(row) for id_, row in messages.items()}
    others = sorted(set(ids) - texts.keys())
    return texts | {
        id_: _source(row) for id_, row in (fetch_ids(c, tenant, others) if others else {}).items()
    }


def _source(row: Record) -> Source:
    return Source(row.content, speaker_of(row.metadata, None) or row.user_id)


def _key(payload: Mapping[str, Any]) -> str:
    return digest(compact_json(payload))


async def count_facts(run: Preview, ids: Sequence[str]) -> None:
    """Count the facts that go with some messages and memories, if all of `run.gone` does."""
    tenant = run.aim.tenant
    resting = await run.read(lambda c: c.all("facts_made_of", [tenant, listed(ids), LATEST, 0, LATEST]))
    for some in parted(resting, lambda _: 1, MARKS):

        def read(c: Connection, seqs: Sequence[Row] = some) -> list[Record]:
            rows = [*fetch(c, tenant, [seq for (seq,) in seqs]).values()]
            named = {
                ref for row in rows for ref in (*linked_to(row), *versions.parts_of(row)) if ref in run.gone
            }
            texts = _texts_of(c, tenant, named, messages_by_id(c, tenant, named))
            losses = _losses(c, tenant, rows, {id_: texts.get(id_, Source("")) for id_ in named})
            return [loss.before for loss in losses if loss.after is None]

        await run.memories(await run.read(read))


def _ends(row: Record, deleted: Set[str], left: Sequence[str], said: Mapping[str, MessageRow]) -> bool:
    """Return True if a fact cannot stay: a part of it or the last message it rests on is deleted, or only messages of
    an assistant or a tool are left of its sources."""
    if deleted & set(versions.parts_of(row)):
        return True
    if not deleted & set(refs_of(row)):
        return False
    if all(ref.startswith("resp_") for ref in left):
        return True
    messages = [said[ref] for ref in left if ref in said]
    extracted = row.source == EXTRACTED and bool(messages)
    return extracted and not any(message.personal for message in messages)


def cut(w: Writing, message_ids: Sequence[str], response_id: str | None = None) -> bool:
    """Remove messages and a response from the sources of facts, which stay without them: for a response that is deleted
    while its facts are kept. At most `MARKS` facts change; return True if there are more."""
    deleted = {*message_ids, *([response_id] if response_id is not None else [])}
    rows, more = _some(w, "facts_made_of", [*deleted], LATEST, 0)
    w.mark([row.seq for row in rows], lambda row: versions.without(row, deleted))
    return more
