"""What a request to forget would erase: the erasers go through it, and nothing changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from memoranda.concurrency.threads import Threads
from memoranda.filters import matches
from memoranda.storage.sql.base import Connection
from memoranda.store.access import visible_to
from memoranda.store.forgetting import NOTHING, Aim, Eraser, Forgetting, Work, erase_memories
from memoranda.store.ids import listed
from memoranda.store.jobs import Jobs
from memoranda.store.rows import Record, attributes, fetch, fetch_ids, refs_of, to_memory
from memoranda.store.store import Store
from memoranda.types import ForgetPreview, KindPreview

SUMMARY = "session_summary"


class Preview(Forgetting):
    """One preview of `forget`. `gone` are the ids of the messages, memories and sessions that would lose something or
    be erased, with which others go."""

    erasing = False

    def __init__(self, store: Store, jobs: Jobs, threads: Threads, aim: Aim, examples: int) -> None:
        super().__init__(store, jobs, threads, aim)
        self._examples = examples
        self.gone: set[str] = set()
        self._seqs: set[int] = set()
        self._numbers: Counter[str] = Counter()
        self._ids: dict[str, set[str]] = {}
        self._kinds: dict[str, KindPreview] = {}
        self._visible = visible_to(aim.subject)

    async def run(self, erasers: Sequence[Eraser]) -> ForgetPreview:
        """Go through the selected rows of all packages once."""
        for erase in (erase_memories, *erasers):
            await erase(self)
        counts = self._numbers + Counter({kind: len(ids) for kind, ids in self._ids.items()})
        counts["memories"] = len(self._seqs)
        return ForgetPreview(
            counts={kind: number for kind, number in sorted(counts.items()) if number},
            kinds=sorted(self._kinds.values(), key=lambda kind: (-kind.count, kind.kind)),
        )

    async def change(
        self, work: Work, found: Mapping[str, int | Collection[str]] = NOTHING, sources: Collection[str] = ()
    ) -> None:
        """Count what `work` would erase."""
        await self.count(found, sources)

    async def count(self, found: Mapping[str, int | Collection[str]], sources: Collection[str] = ()) -> None:
        """Count rows by kind, and the memories that go with `sources`."""
        for kind, rows in found.items():
            if isinstance(rows, int):
                self._numbers[kind] += rows
            else:
                self._ids.setdefault(kind, set()).update(rows)
        if sources:
            self.gone |= set(sources)
            await self.memories(await self.threads.run(self._going, list(sources)))

    async def memories(self, rows: Sequence[Record]) -> None:
        """Count memories that were not counted yet."""
        fresh = [row for row in rows if row.seq not in self._seqs]
        self._seqs |= {row.seq for row in fresh}
        self.gone |= {row.id for row in fresh}
        for row in fresh:
            kind = self._kinds.setdefault(row.kind, KindPreview(kind=row.kind))
            kind.count += 1
            kind.ended += row.archived_at is not None or row.superseded_by is not None
            if len(kind.examples) < self._examples and matches(self._visible, attributes(row)):
                kind.examples.append(to_memory(row))
        sessions = {ref for row in fresh if row.kind == SUMMARY for ref in refs_of(row)}
        if sessions:  # the rollups that a summary is part of
            await self.memories(await self.threads.run(self._going, list(sessions)))

    def _going(self, sources: Sequence[str]) -> list[Record]:
        """Return the memories of these ids, and those that are made of them and go with any: summaries, rollups,
        questions to documents."""
        tenant = self.aim.tenant

        def read(c: Connection) -> list[Record]:
            made = [int(seq) for (seq,) in c.all("derived_of", [tenant, listed(sources)])]
            return [*fetch_ids(c, tenant, sources).values(), *fetch(c, tenant, made).values()]

        return self.store.db.read(read, tenant)
