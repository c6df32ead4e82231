"""Keyword search in SQLite's FTS5: needs no package but SQLite, scores every matching row."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from pysqlite3 import dbapi2 as sqlite

from memoranda.errors import IndexUnavailable
from memoranda.filters import EVERYTHING, AllOf, Compare, Filter, matches
from memoranda.indexes.keyword.base import NO_WORDS, WordDoc, WordMatches, Words
from memoranda.storage.attributes import plain
from memoranda.text.analysis import MARKER, STAMP, index_terms, search_terms, spoken
from memoranda.text.terms import encodable

logger = logging.getLogger(__name__)

FORMAT = f"fts5 3, {STAMP}"
SCHEMA = """
CREATE TABLE about (stamp TEXT NOT NULL, rev INTEGER NOT NULL);
CREATE TABLE docs (
    id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, seq INTEGER NOT NULL, attributes TEXT NOT NULL,
    UNIQUE (tenant, seq));
CREATE VIRTUAL TABLE words USING fts5 (text, tokenize = "ascii tokenchars '+#._:'");
CREATE VIRTUAL TABLE counts USING fts5vocab (words, row);
INSERT INTO words (words, rank) VALUES ('secure-delete', 1);
"""
SEARCH = """
SELECT docs.seq, -bm25(words) AS score FROM words JOIN docs ON docs.id = words.rowid
WHERE words MATCH ? AND docs.tenant = ? {conditions} ORDER BY score DESC, docs.seq LIMIT ?
"""


class Fts5Words(Words):
    """BM25 over an FTS5 table in `folder`/words.sqlite (None: in memory), which has the terms of each text.

    Searches see changes at once; they are durable after `flush`, and a crash reverts to the last flushed revision.
    A term in more than half of the texts weighs next to nothing, as in FTS5. One call at a time.

    FTS5 counts over the whole table: document frequencies and lengths are those of all tenants. A search never returns
    texts of another tenant, but they affect scores and order; if that matters, use tantivy.

    Raises:
        IndexUnavailable: the file cannot be read or written, or the index is closed.
    """

    def __init__(self, url: str, folder: Path | None) -> None:
        self._lock = threading.RLock()
        self._path = None if folder is None else folder / "words.sqlite"
        self._closed = False
        self._rev = 0
        with self._available("opening"):
            if folder is not None:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            fault = self._try_open()
            if fault is not None:
                self._start_empty(fault)

    @contextmanager
    def _available(self, doing: str) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise IndexUnavailable("The word index is closed")
            try:
                yield
            except (sqlite.Error, OSError) as exc:
                raise IndexUnavailable(f"The word index failed while {doing}: {exc}") from exc

    @contextmanager
    def _change(self, doing: str) -> Iterator[None]:
        """A savepoint in the open transaction: all changes within are applied, or none."""
        with self._available(doing):
            if not self._db.in_transaction:
                self._db.execute("BEGIN")
            self._db.execute("SAVEPOINT change")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK TO change")
                raise
            finally:
                self._db.execute("RELEASE change")

    def _try_open(self) -> str | None:
        """Open the existing file; return the fault if it cannot be used."""
        if self._path is None or not self._path.exists():
            return ""
        try:
            self._open()
            (sound,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
            stamp, rev = self._db.execute("SELECT stamp, rev FROM about").fetchone()
            self._rev = int(rev)
            self._db.execute("INSERT INTO words (words) VALUES ('integrity-check')")
            fault = None if (sound, stamp) == ("ok", FORMAT) else f"check: {sound}, built as {stamp!r}"
        except (sqlite.DatabaseError, TypeError) as exc:
            if getattr(exc, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise
            fault = str(exc)
        if fault is not None:
            self._db.close()
        return fault

    def _open(self) -> None:
        self._db = sqlite.connect(
            str(self._path or ":memory:"), check_same_thread=False, timeout=1.0, isolation_level=None
        )
        for pragma in (
            "locking_mode=EXCLUSIVE",
            "journal_mode=WAL",
            "synchronous=NORMAL",
            "secure_delete=ON",
        ):
            self._db.execute(f"PRAGMA {pragma}")

    def _start_empty(self, fault: str) -> None:
        if fault:
            logger.warning("word index %s starts empty, to be filled from the rows: %s", self._path, fault)
        if self._path is not None:
            for suffix in ("", "-wal", "-shm", "-journal"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        self._open()
        self._db.executescript(SCHEMA)
        self._db.execute("INSERT INTO about VALUES (?, 0)", (FORMAT,))
        self._db.commit()
        self._rev = 0

    @property
    def watermark(self) -> int:
        return self._rev

    def put(self, tenant: str, docs: Sequence[WordDoc]) -> None:
        owner = encodable(tenant)
        latest = {doc.seq: doc for doc in docs}
        with self._change("adding documents"):
            self._delete(owner, latest)
            for doc in latest.values():
                row = (owner, doc.seq, json.dumps(plain(doc.attributes)))
                inserted = self._db.execute(
                    "INSERT INTO docs (tenant, seq, attributes) VALUES (?, ?, ?)", row
                )
                text = " ".join(index_terms(doc.text))
                self._db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (inserted.lastrowid, text))

    def remove(self, tenant: str, seqs: Sequence[int]) -> None:
        with self._change("removing documents"):
            self._delete(encodable(tenant), seqs)

    def _delete(self, owner: str, seqs: Any) -> None:
        for seq in seqs:
            gone = self._db.execute(
                "DELETE FROM docs WHERE tenant = ? AND seq = ? RETURNING id", (owner, seq)
            ).fetchall()
            self._db.executemany("DELETE FROM words WHERE rowid = ?", gone)

    def search(self, tenant: str, query: str, limit: int, where: Filter = EVERYTHING) -> WordMatches:
        with self._available("searching"):
            words = search_terms(query, self._languages())
            asked = " OR ".join(f'"{word}"' for word in words)  # quoted, none of them is syntax
            if not asked or limit <= 0:
                return NO_WORDS
            conditions, values = self._conditions(where)
            rows = self._db.execute(
                SEARCH.format(conditions=conditions), (asked, encodable(tenant), *values, limit)
            ).fetchall()
        if not rows:
            return NO_WORDS
        seqs, scores = zip(*rows, strict=True)
        return WordMatches(np.array(seqs, np.int64), np.array(scores, np.float32))

    def _languages(self) -> frozenset[str]:
        """Return the languages of all texts beside English."""
        sql = "SELECT term, doc FROM counts WHERE term > ? AND term < ?"
        counts = dict(self._db.execute(sql, (MARKER, f"{MARKER}~")))
        if not counts:
            return frozenset()
        (texts,) = self._db.execute("SELECT count(*) FROM docs").fetchone()
        return spoken(counts, int(texts))

    def _conditions(self, where: Filter) -> tuple[str, list[str]]:
        """Return the filter as SQL. `matches` decides; a string that must be equal narrows first, since its JSON must
        occur in the row's JSON."""
        if where == EVERYTHING:
            return "", []
        self._db.create_function("passes", 1, lambda row: matches(where, json.loads(row)))
        parts = where.parts if isinstance(where, AllOf) else (where,)
        values = [
            json.dumps(part.value)
            for part in parts
            if isinstance(part, Compare) and part.op == "eq" and isinstance(part.value, str)
        ]
        return "AND instr(docs.attributes, ?) " * len(values) + "AND passes(docs.attributes)", values

    def count(self, tenant: str) -> int:
        with self._available("counting"):
            asked = "SELECT count(*) FROM docs WHERE tenant = ?"
            (number,) = self._db.execute(asked, (encodable(tenant),)).fetchone()
        return int(number)

    def flush(self, rev: int) -> None:
        with self._available("committing"):
            rev = max(rev, self._rev)
            self._db.execute("UPDATE about SET rev = ?", (rev,))
            self._db.commit()
            self._rev = rev

    def compact(self) -> None:
        with self._available("purging"):
            self._db.execute("INSERT INTO words (words) VALUES ('optimize')")
            self._db.commit()
            self._db.execute("VACUUM")
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def clear(self) -> None:
        with self._available("clearing"):
            self._db.close()
            self._start_empty("")

    def health(self) -> dict[str, object]:
        with self._available("counting"):
            (documents,) = self._db.execute("SELECT count(*) FROM docs").fetchone()
            (size,) = self._db.execute(
                "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
            ).fetchone()
        return {"backend": "fts5", "documents": documents, "bytes": size, "watermark": self._rev}

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            with self._available("closing"):
                self._db.commit()
                self._db.close()
            self._closed = True
