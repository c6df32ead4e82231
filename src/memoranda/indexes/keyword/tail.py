"""Documents that are not committed yet, searched in memory and scored by BM25 as tantivy computes it, as they will be
once committed."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import log
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.filters import EVERYTHING, Filter, matches
from memoranda.text.analysis import index_terms

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


Key = tuple[str, int]
"""Tenant and seq, which identify a document."""


class TailDoc(msgspec.Struct, frozen=True):
    """One document that waits to be committed. `fresh`: no earlier document of the key can be committed."""

    tenant: str
    seq: int
    text: str
    attributes: Mapping[str, Any]
    fresh: bool


class Tail:
    """The changes since a commit: documents put and keys removed. Not thread-safe; the caller locks.

    Texts are analysed once each, when a search asks if not before. A slot is a document's place in the order of
    putting; a slot that its key no longer points to is dead.
    """

    def __init__(self) -> None:
        self._slots: dict[Key, int | None] = {}
        self._docs: list[TailDoc] = []
        self._lengths: list[int] = []
        self._postings: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._hidden: dict[str, set[int]] = {}
        self._live: Counter[str] = Counter()
        self._tokens = 0

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, doc: TailDoc, words: Sequence[str] | None = None) -> None:
        """Add the document; an earlier document of its key is replaced. With `words`, the terms of its text, it is
        analysed now."""
        key = (doc.tenant, doc.seq)
        slot = self._slots.get(key)
        if slot is None:
            self._live[doc.tenant] += 1
        if not doc.fresh:
            self._hidden.setdefault(doc.tenant, set()).add(doc.seq)
        self._slots[key] = len(self._docs)
        self._docs.append(doc)
        if words is not None:
            self._analyse(words)

    def remove(self, key: Key) -> None:
        """Remove the key, here and from the committed documents."""
        if self._slots.get(key) is not None:
            self._live[key[0]] -= 1
        self._slots[key] = None
        self._hidden.setdefault(key[0], set()).add(key[1])

    def is_fresh(self, key: Key) -> bool:
        """Return True if the key's live document here has no committed predecessor."""
        slot = self._slots.get(key)
        return slot is not None and self._docs[slot].fresh

    def changes(self) -> Iterator[tuple[Key, TailDoc | None]]:
        """Every key changed, with its document, or None when it was removed."""
        for key, slot in self._slots.items():
            yield key, None if slot is None else self._docs[slot]

    def hidden(self, tenant: str) -> Collection[int]:
        """Seqs whose committed document, if there is one, no longer counts."""
        return self._hidden.get(tenant, ())

    def seqs(self, tenant: str) -> list[int]:
        """Seqs of the tenant's live documents."""
        return [seq for (owner, seq), slot in self._slots.items() if owner == tenant and slot is not None]

    def live(self, tenant: str) -> int:
        """Return the number of live documents of the tenant here."""
        return self._live[tenant]

    def lengths(self) -> tuple[int, int]:
        """Documents of all tenants, dead ones included as in a committed segment, and the terms in them."""
        self._analyse()
        return len(self._docs), self._tokens

    def holding(self, tenant: str, term: str, hidden: Collection[int]) -> int:
        """Return the number of live documents of the tenant with the term, without `hidden` seqs."""
        self._analyse()
        return sum(self._counts(slot, hidden) for slot, _ in self._postings.get((tenant, term), ()))

    def search(
        self,
        tenant: str,
        weights: Mapping[str, float],
        average: float,
        where: Filter,
        hidden: Collection[int],
    ) -> list[tuple[float, int]]:
        """Return (score, seq) of each live document that has a weighted term and passes, in no order.

        `weights` are the terms' idf, `average` the mean document length; `hidden` seqs are left out.
        """
        self._analyse()
        scores: dict[int, float] = {}
        for term, weight in weights.items():
            for slot, count in self._postings.get((tenant, term), ()):
                part = weight * saturation(count, self._lengths[slot], average)
                scores[slot] = scores.get(slot, 0.0) + part
        hits = []
        for slot, score in scores.items():
            doc = self._docs[slot]
            if self._counts(slot, hidden) and (where is EVERYTHING or matches(where, doc.attributes)):
                hits.append((score, doc.seq))
        return hits

    def _counts(self, slot: int, hidden: Collection[int]) -> bool:
        doc = self._docs[slot]
        return doc.seq not in hidden and self._slots[doc.tenant, doc.seq] == slot

    def _analyse(self, last: Sequence[str] | None = None) -> None:
        """Analyse the documents not analysed yet; `last` are the terms of the latest document."""
        for slot in range(len(self._lengths), len(self._docs)):
            doc = self._docs[slot]
            words = last if last is not None and slot == len(self._docs) - 1 else index_terms(doc.text)
            self._tokens += len(words)
            self._lengths.append(stored_length(len(words)))
            for term, count in Counter(words).items():
                self._postings.setdefault((doc.tenant, term), []).append((slot, count))
