"""The interface of embedding models, and what several have in common: texts in windows of tokens, cut between words,
and work in this process off the event loop, queries before bulk work."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import shake_256
from typing import Literal
from unicodedata import category

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.errors import EmbedderUnavailable

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


_JOINER = "\u200d"


def windows(text: str, starts: NDArray[np.int64], limit: int, overlap: int) -> list[Span]:
    """Return windows of at most `limit` tokens, each beginning about `overlap` tokens before the last one's end.

    `starts` (n,) are the characters the tokens begin at, ascending. Windows cover every character, what
    lies between tokens included. A cut falls between words where the last quarter of the window has such
    a place, so that a window has the same tokens by itself. Needs 0 < 2 * overlap < limit / 2.
    """
    spans: list[Span] = []
    begin = first = 0
    while len(starts) - first > limit:
        last = _cut(text, starts, first + limit, first + limit - limit // 4)
        spans.append(Span(begin, int(starts[last])))
        first = _cut(text, starts, last - overlap, last - 2 * overlap)
        begin = int(starts[first])
    spans.append(Span(begin, len(text)))
    return spans


def _cut(text: str, starts: NDArray[np.int64], index: int, least: int) -> int:
    """The last token in (least, index] that begins a word, else a character, else `index`."""
    character = 0
    for i in range(index, least, -1):
        at = int(starts[i])
        if at == starts[i - 1] or _continues(text, at):
            continue
        if not (text[at].isalnum() and (text[at - 1].isalnum() or _is_mark(text[at - 1]))):
            return i
        character = character or i
    return character or index


def _continues(text: str, at: int) -> bool:
    """Return True if a sign belongs to the character before it: a vowel or tone sign, an accent, a skin tone, or one
    of joined emoji."""
    sign = text[at]
    return (
        _is_mark(sign) or sign == _JOINER or text[at - 1] == _JOINER or "\U0001f3fb" <= sign <= "\U0001f3ff"
    )


def _is_mark(sign: str) -> bool:
    return not sign.isascii() and category(sign)[0] == "M"


class ThreadedEmbedder(Embedder):
    """An embedder whose `compute` runs on threads of its own: `threads` for documents and as many for
    questions, so that a question never queues behind a bulk job. Bulk jobs take turns, slice by slice."""

    slice_chars: int
    """Characters of text in one slice: about 50 ms of work."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._lanes = {task: ThreadPoolExecutor(threads, f"embed-{task}") for task in ("document", "query")}
        self._closed = False

    @abstractmethod
    def compute(self, texts: Sequence[str], task: Task) -> Embedded:
        """Return one unit vector per text, in the calling thread. Called from several threads at once."""

    async def embed(self, texts: Sequence[str], task: Task = "document") -> Embedded:
        if self._closed:
            raise EmbedderUnavailable(f"the embedder {self.model} is closed")
        loop = asyncio.get_running_loop()
        done: list[Embedded] = []
        pending: deque[asyncio.Future[Embedded]] = deque()
        try:
            for piece in slices(texts, self.slice_chars):
                pending.append(loop.run_in_executor(self._lanes[task], self.compute, piece, task))
                if len(pending) > self._threads:
                    done.append(await pending.popleft())
            while pending:
                done.append(await pending.popleft())
        finally:
            for left in pending:
                left.cancel()
        vectors = [np.empty((0, self.dim), np.float32), *(part.vectors for part in done)]
        of_tokens = [some for part in done for some in part.token_vectors or ()]
        tokens = sum(part.tokens for part in done)
        return Embedded(np.concatenate(vectors), tokens, token_vectors=of_tokens if self.token_dim else None)

    async def load(self) -> None:
        await self.embed(["a"], "query")

    def close(self) -> None:
        self._closed = True
        for lane in self._lanes.values():
            lane.shutdown(wait=True, cancel_futures=True)


def slices(texts: Sequence[str], chars: int) -> Iterator[Sequence[str]]:
    """Yield the texts in runs of at most `chars` characters together; a longer text is a run of its own."""
    start = size = 0
    for i, text in enumerate(texts):
        if i > start and size + len(text) > chars:
            yield texts[start:i]
            start, size = i, 0
        size += len(text)
    if start < len(texts):
        yield texts[start:]


def unit(vector: Vectors, text: str) -> Vectors:
    """Return the vector (dim,) at length 1; for a zero vector, a direction that only this text has.

    That direction's signs are the bits of SHAKE-256 of the text, so that two texts without a known word
    are alike only when they are the same.
    """
    length = np.linalg.norm(vector)
    if length > 0:
        return vector / length
    dim = len(vector)
    digest = shake_256(text.encode("utf-8", "surrogatepass")).digest(-(-dim // 8))
    bits = np.unpackbits(np.frombuffer(digest, np.uint8), count=dim).astype(np.float32)
    return (2 * bits - 1) / np.float32(np.sqrt(dim))
