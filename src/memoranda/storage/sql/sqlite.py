"""Rows in one SQLite file: one thread writes and commits in groups, readers read beside it."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from pysqlite3 import dbapi2 as sqlite

from memoranda.errors import ConfigError, StorageError
from memoranda.storage.data_lock import DATABASE
from memoranda.storage.sql.base import Connection, Database, Options, Params, Row
from memoranda.storage.sql.group import GroupWriter, Task, Transaction
from memoranda.storage.sql.statements import migrations, render, statements

T = TypeVar("T")
LOG_PAGES = 8192
"""Pages of log (64 MB) before it is copied into the file: a bulk load rewrites the same index pages many times."""
FREED_PAGES = 500
"""Pages that one step of `compact` frees."""
INCREMENTAL = 2
"""What `PRAGMA auto_vacuum` says of a file whose free pages can be given back in steps."""
PAGE_BYTES = 8192
"""Two and more 384-dimensional blobs share a page of this size; with 4 096 bytes a quarter is lost."""


NULLABLE = {
    "memories": frozenset(
        (
            "user_id",
            "agent_id",
            "channel_id",
            "session_id",
            "role",
            "source",
            "last_accessed_at",
            "valid_from",
            "invalid_at",
            "superseded_by",
            "archived_at",
            "header",
        )
    )
}


class SqliteConnection:
    """Statements by name on one SQLite connection, see `base.Connection`."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self._sql = statements("sqlite")

    def all(self, name: str, params: Params = ()) -> list[Row]:
        """Every row of the named query."""
        return self._rows(self._sql[name], params)

    def one(self, name: str, params: Params = ()) -> Row | None:
        """The first row of the named query, or None."""
        row: Row | None = self.raw.execute(self._sql[name], params).fetchone()
        return row

    def run(self, name: str, params: Params = ()) -> int:
        """Executes the named statement; rows changed."""
        return int(self.raw.execute(self._sql[name], params).rowcount)

    def many(self, name: str, rows: Iterable[Params]) -> None:
        """Executes the named statement once per row."""
        self.raw.executemany(self._sql[name], rows)

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Params]) -> None:
        """Inserts rows in bulk. An empty string stands for NULL in columns that may be NULL: binding None takes the
        driver's slow path, 11 of them cost 10 us a row."""
        self.raw.executemany(
            _insert(table, tuple(columns)), _without_none(rows) if table in NULLABLE else rows
        )

    def select(self, sql: str, params: Params = ()) -> list[Row]:
        """Rows of a composed SELECT."""
        return self._rows(render(sql, "sqlite") if "{" in sql else sql, params)

    def _rows(self, sql: str, params: Params) -> list[Row]:
        """Rows of a SELECT; bytes that are no UTF-8, as a damaged disk has them, become U+FFFD."""
        try:
            rows: list[Row] = self.raw.execute(sql, params).fetchall()
        except sqlite.OperationalError as exc:
            if "decode" not in str(exc):
                raise
            self.raw.text_factory = _replacing
            try:
                rows = self.raw.execute(sql, params).fetchall()
            finally:
                self.raw.text_factory = str
        return rows


def _replacing(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


@cache
def _insert(table: str, columns: tuple[str, ...]) -> str:
    nullable = NULLABLE.get(table, frozenset())
    values = ", ".join("NULLIF(?, '')" if name in nullable else "?" for name in columns)
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})"


def _without_none(rows: Iterable[Params]) -> Iterator[Params]:
    return (["" if value is None else value for value in row] for row in rows)


class SqliteTransaction(Transaction):
    """`BEGIN IMMEDIATE` to `COMMIT` on the writing connection."""

    def __init__(self, connection: SqliteConnection, path: Path) -> None:
        self._connection = connection
        self._raw = connection.raw
        self._path = path
        self._only = False

    def begin(self) -> Connection:
        self._raw.execute("BEGIN IMMEDIATE")
        return self._connection

    def commit(self) -> None:
        self._raw.execute("COMMIT")

    def rollback(self) -> None:
        if self._raw.in_transaction:
            self._raw.execute("ROLLBACK")

    def enter(self, tenant: str | None, only: bool) -> None:
        self._only = only
        if not only:
            self._raw.execute("SAVEPOINT work")

    def leave(self) -> None:
        if not self._only:
            self._raw.execute("RELEASE work")

    def undo(self) -> bool:
        if not self._raw.in_transaction:
            return False
        if self._only:
            self._raw.execute("ROLLBACK")
            self._raw.execute("BEGIN")
        else:
            self._raw.execute("ROLLBACK TO work")
            self._raw.execute("RELEASE work")
        return True

    def error(self, exc: BaseException) -> BaseException:
        if not isinstance(exc, sqlite.Error):
            return exc
        error = StorageError(f"writing {self._path} failed, nothing was stored: {exc}")
        error.__cause__ = exc
        return error


class SqliteDatabase(Database):
    """`folder/memoranda.db`; without a folder, a temporary file that is deleted at close."""

    erased = "erased from rows, indexes, log and free pages; exports handed out before are out of reach"

    def __init__(self, folder: Path | None) -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="memoranda-")) if folder is None else None
        self.path = (folder or self._temporary or Path()) / DATABASE
        self._durable = folder is not None
        self._local = threading.local()
        self._readers: list[Any] = []
        self._lock = threading.Lock()
        self._idle = threading.Condition(self._lock)
        self._reading = 0
        self._closed = False
        self._writer = self._connect()
        try:
            _migrate(self._writer)
        except BaseException:
            self._writer.raw.close()
            raise
        self._group = GroupWriter(SqliteTransaction(self._writer, self.path), str(self.path))
        self.holds = self._group.holds
        self.called = self._group.called

    def _connect(self) -> SqliteConnection:
        try:
            raw = sqlite.connect(str(self.path), isolation_level=None, check_same_thread=False, timeout=30.0)
            raw.execute(f"PRAGMA page_size={PAGE_BYTES}")
            (pages,) = raw.execute("PRAGMA page_count").fetchone()
            if not pages:  # on a file with pages it would wait for the writer
                raw.execute("PRAGMA auto_vacuum=INCREMENTAL")
            raw.execute("PRAGMA journal_mode=WAL")
            raw.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'OFF'}")
            raw.execute("PRAGMA foreign_keys=ON")
            raw.execute("PRAGMA secure_delete=ON")
            raw.execute("PRAGMA cache_size=-16384")
            raw.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
        except sqlite.Error as exc:
            raise StorageError(f"{self.path} cannot be opened for writing: {exc}") from exc
        return SqliteConnection(raw)

    def read(self, work: Callable[[Connection], T], tenant: str | None = None, *, late: bool = False) -> T:
        """Runs `work` on the calling thread against one consistent snapshot."""
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.path} is closed")
            self._reading += 1
        try:
            connection = self._reader()
            connection.raw.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.raw.execute("COMMIT")
        except sqlite.Error as exc:
            raise StorageError(f"reading {self.path} failed: {exc}") from exc
        finally:
            with self._lock:
                self._reading -= 1
                if self._closed and not self._reading:
                    self._idle.notify_all()

    def _reader(self) -> SqliteConnection:
        connection: SqliteConnection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            connection.raw.execute("PRAGMA query_only=ON")
            self._local.connection = connection
            with self._lock:
                self._readers.append(connection.raw)
        return connection

    def write(
        self,
        work: Callable[[Connection], T],
        then: Callable[[T], None] | None = None,
        tenant: str | None = None,
    ) -> Future[T]:
        """Queues `work` for the writing thread; the future is done when it is durable."""
        return self._group.queue(Task(work, then, tenant))

    def erase(self) -> Future[None]:
        """Deleted text leaves the pages as it is deleted (secure_delete); this empties the log as well."""

        def truncate_log(_: object) -> None:
            busy, _, _ = self._writer.raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise StorageError("the write-ahead log could not be emptied: a reader still holds it")

        return self._group.queue(Task(truncate_log, alone=True))

    def compact(self) -> Future[None]:
        """Gives free pages back, some at a time so that other writes go on between, then empties the log. A file of an
        earlier version is rebuilt once, as a whole (VACUUM): its pages cannot be given back otherwise."""
        done: Future[None] = Future()

        def follow(step: Future[bool]) -> None:
            try:
                if step.result():
                    self._group.queue(Task(self._give_back, alone=True)).add_done_callback(follow)
                else:
                    done.set_result(None)
            except BaseException as exc:
                done.set_exception(exc)

        self._group.queue(Task(self._give_back, alone=True)).add_done_callback(follow)
        return done

    def _give_back(self, _: object) -> bool:
        """Run one step of `compact`. Return True if free pages remain."""
        raw = self._writer.raw
        if raw.execute("PRAGMA auto_vacuum").fetchone()[0] != INCREMENTAL:
            raw.execute("PRAGMA auto_vacuum=INCREMENTAL")
            raw.execute("VACUUM")
        before = raw.execute("PRAGMA freelist_count").fetchone()[0]
        if before:
            raw.execute(f"PRAGMA incremental_vacuum({FREED_PAGES})").fetchall()
            if 0 < raw.execute("PRAGMA freelist_count").fetchone()[0] < before:
                return True
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return False

    def health(self) -> dict[str, object]:
        """Version, integrity of the header page, bytes of the file and of its log."""
        pages = self.read(lambda c: c.select("PRAGMA page_count"))[0][0]
        log = self.path.with_name(self.path.name + "-wal")
        return {
            "backend": "sqlite",
            "version": sqlite.sqlite_version,
            "bytes": pages * PAGE_BYTES,
            "log_bytes": log.stat().st_size if log.exists() else 0,
        }

    def faults(self) -> list[str]:
        """Return the problems that `quick_check` reports: at most three lines."""
        problems = [str(row[0]) for row in self.read(lambda c: c.select("PRAGMA quick_check(3)"))]
        return [] if problems == ["ok"] else problems

    def close(self) -> None:
        """Finish queued writes and running reads, then close the connections. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._group.close()
        with self._idle:  # a connection closed under a running statement takes the process down
            self._idle.wait_for(lambda: not self._reading)
        for raw in self._readers:
            raw.close()
        self._writer.raw.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _migrate(connection: SqliteConnection) -> None:
    """Migrate the schema to this version, in one transaction."""
    raw = connection.raw
    current = int(raw.execute("PRAGMA user_version").fetchone()[0])
    steps = migrations("sqlite")
    if current > steps[-1][0]:
        raise StorageError(
            f"the folder has schema {current}, this version knows {steps[-1][0]}: upgrade memoranda to open it"
        )
    missing = [f"{script}\nPRAGMA user_version={version};" for version, script in steps if version > current]
    if not missing:
        return
    try:
        raw.executescript("\n".join(["BEGIN IMMEDIATE;", *missing, "COMMIT;"]))
    except sqlite.Error as exc:
        version = int(raw.execute("PRAGMA user_version").fetchone()[0]) + 1
        if raw.in_transaction:
            raw.execute("ROLLBACK")
        raise StorageError(f"migration {version} failed, the folder is as it was: {exc}") from exc


def open_sqlite(url: str, folder: Path | None, options: Options) -> SqliteDatabase:
    """Open the database in a data folder; its URL has no path.

    Raises:
        ConfigError: the URL names a file, or a replica is asked for.
    """
    if url.partition(":")[2].strip("/"):
        raise ConfigError(
            "database.url", "`sqlite:` is a file in the data folder; set `data` to choose the folder"
        )
    if options.replica_url is not None:
        raise ConfigError("database.replica_url", "goes with PostgreSQL only")
    return SqliteDatabase(folder)
