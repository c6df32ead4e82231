"""New facts written among the stored ones, in one transaction: stored, joined, superseding, superseded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.clock import now_micros
from memoranda.facts import versions
from memoranda.facts.merging import Bounds, Known, Place, Relation, place, relation
from memoranda.filters import EVERYTHING, Filter, matches
from memoranda.store.changes import Outcome
from memoranda.store.rows import (
    CONTEXT,
    Record,
    attributes,
    context_of,
    fetch,
    fetch_ids,
    is_same,
    refs_of,
    start_of,
    to_memory,
)
from memoranda.store.transaction import Mark, Writing
from memoranda.store.validation import MOST_REFS, Draft, later_version
from memoranda.text.instructions import EXTRACTED, RULES, TAG, is_standing
from memoranda.text.json import compact_json

LATE = 200
"""Facts written since the neighbours were looked up that are compared with a new one too."""
FIRST_REFS = 150
"""Sources, and messages of its context, that a fact never drops, however many join: its text came from them."""


class Plan(msgspec.Struct):
    """A fact to be stored: its draft, the cosines of its neighbours by seq (NaN: not known), what a model said it is to
    them, what rules say, with the text of each that they said it of, what they say of the texts of drafts that are
    written before it, the revision up to which neighbours were looked for, and the filter that these pass."""

    draft: Draft
    near: dict[int, float] = msgspec.field(default_factory=dict)
    verdicts: dict[int, Relation] = msgspec.field(default_factory=dict)
    related: dict[int, tuple[str, Relation]] = msgspec.field(default_factory=dict)
    beside: dict[str, Relation] = msgspec.field(default_factory=dict)
    seen: int = 0
    among: Filter = EVERYTHING

    @property
    def vector(self) -> NDArray[np.float32] | None:
        """The vector of the whole text, if it is one window and is embedded."""
        return self.draft.parts[0].vector if len(self.draft.parts) == 1 else None


class Learned(NamedTuple):
    """Counts of facts written: new rows, sources that joined an existing row, rows superseded."""

    kept: int = 0
    joined: int = 0
    superseded: int = 0


class Written(NamedTuple):
    """The results of writing facts, as counts and one by one."""

    counts: Learned
    outcomes: list[Outcome]


Home = tuple[str | None, str | None, str | None, str | None]


def home_at(
    user_id: str | None, agent_id: str | None, channel_id: str | None, session_id: str | None
) -> Home:
    """Return the scope in which facts are versions of one another: a user and an agent, in every channel, else one
    agent, channel and session."""
    if user_id is not None:
        return user_id, agent_id, None, None
    return None, agent_id, channel_id, session_id


def home_of(row: Record) -> Home:
    """Return the home of a fact, see `home_at`."""
    return home_at(row.user_id, row.agent_id, row.channel_id, row.session_id)


def learn(w: Writing, plans: Sequence[Plan], bounds: Bounds) -> Written:
    """Write facts, earliest first, each with what follows for its versions; outcomes are in the order of `plans`."""
    keeper = _Keeper(w, bounds)
    outcomes = {at: keeper.take(plans[at]) for at in in_order(plans)}
    counts = Learned(keeper.kept, keeper.joined, keeper.superseded)
    return Written(counts, [outcomes[at] for at in range(len(plans))])


def in_order(plans: Sequence[Plan]) -> list[int]:
    """Return the places of the plans in the order in which they are written: earliest start first."""
    return sorted(range(len(plans)), key=lambda at: start_of(plans[at].draft.row))


def cosine(first: NDArray[np.float32], second: NDArray[np.float32]) -> float:
    """Return the cosine of two vectors; 0 if one of them has no length."""
    size = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(first @ second) / size if size else 0.0


class _Keeper:
    def __init__(self, w: Writing, bounds: Bounds) -> None:
        self.w = w
        self.bounds = bounds
        self.now = now_micros()
        self.kept = self.joined = self.superseded = 0
        self.inserted_vectors: dict[int, NDArray[np.float32]] = {}

    def take(self, plan: Plan) -> Outcome:
        """Write one fact. One that has an id of the caller's joins only a fact of the same text and scope; where it is
        nearly the same as another, it gets a row of its own. A fact that was not stated in a conversation neither joins
        nor ends a standing instruction."""
        if plan.draft.named and fetch_ids(self.w.c, self.w.tenant, [plan.draft.row.id]):
            return self.w.insert([plan.draft])[0]
        rows, cosines = self._neighbours(plan)
        at = start_of(plan.draft.row)
        text = plan.draft.row.content
        stated = plan.draft.row.source == EXTRACTED
        related = {}
        for seq, row in rows.items():
            content, known = plan.related.get(seq, ("", Relation.OTHER))
            if content != row.content:
                known = plan.beside.get(row.content) or relation(
                    text, row.content, cosines.get(seq), self.bounds
                )
            known = plan.verdicts.get(seq, known)
            alike = known in (Relation.SAME, Relation.NEAR) and not is_same(row, plan.draft.row)
            own = plan.draft.named and alike
            protected = not stated and is_standing(to_memory(row))
            related[seq] = Relation.OTHER if own or protected else known
        single = [
            self._known(row, related[seq], rows) for seq, row in rows.items() if not versions.parts_of(row)
        ]
        whole = [self._known(row, related[seq], rows) for seq, row in rows.items() if versions.parts_of(row)]
        facts = single + [fact for fact in whole if fact.relation is Relation.SAME]
        position = place(at, facts, plan.draft.row.invalid_at)
        if position.joins is not None:
            return self._join(rows[position.joins], plan.draft.row, at)
        return self._keep(plan, position, rows, at)

    # --- what is there -----------------------------------------------------------------------------

    def _neighbours(self, plan: Plan) -> tuple[dict[int, Record], dict[int, float]]:
        """Return the facts of the same home that may be versions of a new one, with the parts of consolidated ones, and
        their cosines."""
        w, mine = self.w, home_of(plan.draft.row)
        late = [int(seq) for (seq,) in w.c.all("facts_after", [w.tenant, plan.seen, LATE])]
        rows = fetch(w.c, w.tenant, {*plan.near, *late})
        consolidated = [row.id for row in rows.values() if versions.parts_of(row)]
        if consolidated:
            listed = compact_json(consolidated)
            rows |= fetch(w.c, w.tenant, [int(s) for (s,) in w.c.all("facts_ended_by", [w.tenant, listed])])
        rows = {
            seq: row
            for seq, row in rows.items()
            if row.kind == "fact" and home_of(row) == mine and matches(plan.among, attributes(row))
        }
        cosines = {seq: value for seq, value in plan.near.items() if value == value}
        if plan.vector is not None:
            cosines |= {seq: cosine(plan.vector, vector) for seq, vector in self.inserted_vectors.items()}
        return rows, cosines

    def _known(self, row: Record, related: Relation, rows: dict[int, Record]) -> Known:
        """Return a stored fact as `place` needs it. A part of a consolidated fact is valid as long as that is."""
        holder = self._holder(row, rows)
        return Known(
            seq=row.seq,
            at=start_of(row),
            ended=row.invalid_at if holder is None else holder.invalid_at,
            live=versions.is_live(row if holder is None else holder),
            relation=related,
            mended=versions.is_undone(row),
        )

    def _holder(self, row: Record, rows: dict[int, Record]) -> Record | None:
        """Return the consolidated fact that a fact is a part of; None if it is single."""
        if row.superseded_by is None:
            return None
        whole = next((candidate for candidate in rows.values() if candidate.id == row.superseded_by), None)
        if whole is None:
            whole = fetch_ids(self.w.c, self.w.tenant, [row.superseded_by]).get(row.superseded_by)
        return whole if whole is not None and row.id in versions.parts_of(whole) else None

    # --- what becomes of it ------------------------------------------------------------------------

    def _join(self, row: Record, new: Record, at: int) -> Outcome:
        """Add the sources of a fact that says the same to the stored one."""
        targets = [row] + ([whole] if (whole := self._holder(row, {})) is not None else [])
        for target in targets:
            join = _joining(new, at if at < start_of(target) else None)
            if join(target) != target:
                marked = self.w.mark([target.seq], join)
                row = marked[0] if target.seq == row.seq and marked else row
        self.joined += 1
        return Outcome(row, created=False, embedded=not self.w.waiting([row.seq]))

    def _keep(self, plan: Plan, position: Place, rows: dict[int, Record], at: int) -> Outcome:
        row = plan.draft.row
        if position.ended_by is not None and position.ended is not None:
            by = rows[position.ended_by].id
            row = versions.ended(row, by, position.ended, self.now, "superseded", Relation.CONTRADICTS.value)
        outcome = self._insert(plan, row, at)
        stored = outcome.row
        if plan.vector is not None:
            self.inserted_vectors[stored.seq] = plan.vector
        for seq, why in position.ends.items():
            holder = self._holder(rows[seq], rows)
            if holder is not None:
                self._take_apart(holder, rows[seq], stored, at, why)
            else:
                self.w.mark([seq], _ending(stored.id, at, self.now, why))
            self.superseded += 1
        return outcome

    def _insert(self, plan: Plan, row: Record, at: int) -> Outcome:
        """Insert the row of a new fact. If an ended fact says the same, it stays as it is: the new one gets a key of
        its own, the same at every repetition."""
        plan.draft.row = row
        (outcome,) = self.w.insert([plan.draft])
        there = None if outcome.created else self._known(outcome.row, Relation.SAME, {})
        if there is not None and (not there.live or there.apart(at, row.invalid_at)):
            plan.draft.row = later_version(row)
            (outcome,) = self.w.insert([plan.draft])
        if not outcome.created:
            return self._join(outcome.row, row, at)
        self.kept += 1
        return outcome

    def _take_apart(self, whole: Record, part: Record, new: Record, at: int, why: Relation) -> None:
        """Remove a consolidated fact of which a part changes: its other parts are valid on their own again."""
        self.w.remove([whole.seq])
        self.w.mark([part.seq], _ending(new.id, at, self.now, why))


def _ending(by: str, at: int, now: int, why: Relation) -> Mark:
    return lambda row: versions.ended(row, by, at, now, "superseded", why.value)


def _joining(new: Record, start: int | None) -> Mark:
    """Return a function that adds the sources of `new` to a row, keeps the first and the latest of them, and sets the
    start if one is given. The text stays that of the row, so the context of `new` is added only with tags of it. Only a
    standing instruction makes the row one."""
    instructs = is_standing(to_memory(new))
    added = [tag for tag in _listed(new.tags) if instructs or tag != TAG]

    def change(row: Record) -> Record:
        refs = _joined(refs_of(row), refs_of(new))
        before = _listed(row.tags)
        tags = list(dict.fromkeys([*before, *added]))
        context = context_of(row) if tags == before else _joined(context_of(row), context_of(new))
        notes: dict[str, Any] = {CONTEXT: [ref for ref in context if ref not in refs] or None}
        row = versions.put(row, notes | ({"extracted_by": RULES} if instructs else {}))
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
