"""The standing instructions of the user whom a context is for."""

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
from memoranda.text.instructions import is_standing
from memoranda.text.terms import terms
from memoranda.types import Hit, Subject

LOOKED_AT = 50
MOST = 10
"""Instructions in a context, the latest."""


def standing(core: Core, subject: Subject, asked: ContextQuery, user: str | None) -> list[Chosen]:
    """Return the instructions of a user that are valid at the time of the question and pass the selection of the
    context but for its scopes, the latest first; each scores 1."""
    if user is None:
        return []
    where = all_of(scope_filter(f"user:{user}", subject), selection_filter(asked, subject, now_micros()))

    def read(c: Connection) -> Sequence[Record]:
        seqs = [int(seq) for (seq,) in c.all("instructions_of", [subject.tenant_id, user, LOOKED_AT])]
        rows = fetch(c, subject.tenant_id, seqs)
        return [rows[seq] for seq in seqs if seq in rows]

    rows = core.store.damage.intact(core.store.db.read(read, subject.tenant_id))
    memories = [to_memory(row) for row in rows if matches(where, attributes(row))]
    applying = [memory for memory in memories if is_standing(memory)]
    return [
        Chosen(Hit(memory=memory, score=1.0, similarity=None), frozenset(terms(memory.content)), 1.0, {})
        for memory in applying[:MOST]
    ]
