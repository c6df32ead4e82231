"""Changes that are not in the table yet: searched exactly, beside it."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.vector.base import VectorBatch
from memoranda.indexes.vector.floats import RamFloats
from memoranda.indexes.vector.partition import Partition


class Piece(msgspec.Struct, frozen=True):
    """One put (its vectors at length 1), or the seqs of one removal when there is no batch."""

    seqs: NDArray[np.int64]
    batch: VectorBatch | None = None


class Tail:
    """Changes of one tenant in order. Immutable, so a reader sees a consistent state.

    `hidden` are seqs that the table may have and that were replaced or removed.
    """

    __slots__ = ("_growing", "_view", "dim", "hidden", "pieces")

    def __init__(
        self, dim: int, pieces: tuple[Piece, ...] = (), hidden: frozenset[int] = frozenset()
    ) -> None:
        self.dim = dim
        self.pieces = pieces
        self.hidden = hidden
        self._growing = Growing(dim)
        self._view: Partition | None = None

    def plus(self, piece: Piece, hide: Iterable[int]) -> Tail:
        """The tail after one more change, `hide` being the seqs of it that the table may have."""
        hidden = self.hidden.union(hide)
        other = Tail(self.dim, (*self.pieces, piece), hidden)
        other._growing = self._growing
        return other

    @property
    def rows(self) -> Partition:
        """The living rows as an immutable partition. It is built on first use: a row that is written to the table
        before any search costs nothing here."""
        if self._view is None:
            self._view = self._growing.after(self.pieces)
        return self._view

    @property
    def nbytes(self) -> int:
        """Bytes of the vectors in memory."""
        return sum(piece.batch.vectors.nbytes for piece in self.pieces if piece.batch is not None)

    def living(self) -> VectorBatch | None:
        """Return the rows that no later change replaced or removed, as one batch; None if there are none."""
        batches = [piece.batch for piece in self.pieces if piece.batch is not None]
        if not _ascending(self.pieces):
            last: dict[int, int] = {}
            for number, piece in enumerate(self.pieces):
                last.update(dict.fromkeys(piece.seqs.tolist(), number))
            batches = [
                _some(piece.batch, [i for i, seq in enumerate(piece.seqs.tolist()) if last[seq] == number])
                for number, piece in enumerate(self.pieces)
                if piece.batch is not None
            ]
        batches = [batch for batch in batches if len(batch)]
        if len(batches) <= 1:
            return batches[0] if batches else None
        return VectorBatch(
            np.concatenate([batch.seqs for batch in batches]),
            np.concatenate([batch.parts for batch in batches]),
            np.concatenate([batch.vectors for batch in batches]),
            [row for batch in batches for row in batch.attributes],
        )


class Growing:
    """The partition that the tails of one tenant share: each adds only the pieces that its predecessor did not."""

    def __init__(self, dim: int) -> None:
        self._lock = threading.Lock()
        self._dim = dim
        self._partition = Partition(RamFloats(dim), None, 0)
        self._taken = 0

    def after(self, pieces: tuple[Piece, ...]) -> Partition:
        """Return the partition after these pieces."""
        with self._lock:
            if self._taken > len(pieces):  # a later tail was used first
                return Growing(self._dim).after(pieces)
            for piece in pieces[self._taken :]:
                if piece.batch is None:
                    self._partition.remove(piece.seqs)
                else:
                    self._partition.put(piece.batch, piece.batch.vectors)
            self._taken = len(pieces)
            return copy.copy(self._partition)


def _ascending(pieces: tuple[Piece, ...]) -> bool:
    """Return True if every seq of a piece is above those of the pieces before it, as for new rows."""
    if any(piece.batch is None for piece in pieces):
        return False
    edges = [(int(piece.seqs.min()), int(piece.seqs.max())) for piece in pieces]
    return all(top < low for (_, top), (low, _) in pairwise(edges))


def _some(batch: VectorBatch, rows: list[int]) -> VectorBatch:
    return VectorBatch(
        batch.seqs[rows], batch.parts[rows], batch.vectors[rows], [batch.attributes[i] for i in rows]
    )
