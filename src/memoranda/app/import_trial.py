"""The dry run of an import into a folder: each write is made in transactions that are rolled back, as long as those of
the import."""

from __future__ import annotations

from collections import ChainMap, Counter, deque
from collections.abc import Callable, Sequence, Set
from functools import partial
from typing import Any, TypeVar

import msgspec

from memoranda.app.history_import import Add, Observe, new_ends
from memoranda.app.history_report import Stored
from memoranda.clock import micros
from memoranda.errors import Conflict, IndexUnavailable, MemorandaError
from memoranda.facts.keeping import LATE, Home, Plan, home_of, in_order, learn
from memoranda.facts.merging import Bounds
from memoranda.facts.neighbours import NEAREST, compare_drafts, near
from memoranda.facts.writing import AT_ONCE
from memoranda.memories.memories import Memories
from memoranda.sessions.sessions import Sessions
from memoranda.store.changes import Outcome
from memoranda.store.core import Core
from memoranda.store.rows import Record, fetch, to_memory
from memoranda.store.steps import DRAFTS, parted
from memoranda.store.transaction import Writing, known_texts, no_two_texts
from memoranda.store.validation import Draft
from memoranda.text.hashing import digest
from memoranda.text.terms import terms
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
        compared = await self._core.concerned(self._memories.subject.tenant_id, drafts)
        plain = [at for at in range(len(drafts)) if at not in compared]
        outcomes: list[Outcome] = []
        for some in parted([drafts[at] for at in plain], self._core.store.weight, DRAFTS):
            outcomes += await self._tried(partial(Writing.insert, drafts=some))
        special = [drafts[at] for at in compared]
        for start in range(0, len(special), AT_ONCE):
            outcomes += await self._learned(special[start : start + AT_ONCE])
        by_place = dict(zip([*plain, *compared], outcomes, strict=True))
        return [by_place[at] for at in range(len(drafts))]

    async def _learned(self, drafts: Sequence[Draft]) -> list[Outcome]:
        """Return what would become of facts that rules compare: with the stored ones, and with those of earlier writes
        on which it depends whether a text that is there is a version of its own. Vectors are not compared: without
        them, the neighbours of a fact are those by keyword."""
        core, tenant = self._core, self._memories.subject.tenant_id
        bounds = Bounds(core.config.facts.near_cosine, core.config.facts.near_jaccard)
        try:
            plans = await core.threads.run(near, core, tenant, drafts)
        except IndexUnavailable:
            return await self._tried(partial(Writing.insert, drafts=drafts))
        rows = [draft.row for draft in drafts]
        known = await core.threads.run(core.store.known_texts, tenant, drafts)
        earlier = await core.threads.run(self._facts.beside, plans, known, bounds)

        def work(w: Writing) -> list[Outcome]:
            near_seqs = {seq for plan in plans for seq in plan.near}
            same = {seq for seq, _ in known_texts(w.c, tenant, drafts).values()}
            existing = fetch(w.c, tenant, near_seqs | same).values()
            ended = {row.seq: self._ends[row.id] for row in existing if row.id in self._ends}
            w.mark(ended, lambda row: row._replace(invalid_at=ended[row.seq]))
            learn(w, earlier, bounds)
            return learn(w, plans, bounds).outcomes

        outcomes = await self._tried(work)
        for plan, row, outcome in zip(plans, rows, outcomes, strict=True):
            if outcome.created:
                self._facts.add(_as_given(plan, row))
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
    """The facts of earlier writes that would have been compared and stored, by text and by term in their home."""

    def __init__(self) -> None:
        self._facts: list[Plan | None] = []
        self._by_text: dict[tuple[Home, str], list[int]] = {}
        self._by_term: dict[tuple[Home, str], deque[int]] = {}

    @property
    def count(self) -> int:
        """How many there are, with removed ones."""
        return len(self._facts)

    def add(self, fact: Plan) -> None:
        """Add a fact."""
        row, place = fact.draft.row, len(self._facts)
        self._facts.append(fact)
        home = home_of(row)
        self._by_text.setdefault((home, row.content_hash), []).append(place)
        for term in set(terms(row.content)):
            self._by_term.setdefault((home, term), deque(maxlen=NEAREST)).append(place)

    def remove_after(self, count: int) -> None:
        """Remove the facts after the first `count`: they are not stored."""
        self._facts[count:] = [None] * (len(self._facts) - count)

    def beside(self, plans: Sequence[Plan], known: Set[str], bounds: Bounds) -> list[Plan]:
        """Return the facts with which new ones are compared whose text is stored (`known`, dedup keys), or occurs more
        than once: those of the same text, and the latest that share most of its terms. All are compared, so that the
        transaction need not."""
        rows = [plan.draft.row for plan in plans]
        times = Counter((home_of(row), row.content_hash) for row in rows)
        same: set[int] = set()
        others: set[int] = set()
        for row in rows:
            home = home_of(row)
            earlier = self._by_text.get((home, row.content_hash), [])
            if not earlier and row.dedup_key not in known and times[home, row.content_hash] == 1:
                continue
            same.update(earlier)
            shared = Counter(
                place for term in set(terms(row.content)) for place in self._by_term.get((home, term), ())
            )
            others.update(place for place, _ in shared.most_common(NEAREST))
        most_others = max(0, LATE - AT_ONCE - len(same))
        places = sorted(same.union(sorted(others - same)[::-1][:most_others]))
        facts = [
            _as_given(fact, fact.draft.row) for place in places if (fact := self._facts[place]) is not None
        ]
        if facts:
            compare_drafts([several[at] for several in (facts, plans) for at in in_order(several)], bounds)
        return facts


def _as_given(plan: Plan, row: Record) -> Plan:
    """Return the plan of a fact with the row that was given for it: writing it changes its draft."""
    return msgspec.structs.replace(plan, draft=Draft(row, plan.draft.named), beside={})
