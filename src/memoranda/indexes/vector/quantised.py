"""Quantised vectors behind a small interface, so that engines are interchangeable.

A block has the codes of consecutive slots and never changes: growing creates a larger one. A block returns only a short
list; scores that leave the index are always recomputed from the float vectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from importlib import import_module
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigError
from memoranda.indexes.ranking import top
from memoranda.indexes.vector.base import Vector, Vectors
from memoranda.indexes.vector.growing import Mask, Slots

CALIBRATION_ROWS = 1024
GATHER_BELOW = 4
"""Codes are gathered and scanned when fewer than one in this many pass the filter."""
STEP = 16_384
"""Rows quantised at once, to bound memory."""


class Block(ABC):
    """The codes of `rows` vectors. Any number of threads may search."""

    rows: int

    @abstractmethod
    def nearest(self, query: Vector, k: int, mask: Mask | None) -> tuple[Slots, NDArray[np.float32]]:
        """Positions in the block and approximate cosines of the `k` best, unordered, possibly with some
        that tie with the last; fewer only when fewer pass `mask` (rows,), of which at least one is True."""

    @abstractmethod
    def extended(self, vectors: Vectors) -> Block:
        """A block with these unit vectors appended."""

    @abstractmethod
    def dump(self) -> bytes:
        """Return the bytes from which the engine's `load` restores this block."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes in memory."""


class Engine(ABC):
    """A way to quantise vectors of one dimension."""

    name: str

    @abstractmethod
    def empty(self, sample: Vectors) -> Block:
        """Return a block of no rows, fitted to a uniform sample of the vectors it will have."""

    @abstractmethod
    def load(self, data: bytes) -> Block:
        """The block that was dumped.

        Raises:
            ValueError: the bytes are not a block of this engine and dimension.
        """


class TurbovecEngine(Engine):
    """4 bits per dimension (turbovec). Dimensions are padded with zeros to a multiple of 8."""

    name = "turbovec"

    def __init__(self, dim: int) -> None:
        self._module = import_module("turbovec")
        self.width = -(-dim // 8) * 8

    def empty(self, sample: Vectors) -> Block:
        index = self._module.TurboQuantIndex(dim=self.width, bit_width=4)
        with suppress(ValueError):  # all vectors are equal: there is nothing to fit
            index.calibrate(pad(sample, self.width))
        return TurbovecBlock(index, self.width)

    def load(self, data: bytes) -> Block:
        index = self._module.TurboQuantIndex.from_bytes(data)
        if index.dim != self.width:
            raise ValueError(f"the block has {index.dim} dimensions, not {self.width}")
        return TurbovecBlock(index, self.width)


class TurbovecBlock(Block):
    """One TurboQuantIndex that is never added to after it was first searched.

    The first search after an add lays all codes out anew (0.3 us per row; `prepare` does not do it), so
    construction runs one and no caller pays for it. A mask that lets most rows through costs more than twice a
    search without one, so such a search takes a longer list first and sifts it.
    """

    def __init__(self, index: Any, width: int) -> None:
        self._index = index
        self._width = width
        self.rows = len(index)
        if self.rows:
            index.search(np.zeros((1, width), np.float32), 1)

    def nearest(self, query: Vector, k: int, mask: Mask | None) -> tuple[Slots, NDArray[np.float32]]:
        padded = pad(query[None], self._width)
        allowed = self.rows if mask is None else int(np.count_nonzero(mask))
        if mask is not None and allowed * 2 >= self.rows:
            wide = min(self.rows, int(k * self.rows / allowed * 1.2) + 16)
            scores, slots = self._index.search(padded, wide)
            passed = mask[slots[0]]
            if wide == self.rows or np.count_nonzero(passed) >= k:
                return slots[0][passed], scores[0][passed]
        scores, slots = self._index.search(padded, min(k, self.rows), mask=mask)
        return slots[0], scores[0]

    def extended(self, vectors: Vectors) -> Block:
        index = type(self._index).from_bytes(self._index.to_bytes())
        for start in range(0, len(vectors), STEP):
            index.add(pad(vectors[start : start + STEP], self._width))
        return TurbovecBlock(index, self._width)

    def dump(self) -> bytes:
        return bytes(self._index.to_bytes())

    @property
    def nbytes(self) -> int:
        return self.rows * self._width


class NumkongEngine(Engine):
    """8 bits per dimension, one scale per vector, scanned by numkong: the fallback without turbovec."""

    name = "numkong"

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.cdist = import_module("numkong").cdist

    def empty(self, sample: Vectors) -> Block:
        return NumkongBlock(self, np.empty((0, self.dim), np.int8), np.empty(0, np.float32))

    def load(self, data: bytes) -> Block:
        rows, rest = divmod(len(data), self.dim + 4)
        if rest:
            raise ValueError("the block is cut short")
        codes = np.frombuffer(data, np.int8, rows * self.dim).reshape(rows, self.dim)
        return NumkongBlock(self, codes, np.frombuffer(data, np.float32, rows, rows * self.dim))


class NumkongBlock(Block):
    """codes (rows, dim) int8 and scales (rows,): vector = codes * scale."""

    def __init__(self, engine: NumkongEngine, codes: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
        self._engine, self._codes, self._scales = engine, codes, scales
        self.rows = len(codes)

    def nearest(self, query: Vector, k: int, mask: Mask | None) -> tuple[Slots, NDArray[np.float32]]:
        code, scale = to_int8(query[None])
        slots = None if mask is None else np.flatnonzero(mask)
        few = slots is not None and len(slots) * GATHER_BELOW < self.rows
        codes, scales = (self._codes[slots], self._scales[slots]) if few else (self._codes, self._scales)
        scores = np.asarray(self._engine.cdist(code, codes, metric="dot"), np.float32)[0] * scales * scale[0]
        if slots is None:
            best = top(scores, k)
            return best, scores[best]
        scores = scores if few else scores[slots]
        best = top(scores, k)
        return slots[best], scores[best]

    def extended(self, vectors: Vectors) -> Block:
        codes, scales = [self._codes], [self._scales]
        for start in range(0, len(vectors), STEP):
            more = to_int8(vectors[start : start + STEP])
            codes.append(more[0])
            scales.append(more[1])
        return NumkongBlock(self._engine, np.concatenate(codes), np.concatenate(scales))

    def dump(self) -> bytes:
        return self._codes.tobytes() + self._scales.tobytes()

    @property
    def nbytes(self) -> int:
        return int(self._codes.nbytes + self._scales.nbytes)


ENGINES: dict[str, type[TurbovecEngine] | type[NumkongEngine] | None] = {
    "turbovec": TurbovecEngine,
    "numkong": NumkongEngine,
    "float": None,
}


def open_engine(name: str, dim: int) -> Engine | None:
    """The engine of that name; None for `float`, which quantises nothing.

    Raises:
        ConfigError: the name is unknown, or its package is not installed.
    """
    if name not in ENGINES:
        raise ConfigError("index.url", f"engine {name!r} is unknown; use one of {', '.join(ENGINES)}")
    engine = ENGINES[name]
    try:
        return engine(dim) if engine is not None else None
    except ImportError as exc:
        raise ConfigError(
            "index.url", f"engine {name!r} needs the package {name}: pip install {name}"
        ) from exc


def pad(vectors: Vectors, width: int) -> Vectors:
    """The rows with zeros up to `width` dimensions; contiguous float32."""
    missing = width - vectors.shape[1]
    padded = np.pad(vectors, ((0, 0), (0, missing))) if missing else vectors
    return np.ascontiguousarray(padded, np.float32)


def to_int8(vectors: Vectors) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """(codes, scales) with vector = codes * scale up to half a step."""
    tops = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    scales = np.where(tops > 0, tops, 1.0).astype(np.float32) / np.float32(127)
    codes = np.rint(vectors * (1 / scales)[:, None]).astype(np.int8)
    return codes, scales


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
