"""Keyword search in tantivy: committed segments, and a tail of documents that are not committed yet."""

from __future__ import annotations

import logging
import re
import tempfile
import threading
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np

from memoranda.errors import IndexUnavailable
from memoranda.filters import EVERYTHING, Filter
from memoranda.indexes.keyword.base import NO_WORDS, WordDoc, WordMatches, Words
from memoranda.indexes.keyword.segments import Segments, available
from memoranda.indexes.keyword.tail import Tail, TailDoc, idf, rounded
from memoranda.indexes.keyword.view import View
from memoranda.storage.attributes import plain
from memoranda.storage.data_lock import bytes_in
from memoranda.text.analysis import MARKERS, index_terms, search_terms, spoken

logger = logging.getLogger(__name__)

STUCK = 3
"""Failed commits in a row after which the index is to be built anew."""
_SYSTEM = re.compile(r"os error \d+|no space left", re.IGNORECASE)
"""How an engine error says that the system refused a file: building anew would not help, and lose what is there."""
PUT_CHUNK = 64
"""Documents taken under the lock at once: a search that waits for it waits for milliseconds."""


def of_the_system(exc: IndexUnavailable) -> bool:
    """Return True if the system explains a failure: a full disk, a folder that cannot be written, too many files."""
    return isinstance(exc.__cause__, OSError) or _SYSTEM.search(str(exc)) is not None


class TantivyWords(Words):
    """BM25 over tantivy segments in `folder` (None: a temporary folder, removed at close).

    `put` and `remove` only add to the tail; a thread commits when `commit_docs` changes wait or the first has
    waited `commit_seconds`. Until then, and while that commit runs, searches score the waiting documents
    directly. `put` blocks while `max_tail` changes wait.

    Scores depend on the tenant's own live documents: their number and document frequencies, committed or not. Only
    the mean length of a document is a statistic of all tenants.

    Raises:
        IndexUnavailable: another process writes the folder, it cannot be written, or the index is closed.
    """

    commit_docs = 512
    commit_seconds = 1.0
    max_tail = 8_192
    searched_seconds = 5.0
    """Seconds after a search during which `put` analyses documents, so that the next search need not."""
    segments_type = Segments
    ready = True

    def __init__(self, url: str, folder: Path | None) -> None:
        self._temporary = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="memoranda-words-")
            folder = Path(self._temporary.name)
        self._segments = self.segments_type(folder)
        self._lock = threading.Lock()
        """Guards the view, the two tails and the counters; locked for microseconds, and while a tail is scored."""
        self._changed = threading.Condition(self._lock)
        self._writing = threading.Lock()
        """Guards the writer; always taken before `_lock`."""
        self._view = View(self._segments.index, self._segments.searcher)
        self._active = Tail()
        self._frozen = Tail()
        self._frozen_rev = self._rev = self._segments.watermark
        self._since: float | None = None
        self._searched = float("-inf")
        self._careful = False
        self._failure: IndexUnavailable | None = None
        self._failures = 0
        """Failed commits since the last good one, but for those that a full disk or the like explains."""
        self._closed = False
        self._highest = self._view.highest_seq()
        self._top: dict[str, int] = {}
        self._committer = threading.Thread(target=self._commit_when_due, name="memoranda-words", daemon=True)
        self._committer.start()

    @property
    def watermark(self) -> int:
        return self._segments.watermark

    @property
    def stuck(self) -> bool:
        return self._failures >= STUCK

    def put(self, tenant: str, docs: Sequence[WordDoc]) -> None:
        for start in range(0, len(docs), PUT_CHUNK):
            chunk = [
                (doc, plain(doc.attributes), self._read_now(doc.text))
                for doc in docs[start : start + PUT_CHUNK]
            ]
            with self._lock:
                self._await_space()
                for doc, attributes, words in chunk:
                    fresh = self._is_fresh(tenant, doc.seq)
                    self._active.put(TailDoc(tenant, doc.seq, doc.text, attributes, fresh), words)
                self._note_change()

    def _read_now(self, text: str) -> list[str] | None:
        """Return the terms of a text while searches are frequent, else None."""
        return index_terms(text) if time.monotonic() < self._searched + self.searched_seconds else None

    def _is_fresh(self, tenant: str, seq: int) -> bool:
        top = self._top.get(tenant, self._highest)
        if seq > top:
            self._top[tenant] = seq
            return True
        return self._active.is_fresh((tenant, seq))

    def remove(self, tenant: str, seqs: Sequence[int]) -> None:
        with self._lock:
            self._check_open()
            for seq in seqs:
                self._active.remove((tenant, seq))
            self._note_change()

    def _await_space(self) -> None:
        self._check_open()
        while len(self._active) >= self.max_tail:
            if self._failure is not None:
                raise IndexUnavailable("The word index cannot commit; it takes no more") from self._failure
            self._changed.wait(1.0)
            self._check_open()

    def _note_change(self) -> None:
        if self._since is None:
            self._since = time.monotonic()
            self._changed.notify_all()
        elif len(self._active) >= self.commit_docs:
            self._changed.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise IndexUnavailable("The word index is closed")

    def search(self, tenant: str, query: str, limit: int, where: Filter = EVERYTHING) -> WordMatches:
        self._searched = time.monotonic()
        with self._lock:
            self._check_open()
            view, hidden = self._view, self._hidden(tenant)
            with available("looking terms up"):
                words = search_terms(query, self._languages(view, tenant, hidden))
                if limit <= 0 or not words:
                    return NO_WORDS
                boosts, hits = self._search_tails(view, tenant, words, where, hidden)
        if boosts:
            with available("searching"):
                hits += view.search(tenant, boosts, limit, where, hidden)
        return _ranked(hits, limit)

    def _languages(self, view: View, tenant: str, hidden: Collection[int]) -> frozenset[str]:
        """Return the languages of the tenant's texts beside English."""
        counts = view.census.frequencies(tenant, MARKERS)
        waiting = self._waiting(tenant)
        for marker in MARKERS if waiting else ():
            here = self._active.holding(tenant, marker, ()) + self._frozen.holding(tenant, marker, ())
            counts[marker] = counts.get(marker, 0) + here
        return spoken(counts, waiting + view.census.count(tenant, hidden)) if counts else frozenset()

    def _search_tails(
        self, view: View, tenant: str, words: Sequence[str], where: Filter, hidden: Collection[int]
    ) -> tuple[dict[str, float], list[tuple[float, int]]]:
        """Boosts for the committed search, and (score, seq) from both tails.

        The weight of every term is its idf in the tenant's own live documents, committed or not; the boosts convert
        tantivy's idf, which counts deleted documents too, into it.
        """
        waiting = self._waiting(tenant)
        own = view.census.count(tenant, hidden) + waiting
        documents, average = self._collection(view)
        if own == documents and not waiting:  # one tenant only: tantivy's idf is the tenant's
            return dict.fromkeys(words, 1.0), []
        written = view.census.frequencies(tenant, words)
        counts = view.census.holding(tenant, written, hidden)
        if waiting:
            gone = self._overridden(tenant)
            for word in words:
                counts[word] = counts.get(word, 0) + self._active.holding(tenant, word, ())
                counts[word] += self._frozen.holding(tenant, word, gone)
        weights = {word: idf(own, count) for word, count in counts.items()}
        boosts = {word: weights[word] / idf(documents, count) for word, count in written.items()}
        if not waiting:
            return boosts, []
        hits = self._active.search(tenant, weights, average, where, ())
        return boosts, hits + self._frozen.search(tenant, weights, average, where, gone)

    def _hidden(self, tenant: str) -> set[int]:
        """Return the seqs of the tenant whose committed document, if any, is replaced or removed."""
        return {*self._frozen.hidden(tenant), *self._active.hidden(tenant)}

    def _waiting(self, tenant: str) -> int:
        """Return the number of live documents of the tenant that are not committed."""
        live = self._frozen.live(tenant)
        if live:
            live -= len(set(self._frozen.seqs(tenant)) & self._overridden(tenant))
        return live + self._active.live(tenant)

    def _overridden(self, tenant: str) -> set[int]:
        return {*self._active.hidden(tenant), *self._active.seqs(tenant)}

    def _collection(self, view: View) -> tuple[int, float]:
        """Committed documents of all tenants, and the mean length that tail documents are scored with."""
        documents, average = view.collection()
        frozen, active = self._frozen.lengths(), self._active.lengths()
        waiting = frozen[0] + active[0]
        if waiting and (documents < waiting or not average):
            average = (frozen[1] + active[1] + documents * average) / (waiting + documents)
        return documents, max(average, 1.0)

    def count(self, tenant: str) -> int:
        with self._lock:
            self._check_open()
            with available("counting"):
                return self._waiting(tenant) + self._view.census.count(tenant, self._hidden(tenant))

    def flush(self, rev: int) -> None:
        with self._lock:
            self._check_open()
            if self.stuck:
                raise IndexUnavailable("The word index cannot commit; it is built anew") from self._failure
            if rev > self._rev:
                self._rev = rev
                self._note_change()

    def _commit_when_due(self) -> None:
        while True:
            with self._lock:
                while not self._closed and (wait := self._seconds_until_due()) != 0:
                    self._changed.wait(wait)
                if self._closed:
                    return
            try:
                with self._writing:
                    self._commit()
            except IndexUnavailable as exc:
                logger.warning("%s; the documents stay searchable and are tried again", exc)
                with self._lock:
                    self._changed.wait_for(lambda: self._closed, self.commit_seconds)

    def _seconds_until_due(self) -> float | None:
        if self._since is None:
            return None
        if len(self._active) >= self.commit_docs or len(self._frozen):
            return 0
        return max(0, self._since + self.commit_seconds - time.monotonic())

    def _commit(self) -> None:
        """Make everything waiting durable. The caller has locked `_writing`.

        Between taking the tail and showing the new snapshot, the tail is `_frozen` and still searched; both
        switches happen under `_lock`, so every document is in one place at any moment.
        """
        if not len(self._frozen):
            self._freeze()
        try:
            if len(self._frozen):
                self._segments.apply(self._frozen.changes(), self._careful)
                self._segments.commit()
            self._show_committed()
            if self._frozen_rev > self._segments.watermark:
                self._segments.checkpoint(self._frozen_rev)
        except IndexUnavailable as exc:
            with self._lock:
                self._failure, self._careful = exc, True
                self._failures += not of_the_system(exc)
                self._since = self._since or time.monotonic()
                self._changed.notify_all()
            self._segments.revive()
            raise

    def _freeze(self) -> None:
        with self._lock:
            self._frozen, self._active = self._active, Tail()
            self._frozen_rev, self._since = self._rev, None
            self._changed.notify_all()

    def _show_committed(self) -> None:
        view = View(self._segments.index, self._segments.searcher)
        with self._lock:
            self._view, self._frozen = view, Tail()
            self._failure, self._careful, self._failures = None, False, 0
            self._changed.notify_all()

    def _commit_all(self) -> None:
        """Commit until nothing waits: a retried batch and the changes after it. The caller has locked `_writing`."""
        retried = len(self._frozen) > 0
        self._commit()
        if retried:
            self._commit()

    def compact(self) -> None:
        with self._writing:
            with self._lock:
                self._check_open()
            self._commit_all()
            self._segments.purge()
            self._show_committed()
            deadline = time.monotonic() + 10.0
            while self._segments.leftovers():
                if time.monotonic() > deadline:
                    raise IndexUnavailable(
                        "A search that still runs keeps removed words on disk; compact again"
                    )
                time.sleep(0.02)

    def clear(self) -> None:
        with self._writing, self._lock:
            self._check_open()
            self._segments.clear()
            self._view = View(self._segments.index, self._segments.searcher)
            self._active, self._frozen = Tail(), Tail()
            self._rev = self._frozen_rev = 0
            self._since, self._highest, self._top = None, -1, {}
            self._failure, self._careful, self._failures = None, False, 0
            self._changed.notify_all()

    def health(self) -> dict[str, object]:
        with self._lock:
            self._check_open()
            searcher = self._view.searcher
            waiting = len(self._frozen) + len(self._active)
            failure = self._failure
        return {
            "backend": "tantivy",
            "documents": searcher.num_docs,
            "uncommitted": waiting,
            "segments": searcher.num_segments,
            "bytes": bytes_in(self._segments.folder),
            "watermark": self.watermark,
            "failure": str(failure) if failure else None,
        }

    def close(self) -> None:
        with self._writing:
            with self._lock:
                if self._closed:
                    return
                self._closed = True
                self._changed.notify_all()
            try:
                self._commit_all()
            finally:
                self._segments.close()
                if self._temporary is not None:
                    self._temporary.cleanup()


def _ranked(hits: list[tuple[float, int]], limit: int) -> WordMatches:
    if not hits:
        return NO_WORDS
    scores, seqs = zip(*hits, strict=True)
    by_score, by_seq = rounded(np.array(scores, np.float32)), np.array(seqs, np.int64)
    order = np.lexsort((by_seq, -by_score))[:limit]
    return WordMatches(by_seq[order], by_score[order])
