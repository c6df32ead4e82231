"""Replaying rows that changed after a revision into an index, page by page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.keyword.base import Words
from memoranda.indexes.vector.base import Index
from memoranda.storage.sql.base import Connection, Database
from memoranda.store.changes import Put, vector_batch, word_docs
from memoranda.store.rows import Record, newer_than
from memoranda.store.steps import parted
from memoranda.text.json import compact_json

PAGE = 1_000


def replay(db: Database, index: Index | Words, space: int | None, tenant: str, since: int) -> int:
    """Put one tenant's rows changed after `since` into an index, one page per transaction; return the rows put.
    `space` is the vector space, None for the keyword index."""
    count = after = 0
    while True:
        limit = min(PAGE, index.put_limit or PAGE) if isinstance(index, Index) else PAGE
        page, more = _replay_page(db, index, space, tenant, since, after, limit)
        count += len(page)
        if not more:
            return count
        after = page[-1].row.seq


def _replay_page(
    db: Database, index: Index | Words, space: int | None, tenant: str, since: int, after: int, limit: int
) -> tuple[Sequence[Put], bool]:
    """Put at most `limit` rows, with no more vectors than that unless one row has them; return them, and whether there
    are more."""

    def read(c: Connection) -> tuple[list[int], Sequence[Put], bool]:
        gone = [] if after else [int(seq) for (seq,) in c.all("removals_after", [tenant, since])]
        rows = changed_page(c, tenant, space, since, after, limit)
        page = next(parted(rows, lambda put: max(1, len(put.vectors)), limit), rows)
        return gone, page, len(rows) == limit or len(page) < len(rows)

    def take(index: Any, changes: tuple[list[int], Sequence[Put], bool]) -> None:
        gone, page, _ = changes
        if gone:
            index.remove(tenant, gone)
        if page and space is None:
            put_words(index, tenant, page)
        elif page:
            put_vectors(index, tenant, page)

    if not index.inside:
        return db.write(read, lambda changes: take(index, changes), tenant).result()[1:]

    def whole(c: Connection) -> tuple[list[int], Sequence[Put], bool]:
        changes = read(c)
        take(index.within(c), changes)
        return changes

    return db.write(whole, tenant=tenant).result()[1:]


def changed_page(
    c: Connection, tenant: str, space: int | None, since: int, after: int, limit: int = PAGE
) -> list[Put]:
    """Return the tenant's next `limit` rows changed after revision `since`, by seq, beyond seq `after`, with their
    vectors of `space` unless that is None."""
    rows = newer_than(c, tenant, since, after, limit)
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
