"""The write path: drafts, windows, vectors, rows. The model embeds before the transaction begins."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from memoranda.clock import now_micros
from memoranda.concurrency.threads import Threads
from memoranda.errors import EmbedderUnavailable, SpendingLimit
from memoranda.providers.embeddings.base import Embedder, Span
from memoranda.store.changes import DRAFTS, Outcome, Settled, StoredVectors, parted, text_key
from memoranda.store.retrieval.candidates import Vectors
from memoranda.store.rows import ITEM, TEXT_SEPARATOR, Draft, Part, Record, header, searched_text
from memoranda.store.store import Along, Store
from memoranda.store.usage import Cost, CostTracker
from memoranda.store.validation import GIVEN, NUMERIC, Bounds, changed, check_vector, draft
from memoranda.text.hashing import digest
from memoranda.types import Change, NewMemory, Subject

log = logging.getLogger("memoranda.ingest")
P = ParamSpec("P")
T = TypeVar("T")
WRITE, FILES, EMBED = "write", "files", "embed"
"""Purposes by which costs are summed: a write, the indexing of a file, and embeddings made later."""
BATCH = 1_000
"""Drafts that are embedded together."""
FEW = 4
"""The most drafts that are split into windows, and looked up, on the event loop; more are on a thread."""


class Ingest:
    """Writes memories into one store with one embedder."""

    def __init__(
        self, store: Store, embedder: Embedder, threads: Threads, bounds: Bounds, costs: CostTracker
    ) -> None:
        self.store = store
        self.embedder = embedder
        self.threads = threads
        self.bounds = bounds
        self.costs = costs
        self.unstored: dict[tuple[str, int], NDArray[np.float32]] = {}
        """The vectors of first windows that are being stored, by tenant and seq: who reads these first, and stored
        vectors after, misses none."""

    def drafts(self, subject: Subject, items: Sequence[NewMemory]) -> list[Draft]:
        """Return the rows that the items ask for, with the vectors that came with them.

        Raises:
            InvalidInput: names the item by its place (`[3].tags`), the field and the fix.
        """
        now = now_micros()
        created = [
            draft(item, subject, now, self.bounds, f"[{i}]." if len(items) > 1 else "")
            for i, item in enumerate(items)
        ]
        self._take_given(items, created)
        return created

    async def embed(self, tenant: str, drafts: Sequence[Draft], purpose: str) -> None:
        """Embed the drafts without vectors; the stored vectors of equal texts are reused. The drafts stay without
        vectors while the model is unavailable or the tenant has reached its limit of the day."""
        bare = [draft for draft in drafts if not draft.parts]
        with _later(bare):
            await self._vectors(tenant, bare, purpose, reuse=True)

    async def write(self, tenant: str, drafts: Sequence[Draft]) -> list[Outcome]:
        """Embed the drafts without vectors, a thousand at a time, and store the drafts in steps.

        Raises:
            Conflict: an id already names another text; nothing was stored, unless the id was taken between two steps.
        """
        if len(drafts) > 1:
            await self.threads.run(self.store.check_ids, tenant, drafts)
        outcomes: list[Outcome] = []
        for at in range(0, len(drafts), BATCH):
            batch = drafts[at : at + BATCH]
            await self.prepare(tenant, batch)
            for some in parted(batch, self.store.weight, DRAFTS):
                done: list[Outcome] = await self.threads.result(self.store.put(some))
                outcomes.extend(done)
        return outcomes

    async def prepare(self, tenant: str, drafts: Sequence[Draft]) -> None:
        """Embed the drafts without vectors, for a transaction of the caller's own. Drafts that cannot be embedded now
        stay without vectors: the embeddings of their rows are pending."""
        self.costs.note(tenant, WRITE, Cost(operations=len(drafts)))
        with _later(drafts):
            await self._fill(tenant, drafts, WRITE)

    async def write_with(
        self, tenant: str, drafts: Sequence[Draft], embedder: Embedder, along: Along
    ) -> list[Outcome]:
        """Embed drafts with `embedder`, whose model is that of the store, and store them in one transaction, in which
        `along` writes what belongs to them, or refuses them.

        Raises:
            EmbedderUnavailable: the model does not answer; nothing was stored.
            SpendingLimit: the tenant has reached its limit of the day; nothing was stored.
        """
        self.costs.note(tenant, FILES, Cost(operations=len(drafts)))
        await self._fill(tenant, drafts, FILES, embedder)
        return await self.threads.result(self.store.put(drafts, along))

    def _take_given(self, items: Sequence[NewMemory], drafts: Sequence[Draft]) -> None:
        """Set the vectors that came with the items as the only part of their drafts."""
        given = [i for i, item in enumerate(items) if item.embedding is not None]
        vectors = self._checked([items[i].embedding for i in given], given, len(items))
        for i, vector in zip(given, vectors, strict=True):
            row = drafts[i].row
            drafts[i].model = self.embedder.model
            drafts[i].parts = [
                Part(0, len(row.content), row.content, f"{GIVEN}{row.content_hash}", vector, b"")
            ]

    def _checked(
        self, values: Sequence[object], places: Sequence[int], total: int
    ) -> Sequence[NDArray[np.float32]]:
        """Check a whole batch of arrays at once; if that fails, check one by one, to name the invalid item."""
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
        """Add the missing vectors: stored vectors of equal texts, else from the model.

        Raises:
            EmbedderUnavailable: the model does not answer; the drafts stay without vectors.
            SpendingLimit: the tenant has reached its limit of the day; the drafts stay without vectors.
        """
        bare = [draft for draft in drafts if not draft.parts]
        if not bare:
            return
        model = (embedder or self.embedder).model
        keys, stored = await self._known(len(bare), self.store.known, tenant, bare, model)
        fresh = [draft for draft in bare if draft.row.dedup_key not in keys]
        if fresh:
            await self._vectors(tenant, fresh, purpose, reuse=True, embedder=embedder, stored=stored)

    async def _known(self, count: int, read: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what `read` finds of so many texts, on the event loop if they are few: 50 us each."""
        if count <= FEW and not self.store.db.shared:
            return read(*args, **kwargs)
        return await self.threads.run(read, *args, **kwargs)

    async def _vectors(
        self,
        tenant: str,
        drafts: Sequence[Draft],
        purpose: str,
        *,
        reuse: bool,
        embedder: Embedder | None = None,
        stored: StoredVectors | None = None,
    ) -> None:
        """Split drafts into windows and add their vectors: with `reuse` stored ones, else from the model. `stored` are
        those of whole texts if they were looked up already."""
        embedder = embedder or self.embedder
        if len(drafts) > FEW:  # counting tokens is slow: not on the event loop
            await self.threads.run(_cut, drafts, embedder)
        else:
            _cut(drafts, embedder)
        parts = {part.text_hash: part for draft in drafts for part in draft.parts}
        vectors: StoredVectors = {}
        if reuse:
            looked_up = set() if stored is None else {text_key(draft.row) for draft in drafts}
            known = dict(stored or {})
            if missing := [key for key in parts if key not in looked_up]:
                known |= await self._known(
                    len(missing), self.store.known_vectors, tenant, missing, embedder.model
                )
            vectors = {key: made for key, made in known.items() if made[1] or not embedder.token_dim}
        wanted = [part for key, part in parts.items() if key not in vectors]
        texts = [part.text for part in wanted]
        embedded = await self.costs.embed(embedder, texts, tenant=tenant, purpose=purpose)
        codes = [None if tokens is None else tokens.tobytes() for tokens in embedded.tokens_of_each]
        for part, vector, tokens in zip(wanted, embedded.vectors, codes, strict=True):
            vectors[part.text_hash] = vector, tokens
        for entry in drafts:
            for part in entry.parts:
                part.vector, part.tokens = vectors[part.text_hash]

    async def update(self, subject: Subject, row: Record, change: Change) -> Record:
        """Rewrite a row; embed it again only if the embedded text changed.

        Raises:
            InvalidInput: names the field and the fix.
            Conflict: another memory of the scope already has the new text.
        """
        after = changed(row, change, now_micros(), self.bounds)
        parts: list[Part] = []
        model = ""
        if searched_text(after) != searched_text(row):
            rewritten = Draft(after, named=True)
            with _later([rewritten]):
                await self._vectors(subject.tenant_id, [rewritten], WRITE, reuse=True)
            parts, model = rewritten.parts, rewritten.model

        def again(current: Record) -> Draft:
            """Apply the change to the row as it is in the transaction; another writer may have changed it."""
            fresh = changed(current, change, after.updated_at, self.bounds)
            fits = parts and searched_text(fresh) == searched_text(after)
            kept_parts = parts if fits else self._parts_if_moved(current, fresh)
            return Draft(fresh, named=True, parts=kept_parts, model=model)

        return await self.threads.result(self.store.replace(subject.tenant_id, row.seq, again))

    def _parts_if_moved(self, before: Record, after: Record) -> list[Part]:
        """Return windows without vectors, to be embedded later, if another writer changed the text meanwhile."""
        same = searched_text(before) == searched_text(after)
        return [] if same else windows(after, self.embedder)

    async def embed_pending(
        self,
        rows: Sequence[Record],
        tenant: str,
        reuse: bool,
        *,
        embedder: Embedder | None = None,
    ) -> int:
        """Embed rows whose embeddings are pending, or are made again, and store the vectors; return the number of rows
        settled. With `reuse`, texts whose vectors are stored are not embedded. `embedder` is that of the next model
        during a migration; None is the current one.

        Raises:
            EmbedderUnavailable: the model still does not answer; nothing changed.
            SpendingLimit: the tenant has reached its limit of the day; nothing changed.
        """
        embedder = embedder or self.embedder
        drafts = await self._embedded(tenant, rows, EMBED, reuse=reuse, embedder=embedder)
        self.costs.note(tenant, EMBED, Cost(operations=len(drafts)))
        settled = 0
        for some in parted(drafts, self.store.weight, DRAFTS):
            settled += await self.threads.result(self.store.settle(tenant, _settled(some), embedder.model))
        return settled

    async def embed_first(self, tenant: str, rows: Sequence[Record], purpose: str) -> Vectors:
        """Return the vectors of rows that are not embedded yet, by seq, each (windows, dim); none if the model does not
        answer or the tenant has reached its limit of the day. The vectors are stored in the background."""
        try:
            drafts = await self._embedded(tenant, rows, purpose, reuse=True, embedder=self.embedder)
        except (EmbedderUnavailable, SpendingLimit):
            return {}
        self.store_later(tenant, drafts)
        embedded = {
            draft.row.seq: [part.vector for part in draft.parts if part.vector is not None]
            for draft in drafts
        }
        return {seq: np.stack(vectors) for seq, vectors in embedded.items() if vectors}

    def store_later(self, tenant: str, drafts: Sequence[Draft]) -> None:
        """Store the vectors of drafts of pending rows, without waiting for it."""
        made = {
            (tenant, draft.row.seq): draft.parts[0].vector
            for draft in drafts
            if draft.parts and draft.parts[0].vector is not None
        }
        self.unstored.update(made)

        def stored(outcome: Future[int]) -> None:
            for key, vector in made.items():
                if self.unstored.get(key) is vector:
                    del self.unstored[key]
            _report(outcome)

        self.store.settle(tenant, _settled(drafts), self.embedder.model).add_done_callback(stored)

    async def _embedded(
        self, tenant: str, rows: Sequence[Record], purpose: str, *, reuse: bool, embedder: Embedder
    ) -> list[Draft]:
        drafts = [Draft(row, named=True) for row in rows]
        if drafts:
            await self._vectors(tenant, drafts, purpose, reuse=reuse, embedder=embedder)
        return drafts


def _settled(drafts: Sequence[Draft]) -> list[Settled]:
    return [
        Settled(draft.row.seq, text_key(draft.row), [part for part in draft.parts if part.vector is not None])
        for draft in drafts
    ]


def _report(stored: Future[int]) -> None:
    """Log that vectors could not be stored: the rows stay pending, and their job makes the vectors again."""
    if (error := stored.exception()) is not None:
        log.warning("vectors made for a search are not stored: %s", error)


@contextmanager
def _later(drafts: Sequence[Draft]) -> Iterator[None]:
    """Suppress embedding errors: the drafts stay without vectors, and the embeddings of their rows are pending."""
    try:
        yield
    except (EmbedderUnavailable, SpendingLimit) as exc:
        log.warning("%d texts stay without a vector for now: %s", len(drafts), exc)


def _cut(drafts: Sequence[Draft], embedder: Embedder) -> None:
    for entry in drafts:
        entry.parts, entry.model = windows(entry.row, embedder), embedder.model


def windows(row: Record, embedder: Embedder) -> list[Part]:
    """Return the row's embedded text in windows that fit the model of `embedder`; spans are in the row's content."""
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
    """Yield the spans of the windows of a text; for an item, the windows of each of its texts."""
    start = 0
    for piece in text.split(TEXT_SEPARATOR) if row.kind == ITEM else [text]:
        for span in embedder.split(piece) if piece.strip() else ():
            yield Span(start + span.start, start + span.end)
        start += len(piece) + len(TEXT_SEPARATOR)
