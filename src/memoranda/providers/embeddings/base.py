"""The interface of embedding models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
TokenVectors = NDArray[np.uint8] | NDArray[np.float32]
"""Of a document, the codes of its tokens (t, token_dim / 8) uint8; of a query, its weighted token vectors
(t, token_dim) float32. See `token_vectors`."""
Task = Literal["document", "query"]


class Span(msgspec.Struct, frozen=True):
    """Characters [start, end) of a text."""

    start: int
    end: int


class Calibration(msgspec.Struct, frozen=True):
    """How a model's cosines map to similarities that are comparable across models.

    Linear between three knots: the cosine `low` maps to 0 (and so does any lower one), `firm` to .7, and 1 to 1, so
    that only a perfect match is 1. The default is the identity, with negative cosines cut to 0.

    Vectors of all texts share a direction, which makes any two of them similar. `center` (dim,) is the mean of the unit
    vectors of many texts: empty for a model without such a direction, None where it is not known. Without it, two texts
    are about the same thing from the cosine `same` on (Mu and Viswanath, "All-but-the-Top", 2018).
    """

    low: float = 0.0
    firm: float = 0.7
    same: float = 0.5
    center: tuple[float, ...] | None = None

    def similarity(self, cosine: float) -> float:
        """Return the calibrated similarity of a cosine, in [0, 1]."""
        if cosine <= self.firm:
            return max(0.0, 0.7 * (cosine - self.low) / (self.firm - self.low))
        return min(1.0, 0.7 + 0.3 * (cosine - self.firm) / (1.0 - self.firm))

    def cosine(self, similarity: float) -> float:
        """Return the cosine of a similarity: the inverse, for applying a threshold in an index."""
        if similarity <= 0.7:
            return self.low + (self.firm - self.low) * similarity / 0.7
        return self.firm + (1.0 - self.firm) * (similarity - 0.7) / 0.3


def centred(vectors: Vectors, center: tuple[float, ...]) -> Vectors:
    """Return the unit vectors of (n, dim) vectors without the direction that all have, see `Calibration`."""
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    if center:
        units = units - np.array(center, np.float32)
        units /= np.maximum(np.linalg.norm(units, axis=1, keepdims=True), 1e-12)
    result: Vectors = units
    return result


class Embedded(msgspec.Struct, frozen=True):
    """`vectors` (n, dim) float32, one per text, and the model tokens they cost. `texts` is how many texts the model
    read, None for all: the others were cached. `token_vectors` (n) are those of each text, see `token_vectors`: of
    documents their codes, of queries their weighted vectors; None from a model without them."""

    vectors: Vectors
    tokens: int
    texts: int | None = None
    token_vectors: Sequence[TokenVectors] | None = None

    @property
    def tokens_of_each(self) -> Sequence[TokenVectors | None]:
        """The token vectors of each text (n), or None for each."""
        return [None] * len(self.vectors) if self.token_vectors is None else self.token_vectors


class QueryEmbedding(msgspec.Struct, frozen=True):
    """A query as `model` embedded it ("": as the caller did): its vector (dim,), and its weighted token vectors (t,
    token_dim) if the model has them. `covered` is False if it is in a language that the model was not trained on."""

    vector: Vectors
    model: str = ""
    tokens: TokenVectors | None = None
    covered: bool = True


class Embedder(ABC):
    """Texts to vectors. `model` and `dim` are the vector space's name: vectors of two models never mix."""

    model: str
    dim: int
    max_tokens: int
    calibration: Calibration
    remote: bool = False
    """True if the model is a provider's, which may charge for it."""
    token_dim: int = 0
    """The dimension of its token vectors; 0 if it has none."""
    languages: frozenset[str] | None = None
    """ISO 639-1 codes of the languages that the model was trained on; None where they are not known, and for a model
    that reads no language."""
    dense_weight: float = 0.7
    """The weight of its cosines against BM25 in a fused score, 0..1, as measured on labelled questions."""

    @abstractmethod
    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        """Return one unit-length vector per text, in order, deterministic for the same text in any batch (up to float
        rounding). Texts beyond `max_tokens` are truncated; `split` first to lose nothing.

        Raises:
            EmbedderUnavailable: the model could not answer.
        """

    @abstractmethod
    def split(self, text: str) -> list[Span]:
        """Return the text in windows that each fit the model's input, with a small overlap, covering every character;
        one window if it fits, none cut inside a character."""

    async def load(self) -> None:  # noqa: B027 - a provider has nothing to load
        """Load a model that runs in this process before its first call; a provider is not contacted.

        Raises:
            EmbedderUnavailable: the model could not be loaded.
        """

    def usage(self) -> dict[str, int]:
        """Return counts of requests to a provider since the embedder was opened; empty for a model in this process."""
        return {}

    def close(self) -> None:  # noqa: B027 - most embedders have nothing to close
        """Release the model. Idempotent."""


class WrappedEmbedder(Embedder):
    """An embedder in front of `inner`, with its model and everything known about it."""

    def __init__(self, inner: Embedder) -> None:
        self.inner = inner
        self.model, self.dim, self.max_tokens = inner.model, inner.dim, inner.max_tokens
        self.calibration, self.dense_weight = inner.calibration, inner.dense_weight
        self.remote, self.token_dim, self.languages = inner.remote, inner.token_dim, inner.languages

    def split(self, text: str) -> list[Span]:
        return self.inner.split(text)
