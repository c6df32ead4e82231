"""The float vectors of a partition: in memory while they are few, in a mapped file once they are many."""

from __future__ import annotations

import mmap
import os
import weakref
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import DimensionMismatch, InvalidInput
from memoranda.indexes.vector.base import Vector, VectorBatch, Vectors
from memoranda.indexes.vector.growing import Slots

MAPPED_READS = 256 * 2**20
"""Bytes. Scattered rows of a longer file are read by pread, 2 us each: read through the mapping, a hundred queries
made 1.3 GB of a 1.5 GB file resident, and letting pages go again made every read a page fault."""


def unit_vector(vector: Vector) -> Vector:
    """`unit` of a single row."""
    with np.errstate(over="ignore", invalid="ignore"):
        square = np.vecdot(vector, vector)
    if 1e-20 < square < 1e20:
        return np.asarray(vector / np.sqrt(square), np.float32)
    return np.asarray(unit(vector[None])[0])


def unit(vectors: Vectors) -> Vectors:
    """The rows at length 1; a zero row stays zero, a row that is not finite becomes NaN.

    Lengths are taken in float32, and again in float64 where that over- or underflowed.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("ij,ij->i", vectors, vectors)
    unsafe = ~((squares > 1e-20) & (squares < 1e20))
    lengths = np.sqrt(np.where(unsafe, 1.0, squares))
    units: Vectors = np.divide(vectors, lengths[:, None], dtype=np.float32)
    for row in np.flatnonzero(unsafe).tolist():
        exact = vectors[row].astype(np.float64)
        length = float(np.sqrt(exact @ exact))
        units[row] = exact / length if 0 < length < np.inf else (0.0 if length == 0 else np.nan)
    return units


class Floats(ABC):
    """Rows of `dim` float32 by slot. One thread writes, beyond the slots that readers read."""

    dim: int

    @abstractmethod
    def write(self, start: int, rows: Vectors) -> None:
        """Put rows at slots `start`, ... ; on an error, slots below `start` are as they were."""

    @abstractmethod
    def rows(self) -> Vectors:
        """Return all slots, without a copy; slots never written have any value."""

    def gather(self, slots: Slots) -> Vectors:
        """A copy of these rows."""
        return np.asarray(self.rows()[slots])

    @property
    @abstractmethod
    def resident_bytes(self) -> int:
        """Bytes that are always in memory."""


class RamFloats(Floats):
    """Rows in one array that doubles."""

    def __init__(self, dim: int, rows: Vectors | None = None) -> None:
        self.dim = dim
        self._rows: Vectors = np.empty((0, dim), np.float32) if rows is None else rows

    def write(self, start: int, rows: Vectors) -> None:
        end = start + len(rows)
        if end > len(self._rows):
            larger = np.empty((max(end, 2 * len(self._rows)), self.dim), np.float32)
            larger[:start] = self._rows[:start]
            self._rows = larger
        self._rows[start:end] = rows

    def rows(self) -> Vectors:
        return self._rows

    @property
    def resident_bytes(self) -> int:
        return int(self._rows.nbytes)


class FileFloats(Floats):
    """Rows in a file: written with pwrite and read through a mapping, so loading leaves nothing resident.

    The file is longer than its rows (sparse). It is never truncated while it is mapped, and closed with the last
    reference: a search may outlive the index it began in.
    """

    def __init__(self, path: Path, dim: int, rows: int) -> None:
        """Open `path` (made when missing), of which the first `rows` rows are meant; the rest is cut off."""
        self.path = path
        self.dim = dim
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        weakref.finalize(self, os.close, self._fd)
        os.ftruncate(self._fd, rows * dim * 4)
        self._grow(rows)

    def write(self, start: int, rows: Vectors) -> None:
        if start + len(rows) > self._capacity:
            self._grow(start + len(rows))
        data = np.ascontiguousarray(rows, np.float32).reshape(-1).view(np.uint8).data
        offset = start * self.dim * 4
        while data:
            written = os.pwrite(self._fd, data, offset)
            data, offset = data[written:], offset + written

    def rows(self) -> Vectors:
        return self._rows

    def gather(self, slots: Slots) -> Vectors:
        if len(self._map) <= MAPPED_READS:
            return np.asarray(self._rows[slots])
        size = self.dim * 4
        gathered = np.empty((len(slots), self.dim), np.float32)
        rows = gathered.reshape(-1).view(np.uint8).data
        for i, slot in enumerate(slots.tolist()):
            os.preadv(self._fd, [rows[i * size : (i + 1) * size]], slot * size)
        return gathered

    def drop_pages(self) -> None:
        """Release the mapped pages: they stay in the file cache and are mapped again when read."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)

    def sync(self) -> None:
        """Durable on return."""
        os.fsync(self._fd)

    @property
    def resident_bytes(self) -> int:
        return 0

    def _grow(self, rows: int) -> None:
        capacity = max(4096, 1 << (rows - 1).bit_length() if rows else 0)
        os.ftruncate(self._fd, capacity * self.dim * 4)
        self._map = mmap.mmap(self._fd, capacity * self.dim * 4, mmap.MAP_SHARED, mmap.PROT_READ)
        mapped: NDArray[np.float32] = np.frombuffer(self._map, np.float32).reshape(capacity, self.dim)
        self._rows, self._capacity = mapped, capacity


def batch_vectors(batch: VectorBatch, dim: int) -> Vectors:
    """The vectors of a batch, (n, dim) float32.

    Raises:
        DimensionMismatch: they are not (n, dim).
        InvalidInput: one holds NaN or infinity, or the batch's arrays do not belong together.
    """
    vectors = np.asarray(batch.vectors, np.float32)
    if vectors.ndim != 2 or vectors.shape[1] != dim:
        raise DimensionMismatch("vectors", f"expected (n, {dim}), got {vectors.shape}")
    if not len(vectors) == len(batch.seqs) == len(batch.parts) == len(batch.attributes):
        raise InvalidInput("vectors", "seqs, parts, vectors and attributes need one entry per row each")
    if not np.isfinite(vectors).all():
        broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        raise InvalidInput(f"vectors[{broken[0]}]", "the vector holds NaN or infinity")
    return vectors


def unit_query(query: Vector, dim: int) -> Vector:
    """Return the query at length 1; a zero query stays zero.

    Raises:
        DimensionMismatch: it is not (dim,).
        InvalidInput: it holds NaN or infinity.
    """
    vector = np.asarray(query, np.float32)
    if vector.shape != (dim,):
        raise DimensionMismatch("query", f"expected {dim} dimensions, got shape {vector.shape}")
    vector = unit_vector(vector)
    if np.isnan(vector[0]):
        raise InvalidInput("query", "the vector holds NaN or infinity")
    return vector
