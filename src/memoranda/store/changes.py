"""The changes of a committed write, in the form that the indexes apply."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.keyword.base import WordDoc
from memoranda.indexes.vector.base import VectorBatch
from memoranda.store.rows import Record, attributes, searched_text
from memoranda.store.validation import Part
from memoranda.text.hashing import digest

StoredVectors = dict[str, tuple[NDArray[np.float32], bytes | None]]
"""Vectors by the hash of their text, each with the codes of the text's tokens if it has some."""


class Outcome(msgspec.Struct):
    """The outcome of one draft: its row, whether it was created, whether it has all its vectors."""

    row: Record
    created: bool
    embedded: bool


class Put(msgspec.Struct):
    """A row for the indexes: its vectors by part; without vectors, the vector index removes an outdated row. `reworded`
    is False if only the vectors are new, which the keyword index need not know."""

    row: Record
    vectors: list[NDArray[np.float32]]
    reworded: bool = True


class Applied(msgspec.Struct):
    """The changes of one committed write, for the indexes: revisions `first` to `rev` (0: none), the rows put and
    removed by tenant, the change of the number of rows with pending embeddings, and the puts of an index that is being
    filled, which may be of another vector space. `journalled`: the change stays in the journal for another process.
    `live` is the vector index that was live while the write ran. `calls` follow the commit, see `Writing.then`."""

    rev: int = 0
    first: int = 0
    puts: dict[str, list[Put]] = msgspec.field(default_factory=lambda: defaultdict(list))
    removed: dict[str, list[int]] = msgspec.field(default_factory=lambda: defaultdict(list))
    pending: dict[str, int] = msgspec.field(default_factory=lambda: defaultdict(int))
    mirrored: dict[str, list[Put]] = msgspec.field(default_factory=dict)
    journalled: bool = False
    live: object = None
    calls: list[Callable[[], None]] = msgspec.field(default_factory=list)

    def folded(self) -> None:
        """Keep only the last of several puts of one row."""
        for tenant, puts in self.puts.items():
            last = {put.row.seq: put for put in puts}
            if len(last) < len(puts):
                for put in puts:
                    last[put.row.seq].reworded |= put.reworded
                self.puts[tenant] = list(last.values())

    def clear(self) -> None:
        """Reset everything before the write is retried."""
        self.rev = self.first = 0
        self.journalled = False
        for part in (self.puts, self.removed, self.pending, self.mirrored, self.calls):
            part.clear()


class Settled(msgspec.Struct):
    """Vectors made later for a row that was written before: its parts, each with a vector.
    `text_key` is the `text_key` of the row that was embedded."""

    seq: int
    text_key: str
    parts: list[Part]

    @property
    def vectors(self) -> list[NDArray[np.float32]]:
        """The vectors by part."""
        return [part.vector for part in self.parts if part.vector is not None]


def text_key(row: Record) -> str:
    """Return a digest of the embedded text of a row, which has the content, the speaker and the date."""
    return digest(searched_text(row))


def placed(row: Record, seq: int) -> Record:
    """Return the row with its seq (a quarter of the cost of `_replace`)."""
    return Record._make((row[0], seq, seq, *row[3:]))


def vector_batch(puts: Sequence[Put]) -> VectorBatch | None:
    """Return the vectors of these rows as one batch; None if there are none."""
    if not any(put.vectors for put in puts):
        return None
    seqs, parts, vectors, seen = [], [], [], []
    for put in puts:
        if not put.vectors:
            continue
        values = attributes(put.row)
        for number, vector in enumerate(put.vectors):
            seqs.append(put.row.seq)
            parts.append(number)
            vectors.append(vector)
            seen.append(values)
    return VectorBatch(np.array(seqs, np.int64), np.array(parts, np.int32), np.stack(vectors), seen)


def word_docs(rows: Iterable[Record]) -> list[WordDoc]:
    """Return the rows as documents of the keyword index."""
    return [WordDoc(row.seq, searched_text(row), attributes(row)) for row in rows]


EMBEDDING = ("tenant_id", "space", "seq", "part", "start", "stop", "text_hash", "vector", "tokens")


def embeddings(tenant: str, space: int, seq: int, parts: Sequence[Part]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of `embeddings`, with the columns `EMBEDDING`, of a memory's parts that have a vector."""
    for number, part in enumerate(parts):
        if part.vector is not None:
            place = part.start, part.stop, part.text_hash
            yield (tenant, space, seq, number, *place, blob(part.vector), part.tokens)


def blob(vector: NDArray[np.float32]) -> bytearray:
    """Return float32, little-endian; a bytearray, since the driver binds it faster than bytes."""
    return bytearray(np.ascontiguousarray(vector, dtype="<f4").data.cast("B"))
