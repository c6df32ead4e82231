"""Memories as points of a plane: the first two principal components of their vectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoranda.clock import moment
from memoranda.filters import Filter
from memoranda.memories.overviews import Projection
from memoranda.storage.sql.base import Connection, Row
from memoranda.store import listing
from memoranda.store.store import Store
from memoranda.text.stored import compact_json

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
    rows = [*_embedded(store, tenant, seqs[:: max(1, -(-len(seqs) // limit))])]
    points, explained = np.zeros((len(rows), 2)), 1.0
    if len(rows) > 1:
        vectors = np.frombuffer(b"".join(row.vector for row in rows), dtype="<f4")
        points, explained = principal_components(vectors.reshape(len(rows), -1))
    return Projection(
        ids=[row.id for row in rows],
        points=[(x, y) for x, y in np.round(points, DECIMALS).tolist()],
        kinds=[row.kind for row in rows],
        scopes=[_scope(row) for row in rows],
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


class _Embedded(NamedTuple):
    """What is shown of a memory, and the vector of its beginning. Its text, which may be long, is not read."""

    id: str
    kind: str
    session_id: str | None
    user_id: str | None
    agent_id: str | None
    channel_id: str | None
    occurred_at: int
    vector: bytes


def _embedded(store: Store, tenant: str, seqs: Sequence[int]) -> Iterator[_Embedded]:
    """Yield the memories that are there and have a vector."""
    for at in range(0, len(seqs), PAGE):
        values = [tenant, store.space, compact_json(seqs[at : at + PAGE])]
        yield from map(_Embedded._make, store.db.read(partial(_page, values), tenant))


def _page(values: Sequence[Any], c: Connection) -> list[Row]:
    return c.all("first_embeddings", values)


def _scope(row: _Embedded) -> str:
    """Return the narrowest scope of a memory with its id: `user:ada`, `global`."""
    ids = {"session": row.session_id, "user": row.user_id, "agent": row.agent_id, "channel": row.channel_id}
    return next((f"{place}:{id_}" for place, id_ in ids.items() if id_ is not None), "global")
