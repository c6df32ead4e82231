"""Memories as points of a plane: the first two principal components of their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from memoranda.clock import moment
from memoranda.filters import Filter
from memoranda.storage.sql.base import Connection, Row
from memoranda.store import listing
from memoranda.store.rows import Record, fetch, scope_of
from memoranda.store.store import Store
from memoranda.text.json import compact_json
from memoranda.types import Projection

DECIMALS = 4
PAGE = 1_000
"""Rows that are read at once."""


def project(store: Store, tenant: str, where: Filter, limit: int) -> Projection:
    """Project the rows that pass `where` and have a vector; of more than `limit` rows, every n-th in the order of
    writing, so that at most `limit` are left.

    The axes are the two eigenvectors of the covariance of the vectors with the largest eigenvalues (Pearson, "On Lines
    and Planes of Closest Fit to Systems of Points in Space", 1901). The largest component of each is positive: the same
    rows make the same picture.
    """
    seqs = listing.seqs(store.db, tenant, where)
    rows: list[Record] = []
    vectors: list[NDArray[np.float32]] = []
    for row, vector in _embedded(store, tenant, seqs[:: max(1, -(-len(seqs) // limit))]):
        rows.append(row)
        vectors.append(vector)
    points, explained = (
        principal_components(np.asarray(vectors)) if len(rows) > 1 else (np.zeros((len(rows), 2)), 1.0)
    )
    return Projection(
        ids=[row.id for row in rows],
        points=[(x, y) for x, y in np.round(points, DECIMALS).tolist()],
        kinds=[row.kind for row in rows],
        scopes=[_place(row) for row in rows],
        occurred_at=[moment(row.occurred_at) for row in rows],
        total=len(seqs),
        explained=round(explained, DECIMALS),
    )


def principal_components(vectors: NDArray[np.float32]) -> tuple[NDArray[np.float64], float]:
    """Return the coordinates of vectors (n x d) on their first two principal components (n x 2), and the share of the
    variance that these explain, 0..1; 1 if all vectors are equal."""
    centered = vectors - vectors.mean(axis=0)
    variances, axes = np.linalg.eigh((centered.T @ centered).astype(np.float64))
    first = axes[:, [-1, -2]]
    first = first * np.sign(first[np.abs(first).argmax(axis=0), [0, 1]])
    whole = float(variances.sum())
    explained = float(variances[-2:].sum()) / whole if whole > 0 else 1.0
    return centered @ first, min(1.0, max(0.0, explained))


def _embedded(store: Store, tenant: str, seqs: Sequence[int]) -> Iterator[tuple[Record, NDArray[np.float32]]]:
    """Yield the rows that are there, each with the vector of its beginning, if it has one."""
    for at in range(0, len(seqs), PAGE):
        rows, found = store.db.read(partial(_page, tenant, store.space, seqs[at : at + PAGE]), tenant)
        for seq, part, _, _, data in found:
            if part == 0:
                yield rows[seq], np.frombuffer(data, dtype="<f4")


def _page(tenant: str, space: int, seqs: Sequence[int], c: Connection) -> tuple[dict[int, Record], list[Row]]:
    rows = fetch(c, tenant, seqs)
    return rows, c.all("embeddings_of", [tenant, space, compact_json([*rows])])


def _place(row: Record) -> str:
    """Return the scope of a row with its id: `user:ada`, `global`."""
    scope = scope_of(row)
    ids = {"session": row.session_id, "channel": row.channel_id, "agent": row.agent_id, "user": row.user_id}
    return f"{scope}:{ids[scope]}" if scope in ids else scope
