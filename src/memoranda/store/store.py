"""Rows, and the indexes derived from them. Every write of a memory goes through this module.

Rows commit first; the two indexes follow in step, see `index_sync`. A search that begins after a write returned sees
it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from functools import partial, update_wrapper
from typing import Any, TypeVar

import numpy as np

from memoranda.config.agent_sections import OPERATOR_TENANT
from memoranda.errors import DimensionMismatch
from memoranda.indexes.keyword.base import Words
from memoranda.indexes.vector.base import Index
from memoranda.storage.sql.base import Connection, Database, Row
from memoranda.store.changes import (
    Applied,
    Outcome,
    Put,
    Settled,
    StoredVectors,
    embeddings,
    text_key,
    weight,
)
from memoranda.store.covering import note as embedder_note
from memoranda.store.forgotten import forgotten_rows
from memoranda.store.index_sync import Derived, Live, Mirror
from memoranda.store.integrity import Compared, Damage
from memoranda.store.jobs import REMODEL_JOB, REMODEL_KEY
from memoranda.store.rows import CHUNK, Draft, Record, fetch, fetch_ids, is_same, newer_than
from memoranda.store.transaction import Cascade, Edit, Spaces, Writing, compared, known_texts
from memoranda.text.memo import let_go
from memoranda.text.stored import compact_json

T = TypeVar("T")
COMPARED = 1_000
"""Texts that are read and compared with their hashes at once."""


PAGE = 5_000
"""Rows whose embeddings are marked as pending in one transaction."""
VECTORS = 1_000
"""Rows whose vectors of other models are dropped in one transaction."""
LAST = (1 << 63) - 1
"""The greatest seq."""
Along = Callable[[Connection, list[Outcome]], None]
"""Writes more in the transaction of drafts, given their outcomes; it may refuse them all."""


class Store:
    """One database, one vector space of it, one index of each kind."""

    def __init__(self, db: Database, index: Index, words: Words, model: str) -> None:
        self.db = db
        self.derived = Derived(db, index, words)
        self.damage = Damage()
        self.derived.live = Live(index, 0, model)
        self.pending_counts: dict[str, int] = {}
        self.next_space: int | None = None
        self.next_model = ""
        """The next model during a migration; every row needs a vector in `next_space` too."""
        self.on_pending: Callable[[str], None] = lambda tenant: None
        """Called on the writing thread when rows of a tenant were written without vectors."""
        self.cascades: list[Cascade] = []
        self.edits: list[Edit] = []
        """Called when memories are removed (`cascades`) or their texts change (`edits`), see `Writing`."""
        self.caches: list[Callable[[], None]] = [let_go]
        """Called, on any thread, when this or another process has erased rows: each clears an in-memory cache."""
        self.derived.on_purged = self._clear_caches
        self._tenants: set[str] = set()

    @property
    def index(self) -> Index:
        """The live vector index."""
        return self.derived.index

    @property
    def words(self) -> Words:
        """The keyword index."""
        return self.derived.words

    @property
    def behind(self) -> dict[str, int]:
        """The sides that miss changes, see `Derived`."""
        return self.derived.behind | dict.fromkeys(self.derived.displaced, 0)

    @property
    def model(self) -> str:
        """The model of the live vectors."""
        return self.derived.live.model

    @property
    def space(self) -> int:
        """The number of the vector space in the rows."""
        return self.derived.space

    # --- opening -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Find or create the vector space, then bring both indexes up to date with the rows.

        Raises:
            DimensionMismatch: the model is known to this folder with another dimension.
            StorageError: the rows cannot be read.
        """
        space, moved = self.db.write(self._find_space).result()
        self.derived.live = Live(self.index, space, self.model)
        if moved:
            self.db.write(self._mark_missing).result()
        self.count_pending()
        self.derived.open()

    def count_pending(self) -> None:
        """Count the rows with pending embeddings again, by tenant; on the writing thread, where every write of this
        process adds its own."""

        def note(rows: Sequence[Row]) -> None:
            self.pending_counts = dict(rows)

        self.db.write(lambda c: c.all("count_pending", [self.space]), note).result()

    def pending_rows(self, tenant: str, space: int, limit: int) -> list[Record]:
        """Return at most `limit` rows whose embeddings in a space are pending, oldest first."""

        def read(c: Connection) -> list[Record]:
            seqs = [seq for seq, _ in c.all("pending_embeddings", [tenant, space, 0, limit])]
            return list(fetch(c, tenant, seqs).values())

        return self.db.read(read, tenant)

    def extent(self, tenant: str) -> tuple[int, int]:
        """Return the seq of a tenant's newest row, and the number of its rows."""

        def read(c: Connection) -> tuple[int, int]:
            newest, count = c.one("newest", [tenant, 1]), c.one("count_memories", [tenant])
            return int(newest[0]) if newest else 0, int(count[0]) if count else 0

        return self.db.read(read, tenant)

    def newest_texts(self, tenant: str, limit: int) -> list[str]:
        """Return the texts of a tenant's newest rows, at most `limit`."""

        def read(c: Connection) -> list[str]:
            seqs = [int(seq) for (seq,) in c.all("newest", [tenant, limit])]
            return [row.content for row in fetch(c, tenant, seqs).values()]

        return self.db.read(read, tenant)

    def rows_between(self, tenant: str, after: int, upto: int, limit: int) -> list[Record]:
        """Return at most `limit` rows beyond the seq `after`, and not beyond `upto`, oldest first."""
        rows = self.db.read(lambda c: newer_than(c, tenant, 0, after, limit), tenant)
        return [row for row in rows if row.seq <= upto]

    def tenants_without_tokens(self) -> list[str]:
        """Return the tenants with vectors of the live model whose token vectors are not made yet."""
        asked = [compact_json(self.derived.tenants()), self.space]
        return [str(tenant) for (tenant,) in self.db.read(lambda c: c.all("tenants_without_tokens", asked))]

    def rows_without_tokens(self, tenant: str, after: int, limit: int) -> list[Record]:
        """Return at most `limit` rows beyond the seq `after` whose token vectors are not made yet, oldest first."""

        def read(c: Connection) -> list[Record]:
            seqs = [int(seq) for (seq,) in c.all("without_tokens", [tenant, self.space, after, limit])]
            rows = fetch(c, tenant, seqs)
            return [rows[seq] for seq in seqs if seq in rows]

        return self.db.read(read, tenant)

    def compare_texts(self, tenant: str, *, everything: bool) -> Compared:
        """Compare the texts of a tenant with their hashes: all, or `COMPARED` in a row from a random one on."""
        newest, _ = self.extent(tenant)
        after, total, damaged = 0 if everything else random.randrange(newest + 1), 0, list[str]()
        while rows := self.rows_between(tenant, after, newest, COMPARED):
            intact = {row.seq for row in self.damage.intact(rows)}
            damaged += [row.id for row in rows if row.seq not in intact]
            total, after = total + len(rows), rows[-1].seq
            if not everything:
                break
        return Compared(total, damaged)

    def pending_in(self, space: int) -> dict[str, int]:
        """Return the number of rows whose embeddings in a space are pending, by tenant."""
        return dict(self.db.read(lambda c: c.all("count_pending", [space])))

    def prepare(self, model: str, dim: int) -> None:
        """Create the space of the next model, and mark the embeddings of every row in it as pending.

        Raises:
            DimensionMismatch: the model is known with another dimension.
        """

        def work(c: Connection) -> int:
            return self._space_of(c, model, dim)

        def note(space: int) -> None:  # later writes mark their rows themselves
            self.next_space, self.next_model = space, model

        space = self.db.write(work, note).result()

        def mark(tenant: str, first: int, last: int, c: Connection) -> int:
            return c.run("add_missing_pending", [space, tenant, first, last])

        for tenant in self.derived.tenants():
            self._by_pages(tenant, partial(mark, tenant), PAGE)

    def switch(
        self,
        mirror: Mirror,
        model: str,
        embedder_url: str = "",
        *,
        leave: int = 0,
        then: Callable[[], None] = lambda: None,
    ) -> Index | None:
        """Make a filled mirror the live index and return the old index. Return None, and change nothing, if more than
        `leave` rows have pending embeddings in its space. `then` is called in the same step."""

        def work(c: Connection) -> bool:
            c.one("draw_revs", [1])  # waits for writes of other processes that have begun
            pending = sum(count for _, count in c.all("count_pending", [mirror.space]))
            if mirror.space != self.space and pending > leave:
                return False
            c.run("set_meta", ["space", str(mirror.space)])
            c.run("remodel_stores", [model, mirror.index.dim, model, mirror.index.dim])
            if embedder_url:
                c.run("set_meta", ["embedder", embedder_url])
            c.run("set_meta", ["keeps.index", self.derived.identity("index", mirror.index, mirror.space)])
            return True

        old: list[Index] = []

        def take_over(settled: bool) -> None:
            if settled:
                old.append(self.derived.take_over(mirror, model))
                if self.next_space == mirror.space:
                    self.next_space, self.next_model = None, ""
                then()

        self.db.write(work, take_over).result()
        if not old:
            return None
        self.count_pending()
        for tenant, count in self.pending_counts.items():
            if count:
                self.on_pending(tenant)
        return old[0]

    def _find_space(self, c: Connection) -> tuple[int, bool]:
        """Return the space of the model, and True if the folder was last written with another model."""
        space, last = self._space_of(c, self.model, self.index.dim), c.one("get_meta", ["space"])
        if last is not None and int(last[0]) == space:
            return space, False
        c.run("set_meta", ["space", str(space)])
        c.run("remodel_stores", [self.model, self.index.dim, self.model, self.index.dim])
        return space, True

    def _space_of(self, c: Connection, model: str, dim: int) -> int:
        known = c.one("space_of", [model])
        if known is not None and known[1] != dim:
            raise DimensionMismatch(
                "embedder.url", f"{model} has {dim} dimensions here, {known[1]} in the stored vectors"
            )
        row = known or c.one("add_space", [model, dim])
        assert row is not None
        return int(row[0])

    def _mark_missing(self, c: Connection) -> None:
        for (tenant,) in c.all("tenants"):
            c.run("add_missing_pending", [self.space, tenant, 0, LAST])

    def _drop_foreign(self, tenant: str) -> None:
        """Drop a tenant's vectors of other models, unless another process has one of them or is changing over to it.
        The live and the next model change on the writing thread, so they are read there."""

        def drop(first: int, last: int, c: Connection) -> int:
            if self.pending_counts.get(tenant) or self.next_space is not None:
                return 0
            live = c.one("get_meta", ["space"])
            if live is None or int(live[0]) != self.space:
                return 0
            if c.one("twin_job", [OPERATOR_TENANT, REMODEL_JOB, REMODEL_KEY]) is not None:
                return 0
            return c.run("drop_foreign_spaces", [self.space, tenant, first, last])

        self._by_pages(tenant, drop, VECTORS, all_tenants=True)  # the job is the operator's

    def _by_pages(
        self,
        tenant: str,
        work: Callable[[int, int, Connection], int],
        size: int,
        *,
        all_tenants: bool = False,
    ) -> None:
        """Change a tenant's rows, one page per transaction: `work` gets the seq before the page and the last one. With
        `all_tenants` it may read rows of others too."""
        after = 0
        while True:
            where = [tenant, after, size]
            end = self.db.read(lambda c, where=where: c.one("page_end", where), tenant)  # type: ignore[misc]
            if end is None or end[0] is None:
                return
            within = None if all_tenants else tenant
            self.db.write(partial(work, after, int(end[0])), tenant=within).result()
            after = end[0]

    def refresh(self) -> None:
        """Follow other processes of the same database, see `Derived.refresh`."""
        self.count_pending()
        self.derived.refresh()

    # --- writing -----------------------------------------------------------------------------------

    def transact(self, tenant: str, work: Callable[[Writing], T]) -> Future[T]:
        """Queue `work`, a change of one tenant's rows as one transaction; the indexes follow it.

        Raises (in the future):
            Whatever `work` raises; nothing was written then.
        """

        def change(c: Connection, applied: Applied) -> T:
            return work(self._writing(c, tenant, applied))

        return self._write(tenant, update_wrapper(change, work))

    def _writing(self, c: Connection, tenant: str, applied: Applied) -> Writing:
        spaces = Spaces(self.space, self.model, self.next_space)
        return Writing(c, tenant, applied, spaces, tenant in self._tenants, self.cascades, self.edits)

    def forgotten(self, tenant: str, drafts: Sequence[Draft], since: int | None) -> list[bool]:
        """Return for each draft whether it, or its text in its scope, was forgotten after a moment (microseconds), and
        is not stored again; False for all without a moment."""
        if since is None:
            return [False] * len(drafts)

        def read(c: Connection) -> list[bool]:
            gone = forgotten_rows(c, tenant, [draft.row for draft in drafts], since)
            if not any(gone):
                return gone
            known = known_texts(c, tenant, drafts)
            here = fetch_ids(c, tenant, [draft.row.id for draft in drafts])
            stored = [
                row.dedup_key in known or (row.id in here and is_same(row, here[row.id]))
                for row in (draft.row for draft in drafts)
            ]
            return [each and not there for each, there in zip(gone, stored, strict=True)]

        return self.db.read(read, tenant)

    def put(self, drafts: Sequence[Draft], along: Along | None = None) -> Future[list[Outcome]]:
        """Write drafts of one tenant, and what `along` writes with them. If the text of a draft exists in its scope,
        the existing row is returned unchanged.

        Raises (in the future):
            Conflict: an id given by the caller already names another text; nothing of the batch was written.
            Whatever `along` raises; nothing of the batch was written.
        """

        def work(w: Writing) -> list[Outcome]:
            outcomes = w.insert(drafts)
            if along is not None:
                along(w.c, outcomes)
            return outcomes

        return self.transact(drafts[0].row.tenant_id, work)

    def rewrite(
        self, tenant: str, seqs: Sequence[int], change: Callable[[Record], Record]
    ) -> Future[list[Record]]:
        """Change fields of rows that are not embedded, see `Writing.mark`."""
        return self.transact(tenant, lambda w: w.mark(seqs, change))

    def replace(self, tenant: str, seq: int, change: Callable[[Record], Draft]) -> Future[Record]:
        """Rewrites one row, see `Writing.replace`."""
        return self.transact(tenant, lambda w: w.replace(seq, change))

    def remove(self, tenant: str, seqs: Sequence[int]) -> Future[tuple[int, int]]:
        """Delete rows with their vectors, in rows and indexes; return (rows, vectors) deleted."""
        return self.transact(tenant, lambda w: w.remove(seqs))

    def _write(self, tenant: str, work: Callable[[Connection, Applied], T]) -> Future[T]:
        """Queue a change of one tenant's rows; the indexes follow it."""
        applied = Applied()

        def change(c: Connection) -> T:
            applied.clear()
            result = work(c, applied)
            applied.folded()
            self.derived.inside(c, applied)
            return result

        return self.db.write(update_wrapper(change, work), lambda _: self._apply(applied), tenant)

    def _space(self, model: str) -> int | None:
        """Return the space of the live or the next model; None for any other."""
        if model == self.model:
            return self.space
        return self.next_space if model == self.next_model else None

    def weight(self, draft: Draft) -> float:
        """Return the cost of writing a draft now, in rows of ordinary size."""
        return weight(draft, self.derived.put_limit)

    def settle(self, tenant: str, embedded: Sequence[Settled], model: str) -> Future[int]:
        """Store vectors that `model` made for rows written before. Rows that were changed or removed meanwhile are left
        out. Return the number of rows settled."""

        def work(c: Connection, applied: Applied) -> int:
            rows = fetch(c, tenant, [item.seq for item in embedded])
            ready = [
                item for item in embedded if item.seq in rows and text_key(rows[item.seq]) == item.text_key
            ]
            into = self._space(model)
            if not ready or into is None:
                return 0
            seqs = compact_json([item.seq for item in ready])
            c.run("drop_embeddings", [tenant, into, seqs])
            rows_of = [row for item in ready for row in embeddings(tenant, into, item.seq, item.parts)]
            c.many("add_embedding", rows_of)
            count = c.run("settle_embeddings", [tenant, into, seqs])
            if into != self.space:
                mirror = self.derived.mirror
                if mirror is None or mirror.space != into:
                    return len(ready)
                applied.mirrored[tenant] = [Put(rows[item.seq], item.vectors) for item in ready]
                return len(ready)
            first = self._writing(c, tenant, applied).draw(len(ready))
            revs = {item.seq: first + i for i, item in enumerate(ready)}
            c.many("set_rev", [(rev, tenant, seq) for seq, rev in revs.items()])
            applied.pending[tenant] = -count
            applied.puts[tenant] = [
                Put(rows[item.seq]._replace(rev=revs[item.seq]), item.vectors, reworded=False)
                for item in ready
            ]
            return len(ready)

        return self._write(tenant, work)

    def mark_pending(self, tenant: str) -> int:
        """Mark the embeddings of rows without vectors as pending. Return how many are pending."""

        def mark(first: int, last: int, c: Connection) -> int:
            return c.run("add_missing_pending", [self.space, tenant, first, last])

        self._by_pages(tenant, mark, PAGE)
        self.count_pending()
        return self.pending_counts.get(tenant, 0)

    # --- after the commit --------------------------------------------------------------------------

    def _apply(self, applied: Applied) -> None:
        self._tenants.update(applied.puts)
        self.derived.after(applied)
        for (
            tenant,
            change,
        ) in applied.pending.items():  # last: until an index has a vector, its row counts as pending
            self.pending_counts[tenant] = self.pending_counts.get(tenant, 0) + change
            if change > 0:
                self.on_pending(tenant)
        for call in applied.calls:
            call()

    # --- reading -----------------------------------------------------------------------------------

    def known(self, tenant: str, drafts: Sequence[Draft], model: str) -> tuple[set[str], StoredVectors]:
        """Return the dedup keys of these drafts that are stored already, and the `known_vectors` of the whole
        texts of the others."""

        def read(c: Connection) -> tuple[set[str], StoredVectors]:
            keys = set(known_texts(c, tenant, drafts))
            hashes = [text_key(draft.row) for draft in drafts if draft.row.dedup_key not in keys]
            return keys, self._known_vectors(c, tenant, hashes, model) if hashes else {}

        return self.db.read(read, tenant)

    def known_vectors(self, tenant: str, hashes: Iterable[str], model: str) -> StoredVectors:
        """Return the tenant's stored vectors of a model for texts of these hashes, and the codes of their tokens."""
        return self.db.read(lambda c: self._known_vectors(c, tenant, hashes, model), tenant)

    def _known_vectors(self, c: Connection, tenant: str, hashes: Iterable[str], model: str) -> StoredVectors:
        space = self._space(model)
        if space is None:
            return {}
        rows = c.all("known_vectors", [tenant, space, compact_json(list(hashes))])
        return {key: (np.frombuffer(data, dtype="<f4"), tokens) for key, data, tokens in rows}

    def has_vectors(self, tenant: str) -> bool:
        """Return True if the tenant has vectors of the live model, or no vectors of any model."""

        def read(c: Connection) -> bool:
            mine = c.one("has_embeddings", [tenant, self.space])
            return mine is not None or c.one("has_embedding", [tenant]) is None

        return self.db.read(read, tenant)

    def known_texts(self, tenant: str, drafts: Sequence[Draft]) -> set[str]:
        """Return the dedup keys of these drafts that are stored already."""
        return set(self.db.read(lambda c: known_texts(c, tenant, drafts), tenant))

    def check_ids(self, tenant: str, drafts: Sequence[Draft]) -> None:
        """Check the ids of drafts that take several transactions to write.

        Raises:
            Conflict: an id given by the caller already names another text.
        """
        if any(draft.named for draft in drafts):
            self.db.read(lambda c: compared(c, tenant, drafts), tenant)

    def by_id(self, tenant: str, ids: Sequence[str]) -> dict[str, Record]:
        """Return the rows of these ids, by id; missing ones are left out."""
        return self.db.read(lambda c: fetch_ids(c, tenant, ids), tenant)

    def purge(self) -> None:
        """Remove the words and vectors of deleted rows from every file.

        Raises:
            StorageError: the log could not be emptied; what was deleted stays deleted.
        """
        self._clear_caches()
        self.derived.purge()
        self.derived.forget_removals()
        self.db.erase().result()

    def _clear_caches(self) -> None:
        for cache in self.caches:
            cache()

    def compact(self) -> None:
        """Free the space of deleted rows in the database and both indexes. Drop the vectors of other models, for
        tenants without pending embeddings."""
        for tenant in self.derived.tenants():
            self._drop_foreign(tenant)
        self.purge()
        for index in (self.index, self.words):
            if index.inside:
                index.compact()
        self.db.compact().result()

    def stats(self, tenant: str) -> dict[str, Any]:
        """Return counts and sizes, see `Memories.stats`."""

        awaited = self.space if self.next_space is None else self.next_space

        def counts(c: Connection) -> dict[str, Any]:
            kinds = c.all("stats_by_kind", [tenant])
            vectors = c.one("count_embeddings", [tenant, self.space])
            without_tokens = c.one("count_without_tokens", [tenant, self.space])
            chunks = sum(count for kind, count, _ in kinds if kind == CHUNK)
            kinds = [row for row in kinds if row[0] != CHUNK]
            return {
                "memories": sum(count for _, count, _ in kinds),
                "characters": sum(chars for _, _, chars in kinds),
                "by_kind": {kind: count for kind, count, _ in kinds},
                "chunks": chunks,
                "vectors": vectors[0] if vectors else 0,
                "without_token_vectors": without_tokens[0] if without_tokens else 0,
                "unembedded": sum(n for t, n in c.all("count_pending", [awaited]) if t == tenant),
                "jobs": dict(c.all("count_jobs")),
                "embedder_note": embedder_note(c, self.model),
            }

        return self.db.read(counts, tenant) | {
            "indexed_vectors": self.index.count(tenant),
            "indexed_words": self.words.count(tenant),
            "behind": sorted(self.behind),
            "model": self.model,
            "dimension": self.index.dim,
            "database": self.db.health(),
            "index": self.index.health(),
            "words": self.words.health(),
        }

    def close(self) -> None:
        """Finish writes, then save and close both indexes."""
        self.db.close()
        self.derived.close()
