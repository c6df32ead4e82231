"""The facts near a new one: by vector, by keyword, and by attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from memoranda.facts.claims import Correction, claims, correction_in
from memoranda.facts.keeping import LATE, Home, Plan, cosine, home_of, in_order
from memoranda.facts.merging import Bounds, Relation, relation
from memoranda.facts.versions import is_live
from memoranda.filters import EVERYTHING, Compare, Filter, all_of
from memoranda.sessions.records import MessageRow, messages_by_id
from memoranda.storage.sql.base import Connection
from memoranda.store.core import Core
from memoranda.store.rows import Record, fetch, linked_to, refs_of, start_of
from memoranda.store.validation import Draft

NEAREST = 8
"""Neighbours by vector, and as many by keyword."""
MOST_CORRECTED = 50
"""The most facts with the old value among which the latest is chosen."""
PURPOSE = "facts"
"""The purpose of fact extraction in the ledger."""
_ALSO = {
    "resid": "lives living moved resides home",
    "employ": "works working joined employed job",
    "occup": "works working job",
    "name": "called named name",
}
"""Words that name an attribute, by its stem."""
FACT = Compare("$kind", "eq", "fact")


def at_home(home: Home) -> Filter:
    """Return a filter for the facts of a home, see `keeping.home_at`, valid or not."""
    user, agent, channel, session = home
    both = all_of(FACT, Compare("$user_id", "eq", user), Compare("$agent_id", "eq", agent))
    if user is not None:
        return both
    return all_of(both, Compare("$channel_id", "eq", channel), Compare("$session_id", "eq", session))


async def planned(
    core: Core, tenant: str, drafts: Sequence[Draft], purpose: str = PURPOSE, among: Filter = EVERYTHING
) -> list[Plan]:
    """Return the drafts with their vectors, as far as they can be made now, and their neighbours that pass `among`.
    Without vectors, keywords find the neighbours.

    Raises:
        IndexUnavailable: an index does not answer.
    """
    await core.ingest.embed(tenant, drafts, purpose)
    return await core.threads.run(near, core, tenant, drafts, among)


def near(core: Core, tenant: str, drafts: Sequence[Draft], among: Filter = EVERYTHING) -> list[Plan]:
    """Return the drafts with the neighbours that the indexes have; the write adds those after `Plan.seen`.

    Raises:
        IndexUnavailable: an index does not answer.
    """
    store = core.store
    store.derived.follow(tenant)
    seen = store.derived.applied
    plans = []
    for draft in drafts:
        plan = Plan(draft, seen=seen, among=among)
        where = all_of(at_home(home_of(draft.row)), among)
        if plan.vector is not None:
            matches = store.index.search(tenant, plan.vector, NEAREST, where)
            plan.near.update(zip(matches.seqs.tolist(), matches.scores.tolist(), strict=True))
        for query in (draft.row.content, *_attribute_queries(draft.row.content)):
            for seq in store.words.search(tenant, query, NEAREST, where).seqs.tolist():
                plan.near.setdefault(seq, float("nan"))
        plans.append(plan)
    wanted = {seq for plan in plans for seq in plan.near}
    rows = store.db.read(lambda c: fetch(c, tenant, wanted), tenant)
    bounds = Bounds(core.config.facts.near_cosine, core.config.facts.near_jaccard)
    for plan in plans:  # here, to spare the writer thread
        for seq, near in plan.near.items():
            if seq in rows:
                text = rows[seq].content
                known = None if near != near else near
                plan.related[seq] = text, relation(plan.draft.row.content, text, known, bounds)
        _correct(plan, rows)
    if among is EVERYTHING:  # else those of the batch are no neighbours
        compare_drafts([plans[at] for at in in_order(plans)], bounds)
    return plans


def compare_drafts(plans: Sequence[Plan], bounds: Bounds) -> None:
    """Compare facts, in the order in which they are written, with those of their home before them, as far as the write
    would."""
    for at, plan in enumerate(plans):
        new, vector = plan.draft.row, plan.vector
        for before in plans[max(0, at - LATE) : at]:
            old, other = before.draft.row, before.vector
            if home_of(old) == home_of(new):
                near = None if vector is None or other is None else cosine(vector, other)
                plan.beside[old.content] = relation(new.content, old.content, near, bounds)


def _correct(plan: Plan, rows: Mapping[int, Record]) -> None:
    """Where a fact only says that one value takes another's place ("navy, not green"), let it contradict the latest
    neighbour that has the old value."""
    correction = correction_in(plan.draft.row.content)
    if correction is None:
        return
    corrected = [
        rows[seq]
        for seq, (text, _) in plan.related.items()
        if is_live(rows[seq])
        and correction.concerns(text)
        and start_of(rows[seq]) <= start_of(plan.draft.row)
    ]
    if corrected:
        latest = max(corrected, key=lambda row: (start_of(row), row.seq))
        plan.related[latest.seq] = latest.content, Relation.CONTRADICTS


def corrected(
    core: Core, tenant: str, correction: Correction, home: Home, author: str | None
) -> tuple[str, list[MessageRow]] | None:
    """Return the latest live fact of a home that a correction of `author` concerns, with the new value in it, and the
    messages that it rests on; None if there is none. Without a user, what only others stated is left out.

    Raises:
        IndexUnavailable: the keyword index does not answer.
    """
    seqs = core.store.words.search(tenant, correction.old, MOST_CORRECTED, at_home(home)).seqs.tolist()

    def by_others(c: Connection, row: Record) -> bool:
        if row.user_id is not None:
            return False
        sources = messages_by_id(c, tenant, refs_of(row)).values()
        authors = {message.author for message in sources if message.personal}
        return bool(authors) and author not in authors

    def read(c: Connection) -> tuple[str, list[MessageRow]] | None:
        rows = fetch(c, tenant, seqs).values()
        fits = [row for row in rows if is_live(row) and correction.concerns(row.content)]
        fits = [row for row in fits if not by_others(c, row)]
        if not fits:
            return None
        latest = max(fits, key=lambda row: (start_of(row), row.seq))
        text = correction.applied(latest.content)
        if text == latest.content:
            return None
        return text, [*messages_by_id(c, tenant, linked_to(latest)).values()]

    return core.store.db.read(read, tenant)


def _attribute_queries(text: str) -> list[str]:
    """Return queries for the attribute of a fact, in other words than its own."""
    attributes = {stem for claim in claims(text) for stem in claim.attribute}
    also = " ".join(words for stem, words in _ALSO.items() if stem in attributes)
    return [f"{' '.join(text.split()[:3])} {also}"] if also else []
