"""Token vectors: how similar the tokens of a text are to those of a question, one by one (late interaction).

The vectors are those of the last layer, from the pass that makes a text's embedding, through a trained projection to
fewer dimensions. A text keeps one bit of each dimension, its sign: 16 bytes a token for 128 dimensions. Measured on
conversations that nothing was fitted on, that ranks as well as eight bits do, see docs/evaluation.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
BITS = 8


class TokenProjection:
    """A projection of a model's token vectors (hidden) to `dim` dimensions, and the weights of a question's tokens.

    A file of it is an `.npz` with `projection` (hidden, dim) and `weights` (hidden,), as
    `benchmarks/token_projection.py` writes it.
    """

    def __init__(self, path: Path) -> None:
        with np.load(path, allow_pickle=False) as stored:
            self._projection: Floats = stored["projection"].astype(np.float32)
            self._weights: Floats = stored["weights"].astype(np.float32)
        self.dim = self._projection.shape[1]

    def codes(self, states: Floats) -> NDArray[np.uint8]:
        """Return the signs of a text's projected token vectors (t, hidden) as bits, (t, dim / 8)."""
        return np.packbits(states @ self._projection > 0, axis=1)

    def weighted(self, states: Floats) -> Floats:
        """Return a question's projected token vectors (t, dim) at length 1, times the weights of the tokens: the
        softmax of <unit state, weights>."""
        units = _units(states)
        logits = units @ self._weights
        weights = np.exp(logits - logits.max())
        projected: Floats = _units(units @ self._projection) * (weights / weights.sum())[:, None]
        return projected


def max_sim(question: Floats, texts: Sequence[bytes]) -> NDArray[np.float64]:
    """Return the token similarity of texts (n,) to a question, in -1..1: the sum over the question's weighted token
    vectors (t, dim) of each one's greatest cosine to a token of the text (Khattab and Zaharia, "ColBERT", 2020).
    `texts` are the bytes of their codes, each of at least one token."""
    if not texts:
        return np.empty(0)
    width = question.shape[1] // BITS
    lengths = np.array([len(text) for text in texts]) // width
    codes = np.frombuffer(b"".join(texts), np.uint8).reshape(-1, width)
    signs = np.unpackbits(codes, axis=1).astype(np.float32)
    signs *= 2.0
    signs -= 1.0
    cosines = signs @ question.T
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    best = np.maximum.reduceat(cosines, starts, axis=0)
    similarities: NDArray[np.float64] = best.sum(axis=1, dtype=np.float64) / np.sqrt(question.shape[1])
    return similarities


def _units(vectors: Floats) -> Floats:
    units: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return units
