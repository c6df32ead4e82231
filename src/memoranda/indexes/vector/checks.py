"""Checks of vectors that every vector index makes."""

from __future__ import annotations

import numpy as np

from memoranda.errors import DimensionMismatch, InvalidInput
from memoranda.indexes.vector.base import Vector, VectorBatch, Vectors
from memoranda.indexes.vector.floats import unit_vector


def batch_vectors(batch: VectorBatch, dim: int) -> Vectors:
    """The vectors of a batch, (n, dim) float32.

    Raises:
        DimensionMismatch: they are not (n, dim).
        InvalidInput: one holds NaN or infinity, or the batch's arrays do not belong together.
    """
    vectors = np.asarray(batch.vectors, np.float32)
    if vectors.ndim != 2 or vectors.shape[1] != dim:
        raise DimensionMismatch("vectors", f"expected (n, {dim}), got {vectors.shape}")
    if not len(vectors) == len(batch.seqs) == len(batch.parts) == len(batch.attributes):
        raise InvalidInput("vectors", "seqs, parts, vectors and attributes need one entry per row each")
    if not np.isfinite(vectors).all():
        broken = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
        raise InvalidInput(f"vectors[{broken[0]}]", "the vector holds NaN or infinity")
    return vectors


def unit_query(query: Vector, dim: int) -> Vector:
    """Return the query at length 1; a zero query stays zero.

    Raises:
        DimensionMismatch: it is not (dim,).
        InvalidInput: it holds NaN or infinity.
    """
    vector = np.asarray(query, np.float32)
    if vector.shape != (dim,):
        raise DimensionMismatch("query", f"expected {dim} dimensions, got shape {vector.shape}")
    vector = unit_vector(vector)
    if np.isnan(vector[0]):
        raise InvalidInput("query", "the vector holds NaN or infinity")
    return vector
