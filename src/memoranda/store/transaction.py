"""One transaction over a tenant's rows: puts, changes, marks and removals together, with their cascades."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec

from memoranda.clock import now_micros
from memoranda.errors import Conflict, NotFound
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import EMBEDDING, Applied, Outcome, Put, embeddings, placed, with_vectors
from memoranda.store.forgotten import Identity, identities_of, note
from memoranda.store.rows import Draft, Record, fetch, fetch_ids, is_same, linked_to, speaker_of
from memoranda.text.stored import compact_json

SOURCES = ("tenant_id", "source_id", "seq")
Mark = Callable[[Record], Record]


class Spaces(msgspec.Struct, frozen=True):
    """The live vector space with its model, and the next one during a migration."""

    space: int
    model: str
    next: int | None = None


class RemovedMemory(NamedTuple):
    """A removed memory, with the fields that cascades need. `name` is that of its speaker, else of its user;
    `superseded_by` is the fact that took its place, at `invalid_at`."""

    seq: int
    id: str
    kind: str
    channel_id: str | None
    session_id: str | None
    content: str
    dedup_key: str
    name: str | None
    superseded_by: str | None = None
    invalid_at: int | None = None


class Writing:
    """The rows of one tenant inside one transaction, on the writing thread.

    `c` is the transaction, for further statements. `cascades` are called with removed memories, `edits` with memories
    whose text changed, in the same transaction; both may write more. `also` counts what cascades delete beside memories
    and vectors, by kind. `by_text` is True if a phrase is forgotten: summaries that go are made again afterwards.
    `by_request` is True if what is removed was to be deleted: it gets tombstones, see `store.forgotten`.
    """

    def __init__(
        self,
        c: Connection,
        tenant: str,
        applied: Applied,
        spaces: Spaces,
        known: bool,
        cascades: Sequence[Cascade] = (),
        edits: Sequence[Edit] = (),
    ) -> None:
        self.c = c
        self.tenant = tenant
        self.also = Counter[str]()
        self.by_text = False
        self.by_request = False
        self._applied = applied
        self._spaces = spaces
        self._known_tenant = known
        self._cascades = cascades
        self._edits = edits

    def then(self, call: Callable[[], None]) -> None:
        """Call `call` on the writing thread once the change is committed, before its caller goes on."""
        self._applied.calls.append(call)

    # --- putting -----------------------------------------------------------------------------------

    def insert(self, drafts: Sequence[Draft]) -> list[Outcome]:
        """Write drafts. If the text of a draft exists in its scope, the existing row is returned unchanged.

        Raises:
            Conflict: see `compared`.
        """
        if not drafts:
            return []
        fresh, known = compared(self.c, self.tenant, drafts)
        place = {draft.row.dedup_key: at for at, draft in enumerate(fresh)}
        rows = self._insert_rows(fresh) if fresh else []
        existing = fetch(self.c, self.tenant, {seq for seq, _ in known.values()}) if known else {}
        self._revive(drafts, known, existing)
        waiting = self.waiting(list(existing))
        outcomes = []
        for draft in drafts:
            key = draft.row.dedup_key
            if key in known:
                seq = known[key][0]
                outcomes.append(Outcome(existing[seq], created=False, embedded=seq not in waiting))
                continue
            at = place[key]
            outcomes.append(Outcome(rows[at], created=draft is fresh[at], embedded=self._ready(fresh[at])))
        return outcomes

    def _revive(
        self, drafts: Sequence[Draft], known: dict[str, tuple[int, str]], existing: dict[int, Record]
    ) -> None:
        """Restore archived rows whose text is written again: a search must find them."""
        seqs = {
            known[draft.row.dedup_key][0]
            for draft in drafts
            if draft.row.dedup_key in known and draft.row.archived_at is None
        }
        archived = [seq for seq in sorted(seqs) if existing[seq].archived_at is not None]
        if archived:
            existing |= {
                row.seq: row for row in self.mark(archived, lambda row: row._replace(archived_at=None))
            }

    def waiting(self, seqs: Sequence[int]) -> set[int]:
        """Return those of these rows whose embeddings are pending."""
        if not seqs:
            return set()
        values = [self.tenant, self._spaces.space, compact_json(seqs)]
        return {seq for (seq,) in self.c.all("pending_among", values)}

    def _insert_rows(self, fresh: Sequence[Draft]) -> list[Record]:
        c, tenant, space, applied = self.c, self.tenant, self._spaces.space, self._applied
        if not self._known_tenant:
            c.run("add_tenant", [tenant, fresh[0].row.created_at])
        first = self.draw(len(fresh))
        rows = [placed(draft.row, first + i) for i, draft in enumerate(fresh)]
        c.load("memories", Record._fields, rows)
        c.load(
            "embeddings",
            EMBEDDING,
            (
                values
                for row, draft in zip(rows, fresh, strict=True)
                if self._ready(draft)
                for values in embeddings(tenant, space, row.seq, draft.parts)
            ),
        )
        self._link(rows)
        pending = [row.seq for row, draft in zip(rows, fresh, strict=True) if not self._ready(draft)]
        if pending:
            c.many("add_pending", [(tenant, space, seq) for seq in pending])
            applied.pending[tenant] += len(pending)
        if self._spaces.next is not None:
            c.many("add_pending", [(tenant, self._spaces.next, row.seq) for row in rows])
        applied.puts[tenant] += [
            Put(
                row,
                [part.vector for part in draft.parts if part.vector is not None]
                if self._ready(draft)
                else [],
            )
            for row, draft in zip(rows, fresh, strict=True)
        ]
        return rows

    def _link(self, rows: Iterable[Record]) -> None:
        """Store the sources and the context of rows, so that removing one cascades to them."""
        links = [(self.tenant, ref, row.seq) for row in rows for ref in linked_to(row)]
        if links:
            self.c.load("memory_sources", SOURCES, links)

    def _ready(self, draft: Draft) -> bool:
        """Return True if the draft has vectors of the live model: the model may have been replaced since they were
        made."""
        return draft.embedded and draft.model == self._spaces.model

    def draw(self, count: int) -> int:
        """Draw `count` revisions and return the first."""
        row = self.c.one("draw_revs", [count])
        assert row is not None
        self._applied.rev = int(row[0])
        first = self._applied.rev - count + 1
        self._applied.first = self._applied.first or first
        return first

    # --- changing ----------------------------------------------------------------------------------

    def replace(self, seq: int, change: Callable[[Record], Draft]) -> Record:
        """Rewrite one row by `change`, whose draft has new vectors if the embedded text changes, and no parts if it
        does not.

        Raises:
            NotFound: the row was removed meanwhile.
            Conflict: another row of the scope already has the new text.
        """
        before = fetch(self.c, self.tenant, [seq]).get(seq)
        if before is None:
            raise NotFound("the memory is not there")
        draft = change(before)
        self._check_text_free(seq, draft.row)
        row = draft.row._replace(seq=seq, rev=self.draw(1))
        self.c.run(
            "set_memory",
            [
                row.rev, row.kind, row.content, row.content_hash, row.dedup_key, row.role, row.source, row.tags,
                row.metadata, row.importance, row.confidence, row.valid_from, row.invalid_at, row.archived_at,
                row.source_refs, row.dated, row.occurred_at, row.updated_at, self.tenant, seq,
            ],
        )  # fmt: skip
        if linked_to(row) != linked_to(before):
            self.c.run("unlink_sources", [self.tenant, seq])
            self._link([row])
        if draft.parts:
            self._swap_vectors(seq, draft)
        self._applied.puts[self.tenant] += with_vectors(self.c, self.tenant, self._spaces.space, [row])
        self.edited(before, row)
        return row

    def _check_text_free(self, seq: int, row: Record) -> None:
        existing = self.c.all("memories_by_dedup", [self.tenant, compact_json([row.dedup_key])])
        for _, other, id_ in existing:
            if other != seq:
                raise Conflict(f"content: {id_} already holds this text in this scope; delete one of the two")

    def _swap_vectors(self, seq: int, draft: Draft) -> None:
        c, tenant, space, applied = self.c, self.tenant, self._spaces.space, self._applied
        c.run("drop_all_embeddings", [tenant, seq])
        if self._spaces.next is not None:
            c.run("add_pending", [tenant, self._spaces.next, seq])
        if not self._ready(draft):
            applied.pending[tenant] += c.run("add_pending", [tenant, space, seq])
            return
        if c.run("settle_embeddings", [tenant, space, compact_json([seq])]):
            applied.pending[tenant] -= 1
        c.many("add_embedding", list(embeddings(tenant, space, seq, draft.parts)))

    def mark(self, seqs: Iterable[int], change: Mark) -> list[Record]:
        """Change fields of rows that are not embedded: `change` may set session, tags, metadata, importance,
        confidence, validity, `superseded_by`, `archived_at`, access and sources. Removed rows are left out."""
        existing = fetch(self.c, self.tenant, sorted(set(seqs)))
        if not existing:
            return []
        first, now = self.draw(len(existing)), now_micros()
        rows = [
            change(existing[seq])._replace(rev=rev, updated_at=now)
            for rev, seq in enumerate(sorted(existing), first)
        ]
        self.c.many(
            "mark_memory",
            [
                (
                    row.rev, row.session_id, row.tags, row.metadata, row.importance, row.confidence, row.valid_from,
                    row.invalid_at, row.superseded_by, row.archived_at, row.access_count, row.last_accessed_at,
                    row.source_refs, now, self.tenant, row.seq,
                )
                for row in rows
            ],
        )  # fmt: skip
        moved = [row for row in rows if linked_to(row) != linked_to(existing[row.seq])]
        self.c.many("unlink_sources", [(self.tenant, row.seq) for row in moved])
        self._link(moved)
        self._applied.puts[self.tenant] += with_vectors(self.c, self.tenant, self._spaces.space, rows)
        return rows

    # --- removing ----------------------------------------------------------------------------------

    def remove(self, seqs: Iterable[int]) -> tuple[int, int]:
        """Delete rows with their vectors, and what `cascades` delete with them; return (rows, vectors) deleted."""
        listed = compact_json(sorted(set(seqs)))
        row = self.c.one("count_vectors_of", [self.tenant, listed])
        vectors = int(row[0]) if row else 0
        gone = [int(seq) for (seq,) in self.c.all("memories_there", [self.tenant, listed])]
        if not gone:
            return 0, vectors
        removed = [
            RemovedMemory._make([*fields, speaker_of(metadata, None) or user, by, at])
            for *fields, metadata, user, by, at in self.c.all("memories_going", [self.tenant, listed])
        ]
        rev = self.draw(1)
        waiting = self.waiting(gone)
        self.c.run("remove_memories", [self.tenant, listed])
        self._applied.pending[self.tenant] -= len(waiting)
        self.c.many("note_removal", [(self.tenant, rev, seq) for seq in gone])
        self._applied.removed[self.tenant] += gone
        left = set(gone)
        puts = self._applied.puts[self.tenant]
        self._applied.puts[self.tenant] = [put for put in puts if put.row.seq not in left]
        more = self.gone(removed)
        return len(gone) + more[0], vectors + more[1]

    def gone(self, removed: Sequence[RemovedMemory]) -> tuple[int, int]:
        """Call the cascades for removed rows, which may also be messages that are no memories. Return the (rows,
        vectors) that they deleted."""
        self.note(identity for item in removed for identity in identities_of(item.id, item.dedup_key))
        return added_up(cascade(self, removed) for cascade in self._cascades if removed)

    def note(self, identities: Iterable[Identity]) -> None:
        """Store tombstones of removed rows if they were to be deleted."""
        if self.by_request:
            note(self.c, self.tenant, identities)

    def edited(self, before: Record, after: Record) -> None:
        """Call `edits` for a changed text, which may also be of a message that is no memory."""
        for edit in self._edits:
            edit(self, before, after)


Cascade = Callable[[Writing, Sequence[RemovedMemory]], tuple[int, int]]
"""Called with removed memories (never chunks); returns the (rows, vectors) that it removed with them."""
Edit = Callable[[Writing, Record, Record], None]
"""Called with a memory before and after a change of its text, role, date or sources."""


def added_up(counts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Return the sums of (rows, vectors)."""
    pairs = list(counts)
    return sum(rows for rows, _ in pairs), sum(vectors for _, vectors in pairs)


def known_texts(c: Connection, tenant: str, drafts: Sequence[Draft]) -> dict[str, tuple[int, str]]:
    """Return the existing rows with these drafts' texts: (seq, id) by dedup key."""
    keys = compact_json([draft.row.dedup_key for draft in drafts])
    return {key: (seq, id_) for key, seq, id_ in c.all("memories_by_dedup", [tenant, keys])}


def compared(
    c: Connection, tenant: str, drafts: Sequence[Draft]
) -> tuple[list[Draft], dict[str, tuple[int, str]]]:
    """Return the drafts that are new, one for each text and scope, and the existing rows of the others: (seq, id) by
    the dedup key of the draft.

    Changes the dedup key of drafts with the id, kind, text and scope of a row, but for messages, of which two may be
    equal: such a draft is that row, and takes its key, which for a later version of a fact or a summary is not that
    of its text and scope.

    Raises:
        Conflict: an id given by the caller names two texts, or already names another text.
    """
    no_two_texts(drafts)
    named = [draft for draft in drafts if draft.named]
    taken = fetch_ids(c, tenant, [draft.row.id for draft in named]) if named else {}
    for draft in named:
        other = taken.get(draft.row.id)
        if other is not None and other.kind != "message" and is_same(draft.row, other):
            draft.row = draft.row._replace(dedup_key=other.dedup_key)
    known = known_texts(c, tenant, drafts)
    fresh: dict[str, Draft] = {}
    for draft in drafts:
        if draft.row.dedup_key not in known:
            fresh.setdefault(draft.row.dedup_key, draft)
    for draft in fresh.values():
        if draft.named and draft.row.id in taken:
            raise Conflict(
                f"id: {draft.row.id!r} already names another text; update it, or choose another id"
            )
    return list(fresh.values()), known


def no_two_texts(drafts: Sequence[Draft]) -> None:
    """Check that drafts with one id are one memory.

    Raises:
        Conflict: an id given by the caller names two texts, or one text of two kinds or scopes.
    """
    keys: dict[str, str] = {}
    for draft in drafts:
        row = draft.row
        if draft.named and keys.setdefault(row.id, row.dedup_key) != row.dedup_key:
            raise Conflict(
                f"id: {row.id!r} names two memories of the request; choose another id for one of them"
            )
