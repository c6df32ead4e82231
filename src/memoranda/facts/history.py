"""The versions of a fact; confirming it, and undoing its last change."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import msgspec

from memoranda.clock import moment, now_micros
from memoranda.errors import Conflict
from memoranda.facts import versions
from memoranda.facts.versions import FactChange
from memoranda.storage.sql.base import Connection
from memoranda.store.rows import Record, fetch, fetch_ids, start_of, to_memory
from memoranda.store.transaction import Writing
from memoranda.text.stored import compact_json
from memoranda.types import Memory

MOST = 500
"""Versions of one fact that are followed."""


class FactVersion(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.version"):
    """One version of a fact: when it began to hold and when it ended (None: it holds), whether it is looked up, and
    what became of it, oldest first."""

    memory: Memory
    begins: datetime
    ends: datetime | None
    live: bool
    changes: list[FactChange]


class FactHistory(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.history"):
    """The versions of a fact, in the order in which they hold."""

    id: str
    data: list[FactVersion]


class Undone(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.undone"):
    """What taking a change back came to: the fact that is taken back (None: there was nothing to take back), and those
    that hold again."""

    id: str
    undone: str | None
    restored: list[str]


def versions_of(c: Connection, tenant: str, first: Record) -> list[Record]:
    """Return the versions of a fact, oldest first: what it replaced, what replaced it, the parts of either, and what
    was undone."""
    linked_rows = {first.id: first}
    new = [first]
    while new and len(linked_rows) < MOST:
        listed = compact_json([row.id for row in new])
        before = fetch(c, tenant, [int(seq) for (seq,) in c.all("facts_ended_by", [tenant, listed])])
        linked = {id_ for row in new for id_ in _links(row)} - linked_rows.keys()
        rows = [*before.values(), *fetch_ids(c, tenant, sorted(linked)).values()]
        new = [row for row in rows if row.kind == "fact" and row.id not in linked_rows]
        linked_rows |= {row.id: row for row in new}
    return sorted(linked_rows.values(), key=lambda row: (start_of(row), row.seq))


def _links(row: Record) -> Iterable[str]:
    if row.superseded_by is not None:
        yield row.superseded_by
    yield from versions.parts_of(row)
    for change in versions.changes_of(row):
        yield from change.ids


def version_of(row: Record, among: Iterable[Record]) -> FactVersion:
    """Return a row as a version of a fact `among` others, whose quotes its changes have."""
    words = {(other.id, ended): quote for other in among for ended, _, quote in versions.quotes_of(other)}
    changes = versions.changes_of(row)
    for change in changes:
        if change.what == "superseded":
            change.quote = next((words[id_, row.id] for id_ in change.ids if (id_, row.id) in words), None)
    return FactVersion(
        memory=to_memory(row),
        begins=moment(start_of(row)),
        ends=None if row.invalid_at is None else moment(row.invalid_at),
        live=versions.is_live(row),
        changes=changes,
    )


def confirm(w: Writing, row: Record) -> Record:
    """Confirm a fact, and return it as it is then.

    Raises:
        Conflict: it is not valid any more.
    """
    now = now_micros()
    if row.superseded_by is not None:
        raise Conflict(f"{row.id}: {row.superseded_by} took its place; confirm that, or undo it first")
    if versions.is_undone(row):
        raise Conflict(f"{row.id}: it was taken back; state it again")
    if row.invalid_at is not None and row.invalid_at <= now:
        raise Conflict(f"{row.id}: it has ended")
    if row.archived_at is not None:
        raise Conflict(f"{row.id}: it is archived; take it out of the archive first")
    return w.mark([row.seq], lambda fact: versions.confirmed(fact, now))[0]


def undo(w: Writing, row: Record) -> Undone:
    """Undo the last change among the versions of `row`: the facts that the last one replaced are valid again, and it
    is valid at no time. Without such a change, or if it is undone already, nothing changes."""
    head = _head(w, row)
    listed = compact_json([head.id])
    ended = fetch(w.c, w.tenant, [int(seq) for (seq,) in w.c.all("facts_ended_by", [w.tenant, listed])])
    last = _taken_back_last(w, head)
    if last is not None or not ended:
        return Undone(
            id=row.id,
            undone=None if last is None else last.id,
            restored=[] if last is None else _restored_by(last),
        )
    back, now, joined = (
        [version.id for version in ended.values()],
        now_micros(),
        bool(versions.parts_of(head)),
    )
    w.mark([head.seq], lambda version: versions.taken_back(version, back, now))
    why = "what it was joined into was taken back" if joined else "what took its place was taken back"

    def again(version: Record) -> Record:
        apart = versions.put(version, {"apart": True}) if joined else version
        return versions.restored(apart, [head.id], now, why)

    w.mark(ended, again)
    return Undone(id=row.id, undone=head.id, restored=back)


def _head(w: Writing, row: Record) -> Record:
    """Return the version that is not superseded."""
    seen = {row.id}
    while row.superseded_by is not None and row.superseded_by not in seen:
        seen.add(row.superseded_by)
        after = fetch_ids(w.c, w.tenant, [row.superseded_by]).get(row.superseded_by)
        if after is None:
            break
        row = after
    return row


def _taken_back_last(w: Writing, head: Record) -> Record | None:
    """Return the fact that was undone already, if that is the last change of a version."""
    if versions.is_undone(head):
        return head
    changes = [change for change in versions.changes_of(head) if change.what != "confirmed"]
    if not changes or changes[-1].what != "restored" or not changes[-1].ids:
        return None
    by = fetch_ids(w.c, w.tenant, changes[-1].ids[:1]).get(changes[-1].ids[0])
    return by if by is not None and versions.is_undone(by) else None


def _restored_by(row: Record) -> list[str]:
    """Return the ids of the facts that became valid again when this one was undone."""
    return next((change.ids for change in reversed(versions.changes_of(row)) if change.what == "undone"), [])
