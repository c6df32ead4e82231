"""Comparison of a vector index with the rows it was filled from."""

from __future__ import annotations

import numpy as np

from memoranda.errors import IndexUnavailable
from memoranda.filters import Compare
from memoranda.storage.sql.base import Connection
from memoranda.store.changes import Put, changed_page, with_vectors
from memoranda.store.index_sync import Derived, Mirror
from memoranda.store.rows import fetch

SAME = 0.99
"""The least cosine of a stored vector with itself in an index, which may store float16."""


def check_filled(derived: Derived, mirror: Mirror) -> int:
    """Compare the number of vectors in the mirror with the rows, tenant by tenant, and return their number.

    Raises:
        IndexUnavailable: the mirror has fewer or more, or missed a change.
    """

    def wanted(c: Connection) -> list[tuple[str, int]]:
        expected = []
        for (tenant,) in c.all("tenants"):
            row = c.one("count_embeddings", [tenant, mirror.space])
            expected.append((str(tenant), int(row[0]) if row else 0))
        return expected

    counts: dict[str, int] = {}

    def count(expected: list[tuple[str, int]]) -> None:
        counts.update((tenant, mirror.index.count(tenant)) for tenant, _ in expected)

    if mirror.index.inside:
        expected = derived.db.read(wanted)
        count(expected)
    else:
        expected = derived.db.write(wanted, count).result()
    wrong = [
        f"{counts[tenant]} of {total} of {tenant}" for tenant, total in expected if counts[tenant] != total
    ]
    if wrong or "mirror" in derived.failed:
        raise IndexUnavailable(
            f"the new index missed changes, it has {', '.join(wrong) or 'failed'}; move again"
        )
    return sum(counts.values())


def sample(derived: Derived, tenant: str, size: int = 25) -> tuple[int, int]:
    """Look some of a tenant's rows up in the vector index. Return the number of stored vectors checked, and how
    many of them the index has unchanged."""

    def some(c: Connection) -> list[Put]:
        newest = [int(seq) for (seq,) in c.all("newest", [tenant, size // 2])]
        rows = list(fetch(c, tenant, newest).values())
        return (
            with_vectors(c, tenant, derived.space, rows)
            + changed_page(c, tenant, derived.space, 0, 0)[: size // 2]
        )

    looked = there = 0
    for put in derived.db.read(some, tenant):
        for vector in put.vectors:
            matches = derived.index.search(tenant, vector, 1, Compare("$seq", "eq", put.row.seq))
            looked += 1
            there += len(matches) == 1 and bool(matches.scores[0] >= SAME or not np.any(vector))
    return looked, there
