"""The standing instructions of the user whom a context is for, see `text.instructions`."""

from __future__ import annotations

from collections.abc import Sequence

from memoranda.clock import now_micros
from memoranda.contexts.choosing import Chosen
from memoranda.contexts.values import ContextQuery
from memoranda.filters import all_of, matches
from memoranda.storage.sql.base import Connection
from memoranda.store.access import scope_filter, selection_filter
from memoranda.store.core import Core
from memoranda.store.rows import Record, attributes, fetch, to_memory
from memoranda.text.instructions import applies
from memoranda.text.terms import terms
from memoranda.types import Hit, Selection, Subject

LOOKED_AT = 50
MOST = 10
"""Instructions in a context, the latest."""


def standing(core: Core, subject: Subject, asked: ContextQuery, user: str | None) -> list[Chosen]:
    """Return the instructions of a user that hold at the moment of the question and are for it, the latest first; each
    scores 1. Where only some kinds are asked for, facts must be among them."""
    if user is None or (asked.kinds is not None and "fact" not in asked.kinds):
        return []
    where = all_of(
        scope_filter(f"user:{user}", subject),
        selection_filter(Selection(as_of=asked.as_of), subject, now_micros()),
    )

    def read(c: Connection) -> Sequence[Record]:
        seqs = [int(seq) for (seq,) in c.all("instructions_of", [subject.tenant_id, user, LOOKED_AT])]
        rows = fetch(c, subject.tenant_id, seqs)
        return [rows[seq] for seq in seqs if seq in rows]

    rows = core.store.db.read(read, subject.tenant_id)
    held = [row for row in rows if matches(where, attributes(row)) and applies(row.content, asked.query)]
    return [
        Chosen(Hit(memory=to_memory(row), score=1.0, similarity=None), frozenset(terms(row.content)), 1.0, {})
        for row in held[:MOST]
    ]
