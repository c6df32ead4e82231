"""Pages of rows that changed after a revision, for an index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.keyword.base import Words
from memoranda.indexes.vector.base import Index
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import Put, vector_batch, word_docs
from memoranda.store.rows import Record, newer_than
from memoranda.text.json import compact_json

PAGE = 1_000


def changed_page(c: Connection, tenant: str, space: int | None, since: int, after: int) -> list[Put]:
    """Return the tenant's next rows changed after revision `since`, by seq, beyond seq `after`, with their vectors of
    `space` unless that is None."""
    rows = newer_than(c, tenant, since, after, PAGE)
    return [Put(row, []) for row in rows] if space is None else with_vectors(c, tenant, space, rows)


def put_vectors(index: Index, tenant: str, puts: Sequence[Put]) -> None:
    """Put the current vectors of rows. A row without vectors was rewritten while the model was unavailable: the vectors
    of its old text are removed from the index."""
    bare = [put.row.seq for put in puts if not put.vectors and put.row.rev != put.row.seq]
    if bare:
        index.remove(tenant, bare)
    batch = vector_batch(puts)
    if batch is not None:
        index.put(tenant, batch)


def put_words(words: Words, tenant: str, puts: Sequence[Put]) -> None:
    """Put the current texts of rows."""
    words.put(tenant, word_docs(put.row for put in puts))


def with_vectors(c: Connection, tenant: str, space: int, rows: Sequence[Record]) -> list[Put]:
    """Return the rows with their stored vectors of one space, by part."""
    seqs = [row.seq for row in rows]
    vectors: dict[int, list[NDArray[np.float32]]] = defaultdict(list)
    for seq, _, _, _, blob in c.all("embeddings_of", [tenant, space, compact_json(seqs)]):
        vectors[seq].append(np.frombuffer(blob, dtype="<f4"))
    return [Put(row, vectors[row.seq]) for row in rows]
