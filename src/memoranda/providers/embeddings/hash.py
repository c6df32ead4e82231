"""Embeddings by feature hashing of words: deterministic, without a model, for tests and small machines."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from memoranda.config.data_sections import Embedder as Settings
from memoranda.errors import ConfigError
from memoranda.providers.embeddings.base import (
    Calibration,
    Embedded,
    Span,
    Task,
    ThreadedEmbedder,
    unit,
    windows,
)
from memoranda.text.hashing import hash64
from memoranda.text.memo import kept

_WORD = re.compile(r"\w{1,64}")
MAX_TOKENS = 512


class HashEmbedder(ThreadedEmbedder):
    """Word counts, each word in the bucket and with the sign of its hash; a word of over 64 letters
    counts as several.

    The bucket comes from the lower 32 bits of the word's hash and the sign from bit 63, so the two are
    independent and the expected cosine of texts without a common word is 0. Source: Weinberger et al.,
    Feature Hashing for Large Scale Multitask Learning, 2009.
    """

    slice_chars = 65_536
    max_tokens = MAX_TOKENS
    calibration = Calibration(same=0.41, center=())

    def __init__(self, dim: int, threads: int) -> None:
        super().__init__(threads)
        self.dim = dim
        self.model = f"hash-{dim}"

    def compute(self, texts: Sequence[str], task: Task) -> Embedded:
        vectors = np.zeros((len(texts), self.dim), np.float32)
        tokens = 0
        for row, text in enumerate(texts):
            words = _words(text)
            for word in words:
                bucket, sign = place(word, self.dim)
                vectors[row, bucket] += sign
            vectors[row] = unit(vectors[row], text)
            tokens += len(words)
        return Embedded(vectors, tokens)

    def split(self, text: str) -> list[Span]:
        starts = np.array([word.start() for word in _WORD.finditer(text)], np.int64)
        return windows(text, starts, MAX_TOKENS, MAX_TOKENS // 10)


def open_hash(url: str, settings: Settings) -> HashEmbedder:
    """Open the hash embedder that `hash:DIM` names; `hash` alone has 256 dimensions.

    Raises:
        ConfigError: DIM is not a number from 8 to 8192.
    """
    dim = url.partition(":")[2] or "256"
    if not dim.isdecimal() or not 8 <= int(dim) <= 8192:
        raise ConfigError("embedder.url", f"{url!r} needs a dimension from 8 to 8192, as in 'hash:256'")
    return HashEmbedder(int(dim), settings.threads)


@kept(65_536)
def place(word: str, dim: int) -> tuple[int, int]:
    """Return the word's bucket in [0, dim), and its sign, -1 or 1."""
    bits = hash64(word)
    return (bits & 0xFFFF_FFFF) % dim, 1 if bits >> 63 else -1


def _words(text: str) -> list[str]:
    """The first `MAX_TOKENS` words, in lower case."""
    matches = _WORD.finditer(text)
    return [word.group().lower() for _, word in zip(range(MAX_TOKENS), matches, strict=False)]
