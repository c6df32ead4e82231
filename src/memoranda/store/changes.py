"""What a committed write changed, in the form that the indexes take it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.keyword.base import WordDoc
from memoranda.indexes.vector.base import VectorBatch
from memoranda.store.rows import Record, attributes, searched_text
from memoranda.text.hashing import digest


@dataclass(slots=True)
class Outcome:
    """The outcome of one draft: its row, whether it was created, whether it has all its vectors."""

    row: Record
    created: bool
    embedded: bool


@dataclass(slots=True)
class Put:
    """A row the indexes must take: its vectors by part, or None to leave the vector index alone."""

    row: Record
    vectors: list[NDArray[np.float32]]


@dataclass(slots=True)
class Applied:
    """What one committed write changed, for the indexes: revisions `first` to `rev` (0: nothing), the rows put and
    removed by tenant, by how much the number of rows without vectors changed, and the puts of an index that is being
    filled, which may be of another vector space. `kept` says that the journal keeps it for another process, `live`
    is the index that answered while the write ran."""

    rev: int = 0
    first: int = 0
    puts: dict[str, list[Put]] = field(default_factory=lambda: defaultdict(list))
    removed: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    owed: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    mirrored: dict[str, list[Put]] = field(default_factory=dict)
    kept: bool = False
    live: object = None

    def folded(self) -> None:
        """Keep only the last of several puts of one row."""
        for tenant, puts in self.puts.items():
            last = {put.row.seq: put for put in puts}
            if len(last) < len(puts):
                self.puts[tenant] = list(last.values())

    def clear(self) -> None:
        """Reset everything before the write is retried."""
        self.rev = self.first = 0
        self.kept = False
        for part in (self.puts, self.removed, self.owed, self.mirrored):
            part.clear()


@dataclass(slots=True)
class Settled:
    """Vectors made later for a row that was written before: parts as (start, stop, text_hash, vector).
    `text_key` is the `text_key` of the row that was embedded."""

    seq: int
    text_key: str
    parts: list[tuple[int, int, str, NDArray[np.float32]]]


def text_key(row: Record) -> str:
    """Return a digest of the embedded text of a row, which has the content, the speaker and the date."""
    return digest(searched_text(row))


def placed(row: Record, seq: int) -> Record:
    """The row at its place in the order of rows (a quarter of the cost of `_replace`)."""
    return Record._make((row[0], seq, seq, *row[3:]))


def vector_batch(puts: Sequence[Put]) -> VectorBatch | None:
    """The vectors of these rows as one batch; None when there are none."""
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


def blob(vector: NDArray[np.float32] | None) -> bytearray:
    """float32, little-endian; a bytearray because the driver binds it without a detour that bytes take."""
    assert vector is not None
    return bytearray(np.ascontiguousarray(vector, dtype="<f4").data.cast("B"))
