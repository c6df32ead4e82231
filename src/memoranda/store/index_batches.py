"""Replaying rows that changed after a revision into an index, page by page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.indexes.keyword.base import Words
from memoranda.indexes.vector.base import Index
from memoranda.storage.sql.base import Connection, Database
from memoranda.store.changes import Applied, Put, vector_batch, word_docs
from memoranda.store.rows import Record, newer_than
from memoranda.store.steps import parted
from memoranda.text.json import compact_json

PAGE = 1_000
SHORT = 250
"""Rows of a page of a part of the rows: it is put while others write."""
LAST = (1 << 63) - 1
"""The greatest seq."""


def replay(
    db: Database,
    index: Index | Words,
    space: int | None,
    tenant: str,
    since: int,
    within: tuple[int, int] = (0, LAST),
) -> int:
    """Put one tenant's rows changed after `since` into an index, one page per transaction; return the rows put.
    `space` is the vector space, None for the keyword index. Of `within`, the rows have seqs beyond the first number
    and up to the second."""
    count, (after, upto) = 0, within
    while True:
        most = PAGE if upto == LAST else SHORT
        limit = min(most, index.put_limit or most) if isinstance(index, Index) else most
        page, more = _replay_page(db, index, space, tenant, since, after, upto, limit)
        count += len(page)
        if not more:
            return count
        after = page[-1].row.seq


def _replay_page(
    db: Database,
    index: Index | Words,
    space: int | None,
    tenant: str,
    since: int,
    after: int,
    upto: int,
    limit: int,
) -> tuple[Sequence[Put], bool]:
    """Put at most `limit` rows, with no more vectors than that unless one row has them; return them, and whether there
    are more."""

    def read(c: Connection) -> tuple[list[int], Sequence[Put], bool]:
        gone = [] if after else [int(seq) for (seq,) in c.all("removals_after", [tenant, since])]
        rows = changed_page(c, tenant, space, since, after, limit)
        whole = len(rows) == limit and rows[-1].row.seq < upto
        rows = [put for put in rows if put.row.seq <= upto]
        page = next(parted(rows, lambda put: max(1, len(put.vectors)), limit), rows)
        return gone, page, whole or len(page) < len(rows)

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


def extent(c: Connection) -> tuple[list[str], int, int]:
    """Return the tenants, the last revision, and the revision from which removals are recorded."""
    row, floor = c.one("last_rev"), c.one("get_meta", ["removals_from"])
    tenants = [str(tenant) for (tenant,) in c.all("tenants")]
    return tenants, int(row[0]) if row else 0, int(floor[0]) if floor else 0


def lacks_more(c: Connection, since: int, rev: int, few: int) -> bool:
    """Return True if more than `few` rows have changed after revision `since`; `rev` is the last one."""
    left = few
    for (tenant,) in c.all("changed_tenants", [since]) if rev - since > few else ():
        left -= len(newer_than(c, str(tenant), since, 0, left + 1))
        if left < 0:
            return True
    return False


def to_index(index: Index, removed: Mapping[str, Sequence[int]], puts: Mapping[str, Sequence[Put]]) -> None:
    """Apply one change to a vector index."""
    for tenant, seqs in removed.items():
        index.remove(tenant, seqs)
    for tenant, some in puts.items():
        put_vectors(index, tenant, some)


def to_words(words: Words, applied: Applied) -> None:
    """Apply one change to a keyword index."""
    for tenant, seqs in applied.removed.items():
        words.remove(tenant, seqs)
    for tenant, puts in applied.puts.items():
        if reworded := [put for put in puts if put.reworded]:
            put_words(words, tenant, reworded)
