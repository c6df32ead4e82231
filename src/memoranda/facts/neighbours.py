"""The facts that are near a new one: by vector, by words, and by the attribute that it is about."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.errors import EmbedderUnavailable, SpendingLimit
from memoranda.facts.claims import claims
from memoranda.facts.keeping import Plan
from memoranda.facts.merging import Bounds, relation
from memoranda.filters import Compare, Filter, all_of
from memoranda.store.core import Core
from memoranda.store.ingest import windows
from memoranda.store.rows import Record, fetch
from memoranda.store.validation import Draft

NEAREST = 8
"""Neighbours on either side."""
PURPOSE = "facts"
"""What the ledger calls the taking of facts."""
_ALSO = {
    "resid": "lives living moved resides home",
    "employ": "works working joined employed job",
    "occup": "works working job",
    "name": "called named name",
}
"""Words in which an attribute is told, by its stem."""
FACT = Compare("$kind", "eq", "fact")


def at_home(row: Record) -> Filter:
    """The facts of the home of a row, see `keeping.home_of`; whether they hold or not."""
    agent = Compare("$agent_id", "eq", row.agent_id)
    if row.user_id is not None:
        return all_of(FACT, Compare("$user_id", "eq", row.user_id), agent)
    return all_of(
        FACT,
        Compare("$user_id", "eq", None),
        agent,
        Compare("$channel_id", "eq", row.channel_id),
        Compare("$session_id", "eq", row.session_id),
    )


async def planned(core: Core, tenant: str, drafts: Sequence[Draft]) -> list[Plan]:
    """The drafts with their vectors, as far as they can be made now, and their neighbours.

    Raises:
        IndexUnavailable: an index does not answer.
    """
    for one in drafts:
        one.parts, one.model = windows(one.row, core.embedder), core.embedder.model
    parts = [part for one in drafts for part in one.parts]
    try:
        made = await core.ledger.embed(
            core.embedder, [part.text for part in parts], tenant=tenant, purpose=PURPOSE
        )
    except (
        EmbedderUnavailable,
        SpendingLimit,
    ):  # the rows will be owed a vector; words find their neighbours
        pass
    else:
        for part, vector in zip(parts, made.vectors, strict=True):
            part.vector = vector
    return await core.threads.run(_near, core, tenant, drafts)


def _near(core: Core, tenant: str, drafts: Sequence[Draft]) -> list[Plan]:
    store = core.store
    if store.derived.follows:
        store.derived.follow()
    seen = store.derived.applied
    plans = []
    for one in drafts:
        plan = Plan(one, seen=seen)
        where = at_home(one.row)
        if plan.vector is not None:
            found = store.index.search(tenant, plan.vector, NEAREST, where)
            plan.near.update(zip(found.seqs.tolist(), found.scores.tolist(), strict=True))
        for query in (one.row.content, *_told_otherwise(one.row.content)):
            for seq in store.words.search(tenant, query, NEAREST, where).seqs.tolist():
                plan.near.setdefault(seq, float("nan"))
        plans.append(plan)
    wanted = {seq for plan in plans for seq in plan.near}
    rows = store.db.read(lambda c: fetch(c, tenant, wanted), tenant)
    bounds = Bounds(core.config.facts.near_cosine, core.config.facts.near_jaccard)
    for plan in plans:  # here, so that the thread that writes need not
        for seq, cosine in plan.near.items():
            if seq in rows:
                text = rows[seq].content
                known = None if cosine != cosine else cosine
                plan.related[seq] = text, relation(plan.draft.row.content, text, known, bounds)
    return plans


def _told_otherwise(text: str) -> list[str]:
    """Queries for what a fact is about, in other words than its own."""
    attributes = {stem for claim in claims(text) for stem in claim.attribute}
    also = " ".join(words for stem, words in _ALSO.items() if stem in attributes)
    return [f"{' '.join(text.split()[:3])} {also}"] if also else []
