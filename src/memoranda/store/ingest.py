"""The one write path: drafts, windows, vectors, rows. The model answers before the transaction begins."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from memoranda.clock import now_micros
from memoranda.concurrency.threads import Threads
from memoranda.errors import EmbedderUnavailable, SpendingLimit
from memoranda.providers.embeddings.base import Embedder, Span
from memoranda.store.changes import Outcome, Settled, text_key
from memoranda.store.retrieval.pending import Vectors
from memoranda.store.rows import ITEM, TEXT_SEPARATOR, Record, header, searched_text
from memoranda.store.steps import DRAFTS, parted, weight
from memoranda.store.store import Along, Store
from memoranda.store.usage import Cost, Ledger
from memoranda.store.validation import GIVEN, NUMERIC, Bounds, Draft, Part, changed, check_vector, draft
from memoranda.text.hashing import digest
from memoranda.types import Change, NewMemory, Subject

log = logging.getLogger("memoranda.ingest")
T = TypeVar("T")
WRITE, FILES, EMBED = "write", "files", "embed"
"""What the ledger calls a write, the indexing of a file, and vectors made later."""
BATCH = 1_000
"""Drafts that are embedded together."""
FEW = 4
"""Drafts whose windows are cut right away; more go to a thread."""


class Ingest:
    """Writes memories into one store with one embedder."""

    def __init__(
        self, store: Store, embedder: Embedder, threads: Threads, bounds: Bounds, ledger: Ledger
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.threads = threads
        self.bounds = bounds
        self.ledger = ledger

    def drafts(self, subject: Subject, items: Sequence[NewMemory]) -> list[Draft]:
        """Return the rows that the items ask for, with the vectors that came with them.

        Raises:
            InvalidInput: names the item by its place (`[3].tags`), the field and the fix.
        """
        now = now_micros()
        made = [
            draft(item, subject, now, self.bounds, f"[{i}]." if len(items) > 1 else "")
            for i, item in enumerate(items)
        ]
        self._take_given(items, made)
        return made

    async def embed(self, tenant: str, drafts: Sequence[Draft], purpose: str) -> None:
        """Embed the drafts that came without vectors, with those of the same texts stored before where there are any.
        While the model is away, or the tenant has spent its day, they stay without."""
        bare = [one for one in drafts if not one.parts]
        with _later(bare):
            await self._vectors(tenant, bare, purpose, reuse=True)

    async def write(self, tenant: str, drafts: Sequence[Draft]) -> list[Outcome]:
        """Embeds what has no vectors yet, a thousand at a time, and stores the drafts in steps."""
        outcomes: list[Outcome] = []
        for at in range(0, len(drafts), BATCH):
            batch = drafts[at : at + BATCH]
            await self.prepare(tenant, batch)
            for some in parted(batch, weight, DRAFTS):
                done: list[Outcome] = await self.threads.result(self.store.put(some))
                outcomes.extend(done)
        return outcomes

    async def prepare(self, tenant: str, drafts: Sequence[Draft]) -> None:
        """Embeds what has no vectors yet, for a transaction of the caller's own. Drafts for which none can be made now
        stay without: their rows will be owed."""
        self.ledger.note(tenant, WRITE, Cost(operations=len(drafts)))
        with _later(drafts):
            await self._fill(tenant, drafts, WRITE)

    async def write_with(
        self, tenant: str, drafts: Sequence[Draft], embedder: Embedder, along: Along
    ) -> list[Outcome]:
        """Embeds drafts with `embedder`, whose model is that of the store, and stores them in one transaction in which
        `along` writes what belongs to them, or refuses them.

        Raises:
            EmbedderUnavailable: the model does not answer; nothing was stored.
            SpendingLimit: the tenant has spent its day; nothing was stored.
        """
        self.ledger.note(tenant, FILES, Cost(operations=len(drafts)))
        await self._fill(tenant, drafts, FILES, embedder)
        return await self.threads.result(self.store.put(drafts, along))

    def _take_given(self, items: Sequence[NewMemory], drafts: Sequence[Draft]) -> None:
        """Vectors that came with the items, as the only part of their drafts."""
        given = [i for i, item in enumerate(items) if item.embedding is not None]
        vectors = self._checked([items[i].embedding for i in given], given, len(items))
        for i, vector in zip(given, vectors, strict=True):
            row = drafts[i].row
            drafts[i].model = self.embedder.model
            drafts[i].parts = [Part(0, len(row.content), row.content, f"{GIVEN}{row.content_hash}", vector)]

    def _checked(
        self, values: Sequence[object], places: Sequence[int], total: int
    ) -> Sequence[NDArray[np.float32]]:
        """The fast way for a whole batch of arrays; one by one, to name the culprit, when that fails."""
        dim = self.embedder.dim
        if values and all(
            isinstance(value, np.ndarray) and value.shape == (dim,) and value.dtype.kind in NUMERIC
            for value in values
        ):
            with np.errstate(over="ignore"):
                stacked = np.stack(values).astype(np.float32, copy=False)  # type: ignore[arg-type]
            if np.isfinite(stacked).all():
                return stacked  # type: ignore[return-value]
        return [
            check_vector(value, dim, f"[{i}].embedding" if total > 1 else "embedding")
            for i, value in zip(places, values, strict=True)
        ]

    async def _fill(
        self, tenant: str, drafts: Sequence[Draft], purpose: str, embedder: Embedder | None = None
    ) -> None:
        """Fills in the vectors that are missing: from the same texts stored before, else from the model.

        Raises:
            EmbedderUnavailable: the model does not answer; the drafts are left without.
            SpendingLimit: the tenant has spent its day; the drafts are left without.
        """
        bare = [one for one in drafts if not one.parts]
        if not bare:
            return
        known = await self.threads.run(self.store.known_texts, tenant, bare)
        fresh = [one for one in bare if one.row.dedup_key not in known]
        if fresh:
            await self._vectors(tenant, fresh, purpose, reuse=True, embedder=embedder)

    async def _vectors(
        self,
        tenant: str,
        drafts: Sequence[Draft],
        purpose: str,
        *,
        reuse: bool,
        embedder: Embedder | None = None,
    ) -> None:
        embedder = embedder or self.embedder
        if len(drafts) > FEW:  # counting tokens takes a while: elsewhere than where requests are answered
            await self.threads.run(_cut, drafts, embedder)
        else:
            _cut(drafts, embedder)
        parts = {part.text_hash: part for one in drafts for part in one.parts}
        held: dict[str, NDArray[np.float32]] = {}
        if reuse:
            held = await self.threads.run(self.store.known_vectors, tenant, parts, embedder.model)
        wanted = [part for text_hash, part in parts.items() if text_hash not in held]
        texts = [part.text for part in wanted]
        made = await self.ledger.embed(embedder, texts, tenant=tenant, purpose=purpose)
        held |= {part.text_hash: vector for part, vector in zip(wanted, made.vectors, strict=True)}
        for one in drafts:
            for part in one.parts:
                part.vector = held[part.text_hash]

    async def update(self, subject: Subject, row: Record, change: Change) -> Record:
        """Rewrites a row; embeds again only when the embedded text changed.

        Raises:
            InvalidInput: names the field and the fix.
            Conflict: another memory of the scope already holds the new text.
        """
        after = changed(row, change, now_micros(), self.bounds)
        parts: list[Part] = []
        model = ""
        if searched_text(after) != searched_text(row):
            made = Draft(after, named=True)
            with _later([made]):
                await self._vectors(subject.tenant_id, [made], WRITE, reuse=True)
            parts, model = made.parts, made.model

        def again(current: Record) -> Draft:
            """The change on the row as it is at the moment of writing, which may have moved on."""
            fresh = changed(current, change, after.updated_at, self.bounds)
            fits = parts and searched_text(fresh) == searched_text(after)
            kept = parts if fits else self._parts_if_moved(current, fresh)
            return Draft(fresh, named=True, parts=kept, model=model)

        return await self.threads.result(self.store.replace(subject.tenant_id, row.seq, again))

    def _parts_if_moved(self, before: Record, after: Record) -> list[Part]:
        """Windows without vectors, to be embedded later, when another writer changed the text meanwhile."""
        same = searched_text(before) == searched_text(after)
        return [] if same else windows(after, self.embedder)

    async def embed_owed(
        self,
        rows: Sequence[Record],
        tenant: str,
        reuse: bool,
        *,
        embedder: Embedder | None = None,
    ) -> int:
        """Makes and stores the vectors of rows written before; rows settled. `embedder` is one that is to take over,
        when not the one that answers.

        Raises:
            EmbedderUnavailable: the model still does not answer; nothing changed.
            SpendingLimit: the tenant has spent its day; nothing changed.
        """
        embedder = embedder or self.embedder
        drafts = await self._embedded(tenant, rows, EMBED, reuse=reuse, embedder=embedder)
        self.ledger.note(tenant, EMBED, Cost(operations=len(drafts)))
        return (
            await self.threads.result(self.store.settle(tenant, _settled(drafts), embedder.model))
            if drafts
            else 0
        )

    async def embed_first(self, tenant: str, rows: Sequence[Record], purpose: str) -> Vectors:
        """Return the vectors of rows that are not embedded yet, by seq, each (windows, dim); none if the model does not
        answer or the tenant has spent its day. They are stored, too, without waiting for it."""
        try:
            drafts = await self._embedded(tenant, rows, purpose, reuse=True, embedder=self.embedder)
        except (EmbedderUnavailable, SpendingLimit):
            return {}
        self.store_later(tenant, drafts)
        made = {one.row.seq: [part.vector for part in one.parts if part.vector is not None] for one in drafts}
        return {seq: np.stack(vectors) for seq, vectors in made.items() if vectors}

    def store_later(self, tenant: str, drafts: Sequence[Draft]) -> None:
        """Store the vectors of drafts of pending rows, without waiting for it."""
        self.store.settle(tenant, _settled(drafts), self.embedder.model).add_done_callback(_report)

    async def _embedded(
        self, tenant: str, rows: Sequence[Record], purpose: str, *, reuse: bool, embedder: Embedder
    ) -> list[Draft]:
        drafts = [Draft(row, named=True) for row in rows]
        if drafts:
            await self._vectors(tenant, drafts, purpose, reuse=reuse, embedder=embedder)
        return drafts


def _settled(drafts: Sequence[Draft]) -> list[Settled]:
    return [
        Settled(
            one.row.seq,
            text_key(one.row),
            [
                (part.start, part.stop, part.text_hash, part.vector)
                for part in one.parts
                if part.vector is not None
            ],
        )
        for one in drafts
    ]


def _report(stored: Future[int]) -> None:
    """Log that vectors could not be stored: the rows stay pending, and their job makes the vectors again."""
    if (error := stored.exception()) is not None:
        log.warning("vectors made for a search are not stored: %s", error)


@contextmanager
def _later(drafts: Sequence[Draft]) -> Iterator[None]:
    """Drafts stay without vectors when the model is away or the tenant may not spend more: their rows will be owed."""
    try:
        yield
    except (EmbedderUnavailable, SpendingLimit) as exc:
        log.warning("%d texts stay without a vector for now: %s", len(drafts), exc)


def _cut(drafts: Sequence[Draft], embedder: Embedder) -> None:
    for one in drafts:
        one.parts, one.model = windows(one.row, embedder), embedder.model


def windows(row: Record, embedder: Embedder) -> list[Part]:
    """The row's embedded text in windows that fit the model of `embedder`; spans are in the row's content."""
    text = searched_text(row)
    shift = len(header(row))
    return [
        Part(
            max(0, span.start - shift),
            max(0, span.end - shift),
            text[span.start : span.end],
            digest(text[span.start : span.end]),
        )
        for span in _spans(row, text, embedder)
    ]


def _spans(row: Record, text: str, embedder: Embedder) -> Iterator[Span]:
    """Where the windows of a text lie in it: those of each of its texts, for an item."""
    start = 0
    for piece in text.split(TEXT_SEPARATOR) if row.kind == ITEM else [text]:
        for span in embedder.split(piece) if piece.strip() else ():
            yield Span(start + span.start, start + span.end)
        start += len(piece) + len(TEXT_SEPARATOR)
