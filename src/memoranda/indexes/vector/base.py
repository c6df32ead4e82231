"""The interface of vector indexes: derived data that can always be rebuilt from the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.filters import EVERYTHING, Attributes, Compare, Filter
from memoranda.storage.sql.base import Connection, Database

Vectors = NDArray[np.float32]
Vector = NDArray[np.float32]
Ids = NDArray[np.int64]


class VectorBatch(msgspec.Struct, frozen=True):
    """Vectors to put, one row each.

    `seqs` (n,) names the memory each vector belongs to; a memory longer than the embedder's input has
    several rows with the same seq and `parts` 0, 1, 2, ... . `vectors` is (n, dim) float32 and need not be
    normalised. `attributes[i]` are the filter attributes of row i.
    """

    seqs: Ids
    parts: NDArray[np.int32]
    vectors: Vectors
    attributes: Sequence[Attributes]

    def __len__(self) -> int:
        return len(self.seqs)


class Matches(msgspec.Struct, frozen=True):
    """Best first: memory seqs (k,), cosines (k,) in [-1, 1], and the part that scored (k,).

    A seq occurs once, with its best part. Equal scores are ordered by seq, ascending.
    """

    seqs: Ids
    scores: NDArray[np.float32]
    parts: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.seqs)


NO_MATCHES = Matches(np.empty(0, np.int64), np.empty(0, np.float32), np.empty(0, np.int32))


class IndexLocation(msgspec.Struct, frozen=True):
    """The location of an index, in addition to its URL.

    `folder` is its own to write in (None: store nothing). `space` names the vector space, and with it a collection
    or a table in a server that several spaces or products share. `database` has the rows, for an index that can be
    stored beside them.
    """

    folder: Path | None = None
    space: str = "default"
    database: Database | None = None


class Index(ABC):
    """Vectors of one dimension, by tenant and memory, filtered.

    Calls are synchronous and thread-safe: one thread writes, many search. A search begun after `put` or
    `remove` returned sees it. Cosine is the true cosine, whatever the vectors' lengths; a zero vector
    has cosine 0 to everything.
    """

    dim: int
    inside: bool = False
    """True if vectors are written in the rows' own transaction: they are never behind, and `watermark` means
    nothing. Such an index is written through `within`."""
    shared: bool = False
    """True if other processes write to it too: its watermark then says nothing about their changes."""

    @property
    def put_limit(self) -> int | None:
        """The most vectors that one transaction should put; None: any number. Called on any thread; never raises."""
        return None

    def refresh(self) -> None:  # noqa: B027 - most indexes have nothing to read
        """Read what other processes changed about the index itself, such as `put_limit`."""

    def ready(self, tenant: str) -> bool:
        """Return True if a search for the tenant takes a few milliseconds now and waits for nobody, so that it may run
        on an event loop."""
        return False

    @property
    def identity(self) -> str:
        """The location of its vectors, by which the rows' database records which index is in step."""
        return type(self).__name__

    def within(self, connection: Connection) -> Index:
        """Return the index as part of the transaction of `connection`, if it is `inside`."""
        return self

    @property
    @abstractmethod
    def watermark(self) -> int:
        """The revision up to which this index has every change durably; 0 if it starts empty. The store replays
        everything after it at start."""

    @abstractmethod
    def put(self, tenant: str, batch: VectorBatch) -> None:
        """Add the batch; earlier vectors of the same seqs are replaced as a whole.

        Raises:
            DimensionMismatch: vectors are not (n, dim).
            InvalidInput: a vector holds NaN or infinity; nothing of the batch was added.
        """

    @abstractmethod
    def remove(self, tenant: str, seqs: Sequence[int]) -> int:
        """Remove all vectors of these memories; unknown seqs are ignored. Return the number of vectors removed."""

    @abstractmethod
    def search(self, tenant: str, query: Vector, limit: int, where: Filter = EVERYTHING) -> Matches:
        """Return the `limit` memories nearest to `query` (dim,) among those that pass `where`. The filter applies
        before the limit, so fewer are returned only if fewer pass."""

    def scores(self, tenant: str, query: Vector, seqs: NDArray[np.int64]) -> Matches:
        """Return the memories of these numbers (n,) that have a vector, best first, with their cosines to `query`
        (dim,)."""
        return self.search(tenant, query, len(seqs), Compare("$seq", "in", tuple(seqs.tolist())))

    @abstractmethod
    def count(self, tenant: str, where: Filter = EVERYTHING) -> int:
        """Return the number of vectors of the tenant that pass `where`."""

    @abstractmethod
    def flush(self, rev: int) -> None:
        """Report that everything up to revision `rev` has been put. The index may make itself durable now or later;
        after reopening, `watermark` is a revision that was flushed, or 0."""

    @abstractmethod
    def compact(self) -> None:
        """Free the space of removed vectors, in memory and on disk, and make the index durable."""

    @abstractmethod
    def clear(self) -> None:
        """Drop everything; `watermark` is 0 again."""

    @abstractmethod
    def health(self) -> dict[str, object]:
        """Facts for `doctor` and `stats`: backend, vectors, tenants, bytes in memory and on disk."""

    @abstractmethod
    def close(self) -> None:
        """Make the index durable at its last flushed revision and close its files. Idempotent."""
