"""One transaction over a tenant's rows: what is put, changed, marked and removed together, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memoranda.clock import now_micros
from memoranda.errors import Conflict, NotFound
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import Applied, Outcome, Put, blob, placed
from memoranda.store.index_batches import with_vectors
from memoranda.store.rows import Record, fetch, refs_of
from memoranda.store.validation import Draft
from memoranda.text.json import compact_json

EMBEDDING = ("tenant_id", "space", "seq", "part", "start", "stop", "text_hash", "vector")
SOURCES = ("tenant_id", "source_id", "seq")
Mark = Callable[[Record], Record]


@dataclass(frozen=True, slots=True)
class Spaces:
    """The vector space that answers with its model, and the one that is to take over, when there is one."""

    space: int
    model: str
    next: int | None = None


class Gone(NamedTuple):
    """A memory that was removed, as far as it matters to what was made of it."""

    seq: int
    id: str
    kind: str
    channel_id: str | None
    session_id: str | None


class Writing:
    """The rows of one tenant inside one transaction, on the writing thread.

    `c` is the transaction, for what is written along. `cascades` are told of memories that go, `edits` of those whose
    text became another, in the same transaction; both may write more.
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
        self._applied = applied
        self._spaces = spaces
        self._known_tenant = known
        self._cascades = cascades
        self._edits = edits

    # --- putting -----------------------------------------------------------------------------------

    def insert(self, drafts: Sequence[Draft]) -> list[Outcome]:
        """Writes drafts; one whose text is already there in its scope is left as it is, and what is there returned.

        Raises:
            Conflict: an id given by the caller already names another text.
        """
        if not drafts:
            return []
        known = self._known(drafts)
        fresh: list[Draft] = []
        place: dict[str, int] = {}
        for draft in drafts:
            key = draft.row.dedup_key
            if key not in known and key not in place:
                place[key] = len(fresh)
                fresh.append(draft)
        self._check_ids([draft for draft in fresh if draft.named])
        rows = self._insert_rows(fresh) if fresh else []
        held = fetch(self.c, self.tenant, {seq for seq, _ in known.values()}) if known else {}
        self._revive(drafts, known, held)
        waiting = self.waiting(list(held))
        outcomes = []
        for draft in drafts:
            key = draft.row.dedup_key
            if key in known:
                seq = known[key][0]
                outcomes.append(Outcome(held[seq], created=False, embedded=seq not in waiting))
                continue
            at = place[key]
            outcomes.append(Outcome(rows[at], created=draft is fresh[at], embedded=self._ready(fresh[at])))
        return outcomes

    def _revive(
        self, drafts: Sequence[Draft], known: dict[str, tuple[int, str]], held: dict[int, Record]
    ) -> None:
        """A text that is said again comes back from the archive: it must be found after it was written."""
        seqs = {
            known[draft.row.dedup_key][0]
            for draft in drafts
            if draft.row.dedup_key in known and draft.row.archived_at is None
        }
        archived = [seq for seq in sorted(seqs) if held[seq].archived_at is not None]
        if archived:
            held |= {row.seq: row for row in self.mark(archived, lambda row: row._replace(archived_at=None))}

    def _known(self, drafts: Sequence[Draft]) -> dict[str, tuple[int, str]]:
        return known_texts(self.c, self.tenant, drafts)

    def waiting(self, seqs: Sequence[int]) -> set[int]:
        """Return those of these rows whose vectors are still to be made."""
        if not seqs:
            return set()
        values = [self.tenant, self._spaces.space, compact_json(seqs)]
        return {seq for (seq,) in self.c.all("owed_among", values)}

    def _check_ids(self, named: Sequence[Draft]) -> None:
        if not named:
            return
        ids = [draft.row.id for draft in named]
        taken = {id_ for id_, _, _ in self.c.all("memories_by_id", [self.tenant, compact_json(ids)])}
        seen: set[str] = set()
        for id_ in ids:
            if id_ in taken or id_ in seen:
                raise Conflict(f"id: {id_!r} already names another text; update it, or choose another id")
            seen.add(id_)

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
                (tenant, space, row.seq, number, part.start, part.stop, part.text_hash, blob(part.vector))
                for row, draft in zip(rows, fresh, strict=True)
                if self._ready(draft)
                for number, part in enumerate(draft.parts)
                if part.vector is not None
            ),
        )
        self._link(row for row in rows if row.source_refs != "[]")
        owed = [row.seq for row, draft in zip(rows, fresh, strict=True) if not self._ready(draft)]
        if owed:
            c.many("owe_embedding", [(tenant, space, seq) for seq in owed])
            applied.owed[tenant] += len(owed)
        if self._spaces.next is not None:
            c.many("owe_embedding", [(tenant, self._spaces.next, row.seq) for row in rows])
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
        """Notes what rows were made of, so that it is known what goes with a source."""
        links = [(self.tenant, ref, row.seq) for row in rows for ref in dict.fromkeys(refs_of(row))]
        if links:
            self.c.load("memory_sources", SOURCES, links)

    def _ready(self, draft: Draft) -> bool:
        """Whether the draft's vectors are there and of the model that answers now: another may have taken over
        since they were made."""
        return draft.embedded and draft.model == self._spaces.model

    def draw(self, count: int) -> int:
        """Takes `count` revisions; the first of them."""
        row = self.c.one("draw_revs", [count])
        assert row is not None
        self._applied.rev = int(row[0])
        first = self._applied.rev - count + 1
        self._applied.first = self._applied.first or first
        return first

    # --- changing ----------------------------------------------------------------------------------

    def replace(self, seq: int, change: Callable[[Record], Draft]) -> Record:
        """Rewrites one row by `change`, whose draft has new vectors when the embedded text is another one and
        no parts when it is not.

        Raises:
            NotFound: the row went away meanwhile.
            Conflict: another row of the scope already holds the new text.
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
        if row.source_refs != before.source_refs:
            self.c.run("unlink_sources", [self.tenant, seq])
            self._link([row])
        if draft.parts:
            self._swap_vectors(seq, draft)
        self._applied.puts[self.tenant] += with_vectors(self.c, self.tenant, self._spaces.space, [row])
        self.edited(before, row)
        return row

    def _check_text_free(self, seq: int, row: Record) -> None:
        held = self.c.all("memories_by_dedup", [self.tenant, compact_json([row.dedup_key])])
        for _, other, id_ in held:
            if other != seq:
                raise Conflict(f"content: {id_} already holds this text in this scope; delete one of the two")

    def _swap_vectors(self, seq: int, draft: Draft) -> None:
        c, tenant, space, applied = self.c, self.tenant, self._spaces.space, self._applied
        c.run("drop_all_embeddings", [tenant, seq])
        if self._spaces.next is not None:
            c.run("owe_embedding", [tenant, self._spaces.next, seq])
        if not self._ready(draft):
            applied.owed[tenant] += c.run("owe_embedding", [tenant, space, seq])
            return
        if c.run("settle_embedding", [tenant, space, seq]):
            applied.owed[tenant] -= 1
        c.many(
            "add_embedding",
            [
                (tenant, space, seq, number, part.start, part.stop, part.text_hash, blob(part.vector))
                for number, part in enumerate(draft.parts)
                if part.vector is not None
            ],
        )

    def mark(self, seqs: Iterable[int], change: Mark) -> list[Record]:
        """Gives rows another standing: `change` may touch their session, tags, metadata, importance, confidence,
        validity, `superseded_by`, `archived_at`, access and sources; what was embedded stays. Rows that are gone
        are left out."""
        held = fetch(self.c, self.tenant, sorted(set(seqs)))
        if not held:
            return []
        first, now = self.draw(len(held)), now_micros()
        rows = [
            change(held[seq])._replace(rev=rev, updated_at=now) for rev, seq in enumerate(sorted(held), first)
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
        moved = [row for row in rows if row.source_refs != held[row.seq].source_refs]
        self.c.many("unlink_sources", [(self.tenant, row.seq) for row in moved])
        self._link(moved)
        self._applied.puts[self.tenant] += with_vectors(self.c, self.tenant, self._spaces.space, rows)
        return rows

    # --- removing ----------------------------------------------------------------------------------

    def remove(self, seqs: Iterable[int]) -> tuple[int, int]:
        """Deletes rows with their vectors, and what `cascades` delete with them; (rows, vectors) deleted."""
        listed = compact_json(sorted(set(seqs)))
        row = self.c.one("count_vectors_of", [self.tenant, listed])
        vectors = int(row[0]) if row else 0
        gone = [int(seq) for (seq,) in self.c.all("memories_there", [self.tenant, listed])]
        if not gone:
            return 0, vectors
        told = [Gone._make(one) for one in self.c.all("memories_going", [self.tenant, listed])]
        rev = self.draw(1)
        waiting = self.waiting(gone)
        self.c.run("remove_memories", [self.tenant, listed])
        self._applied.owed[self.tenant] -= len(waiting)
        self.c.many("note_removal", [(self.tenant, rev, seq) for seq in gone])
        self._applied.removed[self.tenant] += gone
        left = set(gone)
        puts = self._applied.puts[self.tenant]
        self._applied.puts[self.tenant] = [put for put in puts if put.row.seq not in left]
        more = self.gone(told)
        return len(gone) + more[0], vectors + more[1]

    def gone(self, told: Sequence[Gone]) -> tuple[int, int]:
        """Tells the cascades of what went, which may have been no memory: a message that no search found. What they
        deleted with it, as (rows, vectors)."""
        rows = vectors = 0
        for cascade in self._cascades if told else ():
            more = cascade(self, told)
            rows, vectors = rows + more[0], vectors + more[1]
        return rows, vectors

    def edited(self, before: Record, after: Record) -> None:
        """Tells `edits` of a text that became another, which may be in no memory."""
        for edit in self._edits:
            edit(self, before, after)


Cascade = Callable[[Writing, Sequence[Gone]], tuple[int, int]]
"""Told of memories (never of chunks) that were removed; (rows, vectors) that it removed with them."""
Edit = Callable[[Writing, Record, Record], None]
"""Told of a memory before and after its text, role, date or sources were changed."""


def known_texts(c: Connection, tenant: str, drafts: Sequence[Draft]) -> dict[str, tuple[int, str]]:
    """The rows that already hold these drafts' texts: (seq, id) by dedup key."""
    keys = compact_json([draft.row.dedup_key for draft in drafts])
    return {key: (seq, id_) for key, seq, id_ in c.all("memories_by_dedup", [tenant, keys])}
