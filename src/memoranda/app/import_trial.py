"""The dry run of an import into a folder: each write is made in transactions that are rolled back, as long as those of
the import."""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import msgspec

from memoranda.app.history_import import Add, Observe, new_ends
from memoranda.app.history_report import Stored
from memoranda.clock import micros
from memoranda.errors import Conflict, IndexUnavailable
from memoranda.facts.keeping import LATE, Plan, home_of, learn
from memoranda.facts.merging import Bounds, Relation, relation
from memoranda.facts.neighbours import near
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
        self._facts: list[Plan] = []
        """The facts of earlier writes that would have been compared and stored."""
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
        known, ids, facts = ChainMap({}, self._keys), set[str](), [*self._facts]
        stored: list[Stored] = []
        added: list[Added] = []
        for each in await self._outcomes(self._memories.prepare(write.memories), facts):
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
        self._facts = facts
        return stored

    async def _outcomes(self, drafts: Sequence[Draft], facts: list[Plan]) -> list[Outcome]:
        """Return what would become of memories, as `Core.write`; add facts that would be compared and stored to
        `facts`, which has those of earlier writes."""
        no_two_texts(drafts)
        compared = await self._core.concerned(self._memories.subject.tenant_id, drafts)
        plain = [at for at in range(len(drafts)) if at not in compared]
        outcomes: list[Outcome] = []
        for some in parted([drafts[at] for at in plain], self._core.store.weight, DRAFTS):
            outcomes += await self._tried(partial(Writing.insert, drafts=some))
        special = [drafts[at] for at in compared]
        for start in range(0, len(special), AT_ONCE):
            outcomes += await self._learned(special[start : start + AT_ONCE], facts)
        by_place = dict(zip([*plain, *compared], outcomes, strict=True))
        return [by_place[at] for at in range(len(drafts))]

    async def _learned(self, drafts: Sequence[Draft], facts: list[Plan]) -> list[Outcome]:
        """Return what would become of facts that rules compare: with the stored ones, and with those of `facts` on
        which it depends whether a text that is there is a version of its own. Vectors are not compared: without them,
        the neighbours of a fact are those by keyword."""
        core, tenant = self._core, self._memories.subject.tenant_id
        bounds = Bounds(core.config.facts.near_cosine, core.config.facts.near_jaccard)
        try:
            plans = await core.threads.run(near, core, tenant, drafts)
        except IndexUnavailable:
            return await self._tried(partial(Writing.insert, drafts=drafts))
        rows = [draft.row for draft in drafts]
        known = await core.threads.run(core.store.known_texts, tenant, drafts)
        texts = Counter(fact.draft.row.dedup_key for fact in [*facts, *plans])
        again = [row for row in rows if row.dedup_key in known or texts[row.dedup_key] > 1]
        earlier = await core.threads.run(_versions, facts, again, bounds)

        def work(w: Writing) -> list[Outcome]:
            near_seqs = {seq for plan in plans for seq in plan.near}
            same = {seq for seq, _ in known_texts(w.c, tenant, drafts).values()}
            rows_there = fetch(w.c, tenant, near_seqs | same).values()
            ended = {row.seq: self._ends[row.id] for row in rows_there if row.id in self._ends}
            w.mark(ended, lambda row: row._replace(invalid_at=ended[row.seq]))
            learn(w, [_as_given(fact, fact.draft.row) for fact in earlier], bounds)
            return learn(w, plans, bounds).outcomes

        outcomes = await self._tried(work)
        facts += [
            _as_given(plan, row)
            for plan, row, outcome in zip(plans, rows, outcomes, strict=True)
            if outcome.created
        ]
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


def _versions(facts: Sequence[Plan], rows: Sequence[Record], bounds: Bounds) -> list[Plan]:
    """Return the facts that may be other versions of these rows, the latest if there are too many to compare."""

    def concerns(old: str, new: str) -> bool:
        return any(relation(*texts, None, bounds) is not Relation.OTHER for texts in ((new, old), (old, new)))

    versions = [
        fact
        for fact in facts
        if any(
            home_of(fact.draft.row) == home_of(row) and concerns(fact.draft.row.content, row.content)
            for row in rows
        )
    ]
    return versions[AT_ONCE - LATE :]


def _as_given(plan: Plan, row: Record) -> Plan:
    """Return the plan of a fact with the row that was given for it: writing it changes its draft."""
    return msgspec.structs.replace(plan, draft=Draft(row, plan.draft.named))
