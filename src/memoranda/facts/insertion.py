"""New facts written among the stored ones, in one transaction: stored, joined, ending others, or ended by a later one.

A fact ends others only on the word of a model, which names the fact and quotes the message that says so, or of
the caller. A text that is stored already joins its fact. Nothing else changes what is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from memoranda.clock import now_micros
from memoranda.facts import versions
from memoranda.store.changes import Outcome
from memoranda.store.origins import CONFIRMED, hidden
from memoranda.store.rows import (
    CONTEXT,
    Draft,
    Record,
    context_of,
    fetch,
    fetch_ids,
    home_of,
    is_same,
    refs_of,
    start_of,
    to_memory,
)
from memoranda.store.transaction import Mark, Writing
from memoranda.store.validation import MOST_REFS, later_version
from memoranda.text.instructions import EXTRACTED, TAG, is_standing
from memoranda.text.stored import compact_json

MOST_STEPS = 20
"""Versions between a late fact and the latest that are looked at."""
FIRST_REFS = 150
"""Sources, and messages of its context, that a fact never drops, however many join: its text came from them."""


class Ending(msgspec.Struct, frozen=True):
    """Facts that a new one ends, by id: it has another value in their place (`replaced`), or says that they are over
    (`ended`). `message` is the id of the message that says so in the words `quote`; None if the caller does."""

    ids: tuple[str, ...]
    why: Literal["replaced", "ended"] = "replaced"
    message: str | None = None
    quote: str = ""


class Plan(msgspec.Struct):
    """A fact to be stored: its draft, the id of a stored one that says the same, and those that it ends."""

    draft: Draft
    same: str | None = None
    ending: Ending | None = None


class Learned(NamedTuple):
    """Counts of facts written: new rows, sources that joined an existing row, rows superseded."""

    kept: int = 0
    joined: int = 0
    superseded: int = 0


class Written(NamedTuple):
    """The results of writing facts, as counts and one by one."""

    counts: Learned
    outcomes: list[Outcome]


def learn(w: Writing, plans: Sequence[Plan]) -> Written:
    """Write facts, earliest first, each with what follows for its versions; outcomes are in the order of `plans`."""
    keeper = _Keeper(w)
    outcomes = {at: keeper.take(plans[at]) for at in in_order(plans)}
    counts = Learned(keeper.kept, keeper.joined, keeper.superseded)
    return Written(counts, [outcomes[at] for at in range(len(plans))])


def in_order(plans: Sequence[Plan]) -> list[int]:
    """Return the places of the plans in the order in which they are written: earliest start first."""
    return sorted(range(len(plans)), key=lambda at: start_of(plans[at].draft.row))


def end(w: Writing, new: Record, ending: Ending) -> int:
    """End stored facts of the home of `new` where it begins; return how many.

    When each was said decides: a fact that began later than `new` ends that instead, if it is another value of the
    same. Facts that are gone, ended, undone or elsewhere stay as they are. A consolidated fact of which a part ends is
    taken apart.
    """
    done = list[str]()
    for id_ in ending.ids:
        old = fetch_ids(w.c, w.tenant, [id_]).get(id_)
        if old is None or old.seq == new.seq or old.kind != "fact" or home_of(old) != home_of(new):
            continue
        holder = holder_of(w, old)
        live = versions.is_live(old if holder is None else holder)
        over = old.invalid_at is not None and holder is None and old.invalid_at < start_of(new)
        if live and not over and not is_protected(old, new):
            done += _end_one(w, old, holder, new, ending)
    message = ending.message
    if done and message is not None:

        def quote(row: Record) -> Record:
            for id_ in done:
                row = versions.quoting(row, id_, message, ending.quote)
            return row

        w.mark([new.seq], quote)
    return len(done)


def _end_one(w: Writing, old: Record, holder: Record | None, new: Record, ending: Ending) -> list[str]:
    """End a fact; return the ids of those that ended."""
    now, at = now_micros(), start_of(new)
    if ending.message is None:  # the caller's word, whenever both were said
        at = max(at, start_of(old))
    elif start_of(old) > at:
        return _begin_before(w, old, new, ending) if ending.why == "replaced" else []
    if holder is not None:
        w.remove([holder.seq])  # its other parts hold by themselves again
    w.mark([old.seq], _ended(new.id, at, now, ending))
    return [old.id]


def _begin_before(w: Writing, later: Record, new: Record, ending: Ending) -> list[str]:
    """End `new` where the next of the versions that led to a later value begins, and the one before where `new`
    begins; return the ids of the facts that end there."""
    at, now = start_of(new), now_micros()
    before = _before(w, later)
    for _ in range(MOST_STEPS):
        between = [row for row in before if row.seq != new.seq and start_of(row) > at]
        if not between:
            break
        later = min(between, key=start_of)
        before = _before(w, later)
    w.mark([new.seq], _ended(later.id, start_of(later), now, ending))
    earlier = [row for row in before if row.seq != new.seq and (row.invalid_at or 0) > at]
    w.mark([row.seq for row in earlier], _ended(new.id, at, now, ending))
    return [row.id for row in earlier]


def _before(w: Writing, row: Record) -> list[Record]:
    """Return the facts whose place another took."""
    seqs = [int(seq) for (seq,) in w.c.all("facts_ended_by", [w.tenant, compact_json([row.id])])]
    return list(fetch(w.c, w.tenant, seqs).values())


def holder_of(w: Writing, row: Record) -> Record | None:
    """Return the consolidated fact that a fact is a part of; None if it is single."""
    if row.superseded_by is None:
        return None
    whole = fetch_ids(w.c, w.tenant, [row.superseded_by]).get(row.superseded_by)
    return whole if whole is not None and row.id in versions.parts_of(whole) else None


class _Keeper:
    def __init__(self, w: Writing) -> None:
        self.w = w
        self.kept = self.joined = self.superseded = 0

    def take(self, plan: Plan) -> Outcome:
        """Write one fact. One that has an id of the caller's joins only a fact of the same text and scope."""
        draft = plan.draft
        if not versions.is_live(draft.row) or draft.row.archived_at is not None:  # a version of an import
            return self.w.insert([draft])[0]
        if draft.named and fetch_ids(self.w.c, self.w.tenant, [draft.row.id]):
            return self.w.insert([draft])[0]
        same = self._same(plan)
        outcome = self._insert(draft) if same is None else self._join(same, draft.row)
        if plan.ending is not None:
            ended = end(self.w, outcome.row, plan.ending)
            self.superseded += ended
            if ended:
                outcome.row = fetch(self.w.c, self.w.tenant, [outcome.row.seq])[outcome.row.seq]
        return outcome

    def _same(self, plan: Plan) -> Record | None:
        """Return the stored fact that a new one joins: of its text, or one that a model names, in its home and valid at
        its time."""
        w, new = self.w, plan.draft.row
        seqs = [int(seq) for (seq,) in w.c.all("facts_of_text", [w.tenant, new.content_hash])]
        rows = list(fetch(w.c, w.tenant, seqs).values())
        if plan.draft.named:
            rows = [row for row in rows if is_same(row, new)]
        elif plan.same is not None:
            rows += fetch_ids(w.c, w.tenant, [plan.same]).values()
        fits = [row for row in rows if self._joins(row, new)]
        return min(fits, key=lambda row: (row.content_hash != new.content_hash, row.seq), default=None)

    def _joins(self, row: Record, new: Record) -> bool:
        if row.kind != "fact" or home_of(row) != home_of(new) or versions.is_undone(row):
            return False
        if is_protected(row, new) and row.content_hash != new.content_hash:
            return False
        holder = holder_of(self.w, row)
        known = row if holder is None else holder
        at, begins = start_of(new), start_of(row)
        if versions.is_live(known):
            return begins == at or not _apart(begins, known.invalid_at, at, new.invalid_at)
        ended = known.invalid_at
        return row.content_hash == new.content_hash and begins <= at and ended is not None and at < ended

    def _join(self, row: Record, new: Record) -> Outcome:
        """Add the sources of a fact that says the same to the stored one."""
        at = start_of(new)
        targets = [row] + ([whole] if (whole := holder_of(self.w, row)) is not None else [])
        for target in targets:
            join = _joining(new, at if at < start_of(target) else None)
            if join(target) != target:
                marked = self.w.mark([target.seq], join)
                row = marked[0] if target.seq == row.seq and marked else row
        self.joined += 1
        return Outcome(row, created=False, embedded=not self.w.waiting([row.seq]))

    def _insert(self, draft: Draft) -> Outcome:
        """Insert the row of a new fact. If one of its text and scope ended, that stays as it is: the new one gets a key
        of its own, the same at every repetition."""
        (outcome,) = self.w.insert([draft])
        if not outcome.created:
            draft.row = later_version(draft.row)
            (outcome,) = self.w.insert([draft])
        if not outcome.created:
            return self._join(outcome.row, draft.row)
        self.kept += 1
        return outcome


def _apart(begins: int, ends: int | None, at: int, until: int | None) -> bool:
    """Return True if one of two facts has ended when the other begins."""
    ended, begun = (ends, at) if begins < at else (until, begins)
    return ended is not None and ended <= begun


def is_protected(old: Record, new: Record) -> bool:
    """Return True for a standing instruction, and a fact that was not stated in a conversation: that neither joins nor
    ends it."""
    return new.source != EXTRACTED and is_standing(to_memory(old))


def _ended(by: str, at: int, now: int, ending: Ending) -> Mark:
    return lambda row: versions.ended(row, by, at, now, "superseded", ending.why)


def _joining(new: Record, start: int | None) -> Callable[[Record], Record]:
    """Return a function that adds the sources of `new` to a row, keeps the first and the latest of them, and sets the
    start if one is given. The text stays that of the row, so the context of `new` is added only with tags of it. That
    a row was confirmed is about what it was then: it becomes no instruction."""

    def change(row: Record) -> Record:
        refs = _joined(refs_of(row), refs_of(new))
        before = _listed(row.tags)
        added = [tag for tag in _listed(new.tags) if tag != TAG or CONFIRMED not in hidden(row.metadata)]
        tags = list(dict.fromkeys([*before, *added]))
        context = context_of(row) if tags == before else _joined(context_of(row), context_of(new))
        notes: dict[str, Any] = {CONTEXT: [ref for ref in context if ref not in refs] or None}
        row = versions.put(row, notes)
        return row._replace(
            source_refs=compact_json(refs),
            tags=compact_json(tags),
            confidence=max(row.confidence, new.confidence),
            valid_from=row.valid_from if start is None else start,
            archived_at=None,
        )

    return change


def _joined(first: list[str], second: list[str]) -> list[str]:
    """Return the ids of both, each once; of too many the first and the latest."""
    refs = list(dict.fromkeys([*first, *second]))
    return refs if len(refs) <= MOST_REFS else [*refs[:FIRST_REFS], *refs[FIRST_REFS - MOST_REFS :]]


def _listed(text: str) -> list[str]:
    return list(msgspec.json.decode(text))
