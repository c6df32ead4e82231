"""The interface of keyword indexes (BM25), derived from the rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from memoranda.filters import EVERYTHING, Attributes, Filter
from memoranda.storage.sql.base import Connection


class WordDoc(msgspec.Struct, frozen=True):
    """One memory's text for keyword search, and its filter attributes."""

    seq: int
    text: str
    attributes: Attributes


class WordMatches(msgspec.Struct, frozen=True):
    """Best first: memory seqs (k,) and BM25 scores (k,) > 0. Equal scores are ordered by seq, ascending."""

    seqs: NDArray[np.int64]
    scores: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.seqs)


NO_WORDS = WordMatches(np.empty(0, np.int64), np.empty(0, np.float32))


class Words(ABC):
    """Texts by tenant and memory, ranked by BM25 over any of the query's terms.

    Terms are those of `text.analysis`: without case and marks, stemmed in the language of the text, pairs of characters
    in scripts without spaces, without stop words. Any string is a query: nothing in it is syntax. Calls are synchronous
    and thread-safe: one thread writes, many search. A search begun after `put` or `remove` returned sees it.
    """

    inside: bool = False
    """True if the index is written in the rows' own transaction, see `vector.base.Index`."""
    shared: bool = False
    """True if other processes write to it too."""
    ready: bool = False
    """True if a search takes a few milliseconds and waits for nobody, so that it may run on an event loop."""

    @property
    def stuck(self) -> bool:
        """True if the index could not make changes durable several times in a row: it is to be built anew."""
        return False

    @property
    def identity(self) -> str:
        """The identity by which the rows' database records which keyword index is in step."""
        return type(self).__name__

    def within(self, connection: Connection) -> Words:
        """Return the index as part of the transaction of `connection`, if it is `inside`."""
        return self

    @property
    @abstractmethod
    def watermark(self) -> int:
        """The revision up to which this index has every change durably."""

    @abstractmethod
    def put(self, tenant: str, docs: Sequence[WordDoc]) -> None:
        """Add the documents; an earlier document of the same seq is replaced."""

    @abstractmethod
    def remove(self, tenant: str, seqs: Sequence[int]) -> None:
        """Remove these memories; unknown seqs are ignored."""

    @abstractmethod
    def search(self, tenant: str, query: str, limit: int, where: Filter = EVERYTHING) -> WordMatches:
        """Return the `limit` best memories that contain any term of `query` and pass `where`; the filter applies
        before the limit."""

    @abstractmethod
    def count(self, tenant: str) -> int:
        """Return the number of documents of the tenant."""

    @abstractmethod
    def flush(self, rev: int) -> None:
        """Report that everything up to revision `rev` has been put; the index may make itself durable now or later."""

    @abstractmethod
    def compact(self) -> None:
        """Remove every word of removed texts from the files of the index. Durable on return."""

    @abstractmethod
    def clear(self) -> None:
        """Drop everything; `watermark` is 0 again."""

    @abstractmethod
    def health(self) -> dict[str, object]:
        """Facts for `doctor` and `stats`: backend, documents, bytes on disk."""

    @abstractmethod
    def close(self) -> None:
        """Make the index durable at its last flushed revision and close its files. Idempotent."""
