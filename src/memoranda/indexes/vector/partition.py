"""One tenant's vectors: append-only slots, replaced or removed by marking them dead."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from memoranda.filters import Filter
from memoranda.indexes.ranking import Scored, best_parts, cosines, top, widen
from memoranda.indexes.vector.base import NO_MATCHES, Matches, Vector, VectorBatch, Vectors
from memoranda.indexes.vector.columns import Columns
from memoranda.indexes.vector.floats import FileFloats, Floats
from memoranda.indexes.vector.growing import Growing, Mask, SeqColumn, Slots
from memoranda.indexes.vector.quantised import NO_BLOCKS, Blocks, Engine

FEW = 4096
"""Up to this many candidates are gathered and scored in float: about as fast as a masked scan of 100k codes."""
GATHER_BELOW = 4
"""Rows are gathered when fewer than one in this many is wanted; else all are scored in place."""
CHUNK = 8192
"""Rows copied at once: 12 MB at 384 dimensions."""


def shortlist(limit: int) -> int:
    """Return how many quantised candidates are scored again in float for the best `limit`.

    turbovec is ten times slower for lists of about 150 to 300 under a mask of few rows (4 ms against .3 at 100k);
    the lengths step over them.
    """
    wanted = max(100, 2 * limit)
    return wanted if wanted <= 128 else max(400, wanted)


class View(msgspec.Struct, frozen=True):
    """The state that one search sees throughout: the first `n` slots, which of them are alive, and the blocks with
    the codes of a prefix. `alive` may be longer than `n`."""

    n: int
    alive: Mask
    dead: int
    blocks: Blocks

    @property
    def count(self) -> int:
        """Vectors alive."""
        return self.n - self.dead


EMPTY = View(0, np.ones(0, np.bool_), 0, NO_BLOCKS)


class Partition:
    """Vectors, sequence numbers, parts and attributes by slot. One thread writes; readers work on `view`,
    which is replaced as a whole: arrays only grow, and `alive` is copied before it changes."""

    def __init__(self, floats: Floats, engine: Engine | None, serial: int) -> None:
        self.floats = floats
        self.engine = engine
        self.serial = serial
        self.seqs = SeqColumn()
        self.parts = Growing(np.int32)
        self.columns = Columns(self.seqs)
        self.view = EMPTY
        self.scanned = 0
        """Vectors that searches have scored because no block has them yet, since the last sealing."""

    @property
    def unsealed(self) -> int:
        """Vectors that are in no block yet."""
        view = self.view
        return view.n - view.blocks.sealed

    def put(self, batch: VectorBatch, units: Vectors) -> int:
        """Append the batch (`units` are its vectors at length 1) and mark replaced vectors dead; return their
        number."""
        view = self.view
        end = view.n + len(batch)
        old = self.seqs.find(batch.seqs, view.n)
        self.floats.write(view.n, units)
        self.seqs.extend(batch.seqs)
        self.parts.extend(batch.parts)
        self.columns.extend(view.n, batch.attributes)
        return self._publish(replace(view, n=end), old)

    def remove(self, seqs: NDArray[np.int64]) -> int:
        """Mark every vector of these memories dead; return their number."""
        return self._publish(self.view, self.seqs.find(seqs, self.view.n))

    def _publish(self, view: View, kill: Slots) -> int:
        alive = view.alive
        kill = kill[alive[kill]]
        if view.n > len(alive):
            alive = np.ones(max(view.n, 2 * len(alive)), np.bool_)
            alive[: len(view.alive)] = view.alive
        elif len(kill):
            alive = alive.copy()
        alive[kill] = False
        self.view = replace(view, alive=alive, dead=view.dead + len(kill))
        return len(kill)

    def seal(self) -> None:
        """Quantise the vectors that are in no block yet. Searches go on meanwhile."""
        if self.engine is None:
            return
        blocks = self.view.blocks.cover(self.view.n, self.engine, self.floats.rows())
        if isinstance(self.floats, FileFloats):
            self.floats.drop_pages()
        self.view = replace(self.view, blocks=blocks)
        self.scanned = 0

    def compacted(self, floats: Floats, serial: int) -> Partition:
        """Return another partition with only the living rows, in order of seq and part. This one does not change."""
        view = self.view
        slots = np.flatnonzero(view.alive[: view.n])
        seqs, parts = self.seqs.seqs.view()[slots], self.parts.view()[slots]
        slots = slots[np.lexsort((parts, seqs))]
        other = Partition(floats, self.engine, serial)
        for start in range(0, len(slots), CHUNK):
            floats.write(start, self.floats.gather(slots[start : start + CHUNK]))
        other.seqs = SeqColumn(self.seqs.seqs.view()[slots])
        other.parts = Growing(np.int32, self.parts.view()[slots])
        other.columns = self.columns.take(slots, other.seqs)
        other._publish(replace(EMPTY, n=len(slots)), np.empty(0, np.int64))
        if view.blocks.sealed:
            other.seal()
        return other

    def count(self, where: Filter) -> int:
        """Return the number of living vectors that pass."""
        view = self.view
        passed = self.columns.mask(where, view.n)
        if passed is None:
            return view.count
        return int(np.count_nonzero(passed & view.alive[: view.n]))

    def search(self, query: Vector, limit: int, where: Filter) -> Matches:
        """Return the nearest memories; `query` is a unit vector, or zero."""
        view = self.view
        mask = self.columns.mask(where, view.n)
        if mask is not None:
            mask &= view.alive[: view.n]
        elif view.dead:
            mask = view.alive[: view.n]
        total = view.n if mask is None else int(np.count_nonzero(mask))
        if not total:
            return NO_MATCHES
        if total == view.n:
            mask = None
        pool = min(total, shortlist(limit))
        if total <= FEW or not view.blocks.sealed or not query.any():
            slots = np.arange(view.n) if mask is None else np.flatnonzero(mask)
            scores = self._cosines(0, view.n, slots, query)
            return widen(
                lambda k: top(scores, k), lambda at: self._named(slots[at], scores[at]), limit, pool, total
            )
        quick = self._quick(view, mask, query)
        return widen(quick, lambda slots: self._rescored(slots, query), limit, pool, total)

    def scores(self, query: Vector, seqs: NDArray[np.int64]) -> Matches:
        """Return those of these memories that have a vector, best first; `query` is a unit vector, or zero."""
        view = self.view
        slots = self.seqs.find(seqs, view.n)
        slots = slots[view.alive[slots]]
        return best_parts(*self._rescored(slots, query), len(seqs))

    def _rescored(self, slots: Slots, query: Vector) -> Scored:
        return self._named(slots, cosines(self.floats.gather(slots), query))

    def _named(self, slots: Slots, scores: NDArray[np.float32]) -> Scored:
        return self.seqs.seqs.view()[slots], scores, self.parts.view()[slots]

    def _quick(self, view: View, mask: Mask | None, query: Vector) -> Callable[[int], Slots]:
        sealed = view.blocks.sealed
        tail = np.arange(sealed, view.n) if mask is None else sealed + np.flatnonzero(mask[sealed:])
        tail_scores = self._cosines(sealed, view.n, tail, query)
        self.scanned += len(tail)

        def nearest(pool: int) -> Slots:
            slots, scores = view.blocks.nearest(query, pool, mask)
            slots, scores = np.concatenate([slots, tail]), np.concatenate([scores, tail_scores])
            return np.sort(slots[top(scores, pool)])

        return nearest

    def _cosines(self, start: int, end: int, slots: Slots, query: Vector) -> NDArray[np.float32]:
        """Return the cosines of these slots of [start, end), in their order."""
        if len(slots) * GATHER_BELOW > end - start:
            scores = cosines(self.floats.rows()[start:end], query)
            return scores if len(slots) == end - start else scores[slots - start]
        chunks = [
            cosines(self.floats.gather(slots[i : i + CHUNK]), query) for i in range(0, len(slots), CHUNK)
        ]
        return np.concatenate([np.empty(0, np.float32), *chunks])
