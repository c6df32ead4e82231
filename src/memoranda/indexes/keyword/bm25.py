"""BM25 as tantivy computes it, so that uncommitted documents score as they will once committed.

score(t, d) = idf(t) * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(d) / average)), with
idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5)); Robertson and Zaragoza (2009), Lucene's positive idf.
"""

from __future__ import annotations

from bisect import bisect_right
from math import log

import numpy as np
from numpy.typing import NDArray

K1 = 1.2
B = 0.75


def _length_codes() -> list[int]:
    lengths = list(range(24))
    for code in range(256 - 24):
        shift, bits = (code >> 3) - 1, code & 7
        lengths.append(24 + (bits if shift < 0 else (bits | 8) << shift))
    return lengths


LENGTHS = _length_codes()
"""The document length of each of the 256 bytes."""


def length_code(length: int) -> int:
    """Return the document length as one byte: exact up to 40 terms, then the next lower step."""
    return bisect_right(LENGTHS, length) - 1


def stored_length(length: int) -> int:
    """Return the document length that one byte stores."""
    return LENGTHS[length_code(length)]


def idf(documents: int, holding: int) -> float:
    """Return the weight of a term that `holding` of `documents` documents contain, > 0."""
    return log(1.0 + (max(documents, holding) - holding + 0.5) / (holding + 0.5))


def saturation(count: int, length: int, average: float) -> float:
    """Return the part of a term's score that depends on the document, in (0, k1 + 1)."""
    return count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / average))


def rounded(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Round scores > 0 to 12 bits, so that scores that differ only by the order of float32 operations are equal."""
    bits = scores.view(np.int32)
    return ((bits + 0x400) & ~0x7FF).view(np.float32)
