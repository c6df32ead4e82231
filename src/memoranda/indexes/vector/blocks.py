"""The quantised prefix of a partition, as a row of blocks that never change."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.vector.base import Vector, Vectors
from memoranda.indexes.vector.growing import Mask, Slots
from memoranda.indexes.vector.quantised import CALIBRATION_ROWS, Block, Engine

BLOCK_ROWS = 262_144
"""A full block. Growing one copies it, so this bounds what a sealing costs."""
RECALIBRATE = 4
"""A block is quantised anew when it has grown to this many times the rows it was fitted to."""


class Sealed(msgspec.Struct, frozen=True):
    """A block, the slot of its first row, and the rows there were when it was fitted."""

    start: int
    block: Block
    fitted: int

    @property
    def end(self) -> int:
        """The slot after its last row."""
        return self.start + self.block.rows


class Blocks(msgspec.Struct, frozen=True):
    """Blocks over the slots [0, sealed)."""

    pieces: tuple[Sealed, ...] = ()

    @property
    def sealed(self) -> int:
        """Slots covered."""
        return self.pieces[-1].end if self.pieces else 0

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(piece.block.nbytes for piece in self.pieces)

    def nearest(self, query: Vector, k: int, mask: Mask | None) -> tuple[Slots, NDArray[np.float32]]:
        """Slots and approximate cosines of the `k` best of each block."""
        results: list[tuple[Slots, NDArray[np.float32]]] = []
        for piece in self.pieces:
            allowed = None if mask is None else mask[piece.start : piece.end]
            if allowed is None or allowed.any():
                slots, scores = piece.block.nearest(query, k, allowed)
                results.append((slots + piece.start, scores))
        if not results:
            return np.empty(0, np.int64), np.empty(0, np.float32)
        return np.concatenate([slots for slots, _ in results]), np.concatenate(
            [scores for _, scores in results]
        )

    def cover(self, n: int, engine: Engine, rows: Vectors) -> Blocks:
        """Return blocks over the slots [0, n), whose vectors are `rows`. Full blocks are reused."""
        pieces = list(self.pieces)
        open_block = pieces.pop() if pieces and pieces[-1].block.rows < BLOCK_ROWS else None
        start = pieces[-1].end if pieces else 0
        while start < n:
            end = min(start + BLOCK_ROWS, n)
            pieces.append(_grown(open_block, start, end, engine, rows))
            open_block, start = None, end
        return Blocks(tuple(pieces))


def _grown(old: Sealed | None, start: int, end: int, engine: Engine, rows: Vectors) -> Sealed:
    if old is not None and end - start < RECALIBRATE * old.fitted:
        return Sealed(start, old.block.extended(rows[old.end : end]), old.fitted)
    chosen = np.random.default_rng(end).choice(end, min(end, CALIBRATION_ROWS), replace=False)
    block = engine.empty(rows[np.sort(chosen)])
    return Sealed(start, block.extended(rows[start:end]), end - start)


NO_BLOCKS = Blocks()
