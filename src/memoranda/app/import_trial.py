"""The dry run of an import into a folder: each write is made in transactions that are rolled back, as long as those of
the import."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from memoranda.app.history_import import Add, Observe, new_ends
from memoranda.app.history_report import Stored
from memoranda.clock import micros
from memoranda.errors import Conflict, MemorandaError
from memoranda.facts.insertion import learn
from memoranda.facts.writing import plans_of
from memoranda.memories.memories import Memories
from memoranda.sessions.sessions import Sessions
from memoranda.store.changes import DRAFTS, Outcome, parted
from memoranda.store.core import Core
from memoranda.store.rows import Draft, Record, fetch, to_memory
from memoranda.store.transaction import Writing, no_two_texts
from memoranda.text.hashing import digest
from memoranda.types import Added

T = TypeVar("T")


class _RolledBack(Exception):
    """Ends a transaction without a commit; has its result."""

    def __init__(self, result: Any) -> None:
        super().__init__("the transaction is rolled back")
        self.result = result


class Trial:
    """What would become of the writes of an import, one after the other. No model is called."""

    def __init__(self, core: Core, memories: Memories, sessions: Sessions) -> None:
        self._core = core
        self._memories = memories
        self._sessions = sessions
        self._keys: dict[str, str] = {}
        """What earlier writes would have stored: the id of each memory and the text of each message, by key."""
        self._ids: set[str] = set()
        self._facts = _Facts()
        self._ends: dict[str, int] = {}
        """When stored memories would have ended by earlier writes, by id. Microseconds."""

    async def perform(self, write: Observe | Add) -> Sequence[Stored]:
        """Return what would become of each part of a write. Errors as the write itself."""
        return await (self._observe(write) if isinstance(write, Observe) else self._add(write))

    async def _observe(self, write: Observe) -> Sequence[Stored]:
        ready = await self._sessions.prepare(write.messages, **write.place)
        known = ChainMap({}, self._keys)
        stored: list[Stored] = []
        for some in ready.steps(self._core.config.sessions.batch_size):
            for row, created in [row for _, logged in await self._tried(some.write) for row in logged.rows]:
                stored.append("created" if created and row.key not in known else "present")
                text = digest(row.content)
                if created and known.setdefault(row.key, text) != text:
                    raise Conflict("id: already names another text")
        self._keys |= known.maps[0]
        return stored

    async def _add(self, write: Add) -> Sequence[Stored]:
        before = self._facts.count
        try:
            return await self._added(write)
        except MemorandaError:
            self._facts.remove_after(before)
            raise

    async def _added(self, write: Add) -> Sequence[Stored]:
        known, ids = ChainMap({}, self._keys), set[str]()
        stored: list[Stored] = []
        added: list[Added] = []
        for each in await self._outcomes(self._memories.prepare(write.memories)):
            key, id_ = each.row.dedup_key, each.row.id
            fresh = each.created and key not in known
            if fresh and (id_ in self._ids or id_ in ids):
                raise Conflict("id: already names another text")
            if fresh:
                known[key] = id_
                ids.add(id_)
            stored.append("created" if fresh else "present")
            memory = to_memory(each.row)
            added.append(Added(memory=memory, created=each.created, embedded=each.embedded))
        for place, at in new_ends(write.memories, added).items():
            id_ = added[place].memory.id
            if id_ not in self._ends:
                self._ends[id_] = micros(at)
                stored[place] = "ended"
        self._keys |= known.maps[0]
        self._ids |= ids
        return stored

    async def _outcomes(self, drafts: Sequence[Draft]) -> list[Outcome]:
        """Return what would become of memories, as `Core.write`."""
        no_two_texts(drafts)
        facts = [at for at, draft in enumerate(drafts) if draft.row.kind == "fact"]
        plain = [at for at, draft in enumerate(drafts) if draft.row.kind != "fact"]
        outcomes: list[Outcome] = []
        for some in parted([drafts[at] for at in plain], self._core.store.weight, DRAFTS):
            outcomes += await self._tried(partial(Writing.insert, drafts=some))
        for some in parted([drafts[at] for at in facts], self._core.store.weight, DRAFTS):
            outcomes += await self._learned(some)
        by_place = dict(zip([*plain, *facts], outcomes, strict=True))
        return [by_place[at] for at in range(len(drafts))]

    async def _learned(self, drafts: Sequence[Draft]) -> list[Outcome]:
        """Return what would become of facts, beside those of their texts that are stored, or that earlier writes would
        have stored."""
        tenant = self._memories.subject.tenant_id
        rows = [draft.row for draft in drafts]
        earlier = self._facts.of_texts(rows)

        def work(w: Writing) -> list[Outcome]:
            seqs = [seq for row in rows for (seq,) in w.c.all("facts_of_text", [tenant, row.content_hash])]
            ended = {
                row.seq: self._ends[row.id]
                for row in fetch(w.c, tenant, seqs).values()
                if row.id in self._ends
            }
            w.mark(ended, lambda row: row._replace(invalid_at=ended[row.seq]))
            learn(w, plans_of(earlier))
            return learn(w, plans_of(drafts)).outcomes

        outcomes = await self._tried(work)
        for draft, row, outcome in zip(drafts, rows, outcomes, strict=True):
            if outcome.created:
                self._facts.add(Draft(row, draft.named))
        return outcomes

    async def _tried(self, work: Callable[[Writing], T]) -> T:
        """Return the result of a transaction that changes nothing."""

        def undone(w: Writing) -> None:
            raise _RolledBack(work(w))

        try:
            await self._core.threads.result(
                self._core.store.transact(self._memories.subject.tenant_id, undone)
            )
        except _RolledBack as exc:
            result: T = exc.result
            return result
        raise AssertionError("a trial is rolled back")


class _Facts:
    """The facts of earlier writes that would have been stored, by text."""

    def __init__(self) -> None:
        self._facts: list[Draft] = []
        self._by_text: dict[str, list[int]] = {}

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._facts)

    def add(self, fact: Draft) -> None:
        """Add a fact."""
        self._by_text.setdefault(fact.row.content_hash, []).append(len(self._facts))
        self._facts.append(fact)

    def remove_after(self, count: int) -> None:
        """Remove the facts after the first `count`: they are not stored."""
        del self._facts[count:]
        self._by_text = {
            text: left
            for text, places in self._by_text.items()
            if (left := [at for at in places if at < count])
        }

    def of_texts(self, rows: Sequence[Record]) -> list[Draft]:
        """Return the facts with a text of these rows, in order, as they were given: writing one changes its draft."""
        places = sorted({at for row in rows for at in self._by_text.get(row.content_hash, ())})
        return [Draft(self._facts[at].row, self._facts[at].named) for at in places]
