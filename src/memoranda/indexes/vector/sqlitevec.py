"""Vectors in one SQLite file, searched by the sqlite-vec extension."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from pysqlite3 import dbapi2 as sqlite

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.filters import EVERYTHING, Filter
from memoranda.indexes.ranking import best_parts
from memoranda.indexes.vector.base import (
    NO_MATCHES,
    Index,
    IndexLocation,
    Matches,
    Vector,
    VectorBatch,
    Vectors,
)
from memoranda.indexes.vector.floats import batch_vectors, unit, unit_query
from memoranda.indexes.vector.sqlite_search import TENANT, Search, ask, tenant_name, unscored
from memoranda.indexes.vector.sqlite_where import COLUMNS, record

logger = logging.getLogger(__name__)

FORMAT = "sqlitevec 1"
APPLICATION = 0x52435631
"""The application id of the file; no other file is ever overwritten."""
PAGE_BYTES = 8192
LOG_PAGES = 8192
CHUNK_ROWS = 256
"""Vectors that sqlite-vec keeps in one blob, each tenant in its own: 1 024, its default, take 1.5 MB for a tenant's
first vector, and twice the time to skip."""
SYNC_ROWS = 10_000
REBUILD_SHARE = VACUUM_SHARE = 0.25

_TYPES = dict.fromkeys(COLUMNS, "TEXT") | dict.fromkeys(
    ("seq", "occurred_at", "valid_from", "invalid_at", "archived_at"), "INTEGER"
)
SCHEMA = f"""
CREATE TABLE about (stamp TEXT NOT NULL, rev INTEGER NOT NULL, generation INTEGER NOT NULL, dead INTEGER NOT NULL);
CREATE TABLE tenants (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);
CREATE TABLE records (
    id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, part INTEGER NOT NULL, zero INTEGER NOT NULL,
    {", ".join(f"{name} {_TYPES[name]}" for name in COLUMNS)});
CREATE INDEX records_seq ON records (tenant, seq);
CREATE INDEX records_user ON records (tenant, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX records_agent ON records (tenant, agent_id) WHERE agent_id IS NOT NULL;
CREATE INDEX records_channel ON records (tenant, channel_id) WHERE channel_id IS NOT NULL;
CREATE INDEX records_session ON records (tenant, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX records_zero ON records (tenant, seq) WHERE zero = 1;
CREATE INDEX records_original ON records (tenant) WHERE original IS NOT NULL;
"""
_ABSENT = dict.fromkeys(COLUMNS, "NULLIF(?, 0)") | dict.fromkeys(
    ("occurred_at", "valid_from", "invalid_at", "archived_at"), "NULLIF(?, '')"
)
ADD_RECORD = f"""
INSERT INTO records (id, tenant, part, zero, {", ".join(COLUMNS)})
VALUES (?, ?, ?, ?, ?, {", ".join(_ABSENT[name] for name in COLUMNS[1:])})
"""
ADD_VECTORS = """
INSERT INTO vectors{generation} (rowid, tenant, vector)
SELECT id, tenant, substr(?1, (id - ?2) * ?3 + 1, ?3) FROM records WHERE id >= ?2 AND zero = 0
"""


class SqliteVecIndex(Index):
    """Vectors of length 1 in a `vec0` table, one partition per tenant, beside a table of filter attributes.

    `sqlitevec:` is in the index's own folder (without one: in memory), `sqlitevec:/path/file` in that file, which
    belongs to one data folder. Every put is a transaction; a search reads one snapshot on a connection of its thread
    and waits for no writer, except in memory, where calls are serialised. Results are exact.

    Raises:
        ConfigError: the URL has an option, the package sqlite-vec is missing, or the file is not such an index.
        IndexUnavailable: the file cannot be read or written, or the index is closed.
    """

    def __init__(self, url: str, dim: int, place: IndexLocation) -> None:
        named, _, options = url.partition(":")[2].partition("?")
        if options:
            raise ConfigError("index.url", f"unknown option {options}; sqlitevec takes a path and no options")
        self.dim = dim
        self._extension = _extension()
        self._named = bool(named)
        self._path = Path(named) if named else place.folder and place.folder / "vectors.sqlite"
        self._stamp = f"{FORMAT}, {dim} dimensions, {place.space}"
        self._db: Any = None
        self._lock = threading.RLock()
        self._local = threading.local()
        self._idle = threading.Condition()
        self._readers: list[Any] = []
        self._reading = 0
        self._closed = False
        self._rev = self._durable = self._changes = 0
        with _translated("opening"):
            if self._path is not None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fault = self._try_open()
            if fault is not None:
                self._start_empty(fault)

    # --- opening -----------------------------------------------------------------------------------

    def _connect(self, first: str = "") -> Any:
        db = sqlite.connect(
            str(self._path or ":memory:"), check_same_thread=False, timeout=30.0, isolation_level=None
        )
        try:
            db.enable_load_extension(True)
            db.load_extension(self._extension)
            db.enable_load_extension(False)
            for pragma in (
                f"page_size={PAGE_BYTES}",
                *([first] if first else []),
                "journal_mode=WAL",
                "synchronous=NORMAL",
                "secure_delete=ON",
                "cache_size=-16384",
                "mmap_size=1099511627776",
                f"wal_autocheckpoint={LOG_PAGES}",
            ):
                db.execute(f"PRAGMA {pragma}")
        except BaseException:
            db.close()
            raise
        return db

    def _try_open(self) -> str | None:
        """Open the existing file; return the fault if it cannot be used. A named file that is not such an index is
        refused."""
        if self._path is None or not self._path.exists() or not self._path.stat().st_size:
            return ""
        if self._named and not _is_index(self._path):
            raise ConfigError("index.url", f"{self._path} is not a vector index; name another file")
        stamp = ""
        try:
            self._db = self._connect()
            (sound,) = self._db.execute("PRAGMA quick_check(1)").fetchone()
            stamp, rev = self._db.execute("SELECT stamp, rev FROM about").fetchone()
            if (sound, stamp) == ("ok", self._stamp):
                self._checkpoint()  # after a crash, the log may have data that is not durable
                self._rev = self._durable = int(rev)
                return None
            fault = f"check: {sound}, built as {stamp!r}"
        except (sqlite.DatabaseError, TypeError) as exc:
            if getattr(exc, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
                raise
            fault = str(exc)
        if self._db is not None:
            self._db.close()
        if self._named and stamp != self._stamp and stamp.startswith(FORMAT):
            raise ConfigError("index.url", f"{self._path} holds other vectors ({stamp}); name another file")
        return fault

    def _start_empty(self, fault: str) -> None:
        if fault:
            logger.warning("vector index %s starts empty, to be filled from the rows: %s", self._path, fault)
        if self._path is not None:
            for suffix in ("", "-wal", "-shm", "-journal"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
        # The application id is written before there is a log, so that the file alone has it.
        self._db = self._connect(f"application_id={APPLICATION}")
        with self._change("opening"):
            for statement in SCHEMA.split(";")[:-1]:
                self._db.execute(statement)
            self._db.execute("INSERT INTO about VALUES (?, 0, 0, 0)", (self._stamp,))
            self._new_table(0)

    def _new_table(self, generation: int) -> None:
        self._db.execute(
            f"CREATE VIRTUAL TABLE vectors{generation} USING vec0 ("
            f"tenant INTEGER PARTITION KEY, vector FLOAT[{self.dim}] distance_metric=L2, chunk_size={CHUNK_ROWS})"
        )

    # --- writing -----------------------------------------------------------------------------------

    @contextmanager
    def _writing(self, doing: str) -> Iterator[None]:
        with self._lock, _translated(doing):
            if self._closed:
                raise IndexUnavailable("The vector index is closed.")
            yield

    @contextmanager
    def _change(self, doing: str) -> Iterator[None]:
        """One transaction: all changes are applied, or none."""
        with self._writing(doing):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @property
    def watermark(self) -> int:
        return self._durable

    def put(self, tenant: str, batch: VectorBatch) -> None:
        units = self._units(batch)
        if not len(batch):
            return
        seqs, parts, zeros = batch.seqs.tolist(), batch.parts.tolist(), (units.any(axis=1) == 0).tolist()
        rows = [record(seq, attributes) for seq, attributes in zip(seqs, batch.attributes, strict=True)]
        with self._change("adding vectors"):
            generation, owner = self._owner(tenant)
            self._drop(generation, owner, seqs)
            (first,) = self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM records").fetchone()
            self._db.executemany(
                ADD_RECORD,
                [
                    (first + i, owner, part, zero, *row)
                    for i, (part, zero, row) in enumerate(zip(parts, zeros, rows, strict=True))
                ],
            )
            add = ADD_VECTORS.format(generation=generation)
            self._db.execute(add, (units.data, first, 4 * self.dim))
            self._note_rev()
        self._changes += len(batch)

    def _units(self, batch: VectorBatch) -> Vectors:
        return np.ascontiguousarray(unit(batch_vectors(batch, self.dim)))

    def _owner(self, tenant: str) -> tuple[int, int]:
        """Return the table of the vectors, and the tenant's number, which is created if needed."""
        name = tenant_name(tenant)
        row = self._db.execute(TENANT, (name,)).fetchone()
        if row is None:
            self._db.execute("INSERT INTO tenants (name) VALUES (?)", (name,))
            row = self._db.execute(TENANT, (name,)).fetchone()
        return row[0], row[1]

    def _drop(self, generation: int, owner: int, seqs: Sequence[int]) -> int:
        """Delete the vectors of these memories; return their number."""
        (last,) = self._db.execute("SELECT max(seq) FROM records WHERE tenant = ?", (owner,)).fetchone()
        if last is None or min(seqs, default=last + 1) > last:
            return 0
        gone = self._db.execute(
            "DELETE FROM records WHERE tenant = ? AND seq IN (SELECT value FROM json_each(?)) RETURNING id",
            (owner, json.dumps(list(seqs))),
        ).fetchall()
        if gone:
            self._db.executemany(f"DELETE FROM vectors{generation} WHERE rowid = ?", gone)
            self._db.execute("UPDATE about SET dead = dead + ?", (len(gone),))
        return len(gone)

    def _note_rev(self) -> None:
        self._db.execute("UPDATE about SET rev = ? WHERE rev <> ?", (self._rev, self._rev))

    def remove(self, tenant: str, seqs: Sequence[int]) -> int:
        with self._change("removing vectors"):
            row = self._db.execute(TENANT, (tenant_name(tenant),)).fetchone()
            removed = self._drop(row[0], row[1], [int(seq) for seq in seqs]) if row is not None else 0
            self._note_rev()
        self._changes += removed
        return removed

    def flush(self, rev: int) -> None:
        """Record the revision: it is written with the next change, at the latest at `close`, and is durable once the
        log has been synced, every 10 000 vectors."""
        with self._writing("committing"):
            self._rev = max(rev, self._rev)
            if self._changes >= SYNC_ROWS:
                self._save()

    def _save(self) -> None:
        """Write the revision and make it durable, unless a reader blocks the checkpoint."""
        self._note_rev()
        if self._checkpoint("PASSIVE"):
            self._durable, self._changes = self._rev, 0

    def _checkpoint(self, how: str = "TRUNCATE") -> bool:
        """Checkpoint the log. Return True if the whole log is in the file."""
        if self._path is None:
            return True
        busy, logged, done = self._db.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        return not busy and logged == done

    def compact(self) -> None:
        """Empty the log, and shrink the file if a quarter of it is free. Vectors are overwritten when they are
        deleted."""
        with self._writing("compacting"):
            (vectors,) = self._db.execute("SELECT count(*) FROM records WHERE zero = 0").fetchone()
            generation, dead = self._db.execute("SELECT generation, dead FROM about").fetchone()
            if dead > vectors * REBUILD_SHARE:
                self._rebuild(generation)
            self._note_rev()
            (free,) = self._db.execute("PRAGMA freelist_count").fetchone()
            (pages,) = self._db.execute("PRAGMA page_count").fetchone()
            if free > pages * VACUUM_SHARE:
                self._db.execute("VACUUM")
            if not self._checkpoint():
                raise IndexUnavailable(
                    "The log of the vector index could not be emptied: a reader still holds it."
                )
            self._durable, self._changes = self._rev, 0

    def _rebuild(self, generation: int) -> None:
        with self._change("compacting"):
            self._new_table(generation + 1)
            self._db.execute(
                f"INSERT INTO vectors{generation + 1} (rowid, tenant, vector) "
                f"SELECT rowid, tenant, vector FROM vectors{generation}"
            )
            self._db.execute(f"DROP TABLE vectors{generation}")
            self._db.execute("UPDATE about SET generation = generation + 1, dead = 0")
            self._db.execute("DELETE FROM tenants WHERE id NOT IN (SELECT tenant FROM records)")

    def clear(self) -> None:
        with self._change("clearing"):
            (generation,) = self._db.execute("SELECT generation FROM about").fetchone()
            self._db.execute(f"DROP TABLE vectors{generation}")
            self._new_table(generation + 1)
            self._db.execute("DELETE FROM records")
            self._db.execute("DELETE FROM tenants")
            self._db.execute("UPDATE about SET generation = generation + 1, dead = 0, rev = 0")
        self._rev = self._durable = 0
        self.compact()

    # --- reading -----------------------------------------------------------------------------------

    @contextmanager
    def _snapshot(self, doing: str) -> Iterator[Any]:
        """Give a connection that sees one snapshot of the file."""
        if self._path is None:
            with self._writing(doing):
                yield self._db
            return
        with self._idle:
            if self._closed:
                raise IndexUnavailable("The vector index is closed.")
            self._reading += 1
        try:
            with _translated(doing):
                db = self._reader()
                db.execute("BEGIN")
                try:
                    yield db
                finally:
                    if db.in_transaction:
                        db.execute("ROLLBACK")
        finally:
            with self._idle:
                self._reading -= 1
                if self._closed and not self._reading:
                    self._idle.notify_all()

    def _reader(self) -> Any:
        db = getattr(self._local, "db", None)
        if db is None:
            db = self._local.db = self._connect()
            db.execute("PRAGMA query_only=ON")
            with self._idle:
                self._readers.append(db)
        return db

    def search(self, tenant: str, query: Vector, limit: int, where: Filter = EVERYTHING) -> Matches:
        vector = unit_query(query, self.dim)
        with self._snapshot("searching") as db:
            asked = ask(db, tenant, where)
            if asked is None or limit < 1:
                return NO_MATCHES
            if not vector.any():
                return unscored(db, asked, limit)
            results = Search(db, asked, vector, limit).matches()
            if not asked.zeros:
                return results
            zeros = unscored(db, asked, limit, " AND zero = 1")
            return best_parts(
                np.concatenate([results.seqs, zeros.seqs]),
                np.concatenate([results.scores, zeros.scores]),
                np.concatenate([results.parts, zeros.parts]),
                limit,
            )

    def count(self, tenant: str, where: Filter = EVERYTHING) -> int:
        with self._snapshot("counting") as db:
            asked = ask(db, tenant, where)
            if asked is None:
                return 0
            sql, values = asked.select("count(*) AS n")
            (number,) = db.execute(f"SELECT sum(n) FROM ({sql})", values).fetchone()
        return int(number)

    def health(self) -> dict[str, object]:
        with self._snapshot("counting") as db:
            vectors, tenants = db.execute("SELECT count(*), count(DISTINCT tenant) FROM records").fetchone()
            (dead,) = db.execute("SELECT dead FROM about").fetchone()
            (version,) = db.execute("SELECT vec_version()").fetchone()
            (pages,) = db.execute("PRAGMA page_count").fetchone()
        log = self._path and self._path.with_name(self._path.name + "-wal")
        logged = log.stat().st_size if log is not None and log.exists() else 0
        return {
            "backend": "sqlitevec",
            "version": version,
            "tenants": tenants,
            "vectors": vectors,
            "removed_vectors": dead,
            "bytes_in_memory": pages * PAGE_BYTES if self._path is None else 0,
            "bytes_on_disk": pages * PAGE_BYTES + logged if self._path is not None else 0,
            "watermark": self._durable,
        }

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            with self._idle:  # a connection closed under a running statement takes the process down
                self._closed = True
                self._idle.wait_for(lambda: not self._reading)
            with _translated("closing"):
                try:
                    for reader in self._readers:
                        reader.close()
                    self._save()
                finally:
                    self._db.close()


def _extension() -> str:
    """Return the path of the extension's library."""
    try:
        path: str = import_module("sqlite_vec").loadable_path()
    except ImportError as exc:
        raise ConfigError(
            "index.url", "sqlitevec needs the package sqlite-vec: pip install 'memoranda[sqlitevec]'"
        ) from exc
    return path


def _is_index(path: Path) -> bool:
    """Return True if the file has the application id. Only SQLite may open a file that this process may have open;
    `immutable` writes nothing beside it."""
    try:
        with closing(sqlite.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)) as db:
            (mark,) = db.execute("PRAGMA application_id").fetchone()
    except sqlite.DatabaseError:
        return False
    return bool(mark == APPLICATION)


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    """Raise errors of SQLite and of files as IndexUnavailable."""
    try:
        yield
    except (sqlite.Error, OSError) as exc:
        raise IndexUnavailable(f"The vector index failed while {doing}: {exc}. Rows are safe.") from exc
