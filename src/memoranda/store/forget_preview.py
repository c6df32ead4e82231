"""What a request to forget would erase: the erasers go through it, and nothing changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Sequence
from itertools import islice
from typing import TypeVar

from memoranda.concurrency.threads import Threads
from memoranda.filters import matches
from memoranda.storage.sql.base import Connection
from memoranda.store.access import visible_to
from memoranda.store.changes import ROWS, parted
from memoranda.store.forgetting import NOTHING, Aim, ErasedCounts, Eraser, Forgetting, Work, erase_memories
from memoranda.store.jobs import Jobs
from memoranda.store.rows import Record, attributes, to_memory
from memoranda.store.store import Store
from memoranda.types import ForgetPreview, KindPreview

T = TypeVar("T")
SUMMARY = "session_summary"
FILES = "files"
"""The kind of rows that are named by id and file name."""


class Preview(Forgetting):
    """One preview of `forget`. `gone` are the ids of the messages and memories that would be erased, `summaries` the
    sessions of summaries among them, by their ids."""

    erasing = False

    def __init__(self, store: Store, jobs: Jobs, threads: Threads, aim: Aim, examples: int) -> None:
        super().__init__(store, jobs, threads, aim)
        self.gone: set[str] = set()
        self.summaries: dict[str, str] = {}
        self._examples = examples
        self._seqs: set[int] = set()
        self._numbers: Counter[str] = Counter()
        self._named: dict[str, dict[Hashable, None]] = {}
        self._kinds: dict[str, KindPreview] = {}
        self._visible = visible_to(aim.subject)

    async def run(self, erasers: Sequence[Eraser], derived: Sequence[Derived]) -> ForgetPreview:
        """Go through the selected rows of all packages, then through what goes with them."""
        for erase in (erase_memories, *erasers):
            await erase(self)
        followed = set[str]()
        while fresh := self.gone - followed:
            followed |= fresh
            for ids in parted(sorted(fresh), lambda _: 1, ROWS):
                for count in derived:
                    await count(self, ids)
        counts = self._numbers + Counter({kind: len(rows) for kind, rows in self._named.items()})
        counts["memories"] = len(self._seqs)
        return ForgetPreview(
            counts={kind: number for kind, number in sorted(counts.items()) if number},
            kinds=sorted(self._kinds.values(), key=lambda kind: (-kind.count, kind.kind)),
            files=[
                str(row[1])
                for row in islice(self._named.get(FILES, {}), self._examples)
                if isinstance(row, tuple)
            ],
        )

    async def change(self, work: Work, found: ErasedCounts = NOTHING, sources: Collection[str] = ()) -> None:
        """Count what `work` would erase."""
        await self.count(found, sources)

    async def count(self, found: ErasedCounts, sources: Collection[str] = ()) -> None:
        """Count rows by kind, and the memories whose ids are among `sources`."""
        for kind, rows in found.items():
            if isinstance(rows, int):
                self._numbers[kind] += rows
            else:
                self._named.setdefault(kind, {}).update(dict.fromkeys(rows))
        if sources:
            self.gone |= set(sources)
            there = await self.threads.run(self.store.by_id, self.aim.tenant, list(sources))
            await self.memories([*there.values()])

    async def memories(self, rows: Sequence[Record]) -> None:
        """Count memories that were not counted yet."""
        fresh = [row for row in rows if row.seq not in self._seqs]
        self._seqs |= {row.seq for row in fresh}
        self.gone |= {row.id for row in fresh}
        for row in fresh:
            if row.kind == SUMMARY and row.session_id is not None:
                self.summaries[row.id] = row.session_id
            kind = self._kinds.setdefault(row.kind, KindPreview(kind=row.kind))
            kind.count += 1
            kind.ended += row.archived_at is not None or row.superseded_by is not None
            if len(kind.examples) < self._examples and matches(self._visible, attributes(row)):
                kind.examples.append(to_memory(row))

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return what `work` reads of the tenant's rows."""
        return await self.threads.run(self.store.db.read, work, self.aim.tenant)


Derived = Callable[[Preview, Sequence[str]], Awaitable[None]]
"""Counts what goes with a page of erased messages and memories in one package, see `Preview.gone`. In an erasure it
goes in the same transactions, see `Writing`."""
