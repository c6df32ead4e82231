"""Bringing an index up to the rows: everything after a revision, put again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from recollect.changes import Put, vector_batch, word_docs
from recollect.db import Connection
from recollect.indexes import Index
from recollect.rows import Record, compact_json, newer_than
from recollect.words import Words

PAGE = 2_000


def replay_index(c: Connection, index: Index, space: int, since: int, rev: int) -> int:
    """Puts the vectors of all rows changed after revision `since` into the index; rows replayed."""

    def take(tenant: str, rows: list[Record]) -> None:
        puts = with_vectors(c, tenant, space, rows)
        bare = [put.row.seq for put in puts if not put.vectors]
        if bare:  # rewritten while the model was away: the index may still hold the vectors of the old text
            index.remove(tenant, bare)
        batch = vector_batch(puts)
        if batch is not None:
            index.put(tenant, batch)

    count = _replay(c, since, rev, index.remove, take)
    index.flush(rev)
    return count


def replay_words(c: Connection, words: Words, since: int, rev: int) -> int:
    """Puts the words of all rows changed after revision `since` into the index; rows replayed."""

    def take(tenant: str, rows: list[Record]) -> None:
        words.put(tenant, word_docs(rows))

    count = _replay(c, since, rev, words.remove, take)
    words.flush(rev)
    return count


def _replay(
    c: Connection,
    since: int,
    rev: int,
    remove: Callable[[str, Sequence[int]], object],
    take: Callable[[str, list[Record]], None],
) -> int:
    if since >= rev:
        return 0
    count = 0
    for (tenant,) in c.all("tenants"):
        gone = [int(seq) for (seq,) in c.all("removals_after", [tenant, since])]
        if gone:
            remove(tenant, gone)
        after = 0
        while rows := newer_than(c, tenant, since, after, PAGE):
            take(tenant, rows)
            after = rows[-1].seq
            count += len(rows)
    return count


def with_vectors(c: Connection, tenant: str, space: int, rows: Sequence[Record]) -> list[Put]:
    """The rows with their stored vectors of one space, by part."""
    seqs = [row.seq for row in rows]
    held: dict[int, list[NDArray[np.float32]]] = defaultdict(list)
    for seq, _, _, _, blob in c.all("embeddings_of", [tenant, space, compact_json(seqs)]):
        held[seq].append(np.frombuffer(blob, dtype="<f4"))
    return [Put(row, held[row.seq]) for row in rows]
