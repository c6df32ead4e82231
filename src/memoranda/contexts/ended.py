"""Messages that answer a question with what does not hold any more, and what took its place."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memoranda.clock import moment
from memoranda.contexts.choosing import Chosen, Ended
from memoranda.filters import matches
from memoranda.storage.sql.base import Connection
from memoranda.store.access import visible_to
from memoranda.store.core import Core
from memoranda.store.ids import listed
from memoranda.store.rows import Record, attributes, fetch
from memoranda.text.terms import query_terms, term_set
from memoranda.types import Subject

LATEST = 1 << 62
MOST_FACTS = 500
"""Facts of the messages of one context that are looked at."""
MOST_STEPS = 20
"""Facts of which each took the place of the one before."""


def note_ended(core: Core, subject: Subject, candidates: Sequence[Chosen], question: str) -> None:
    """Note in messages that what they say of the question was superseded: the facts that rest on them and have the most
    of its words."""
    asked = frozenset(query_terms(question))
    messages = {one.memory.id: one for one in candidates if one.memory.kind == "message"}
    if not messages:
        return
    facts = _facts_of(core, subject, list(messages))
    for id_, candidate in messages.items():
        resting = [row for row in facts if id_ in msgspec.json.decode(row.source_refs)]
        most = max((len(asked & term_set(row.content)) for row in resting), default=0)
        own = [row for row in resting if len(asked & term_set(row.content)) == most]
        if own and all(row.superseded_by and row.invalid_at is not None for row in own):
            last = max(own, key=lambda row: row.invalid_at or 0)
            successor = _successor(core, subject, last)
            if successor is not None:
                candidate.ended = Ended(moment(last.invalid_at or 0), successor)


def _facts_of(core: Core, subject: Subject, ids: Sequence[str]) -> list[Record]:
    tenant = subject.tenant_id

    def read(c: Connection) -> list[Record]:
        seqs = [seq for (seq,) in c.all("facts_made_of", [tenant, listed(ids), LATEST, 0, MOST_FACTS])]
        return list(fetch(c, tenant, seqs).values())

    rows = core.store.db.read(read, tenant)
    return [row for row in core.store.damage.intact(rows) if matches(visible_to(subject), attributes(row))]


def _successor(core: Core, subject: Subject, fact: Record) -> str | None:
    """Return the id of the visible fact that holds in the place of an ended one."""
    for _ in range(MOST_STEPS):
        if fact.superseded_by is None:
            return fact.id if matches(visible_to(subject), attributes(fact)) else None
        following = core.store.by_id(subject.tenant_id, [fact.superseded_by]).get(fact.superseded_by)
        if following is None:
            return None
        fact = following
    return None
