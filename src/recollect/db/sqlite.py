"""Rows in one SQLite file: one thread writes and commits in groups, readers read beside it."""

from __future__ import annotations

import queue
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from pysqlite3 import dbapi2 as sqlite

from recollect.db.base import Connection, Database, Params, Row
from recollect.db.statements import migrations, statements
from recollect.errors import RecollectError, StorageError

T = TypeVar("T")
LOG_PAGES = 8192
"""Pages of log (64 MB) before it is copied into the file: a bulk load rewrites the same index pages many times."""
GROUP = 256
PAGE_BYTES = 8192
"""Two and more 384-dimensional blobs share a page of this size; with 4 096 bytes a quarter is lost."""


class SqliteConnection:
    """Statements by name on one SQLite connection, see `base.Connection`."""

    def __init__(self, raw: Any) -> None:
        self.raw = raw
        self._sql = statements()

    def all(self, name: str, params: Params = ()) -> list[Row]:
        """Every row of the named query."""
        return self.select(self._sql[name], params)

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

    def select(self, sql: str, params: Params = ()) -> list[Row]:
        """Rows of a composed SELECT."""
        rows: list[Row] = self.raw.execute(sql, params).fetchall()
        return rows


class _Task:
    """One queued write and the future its caller waits for."""

    __slots__ = ("alone", "future", "result", "then", "work")

    def __init__(self, work: Callable[[Any], Any], then: Callable[[Any], None] | None, alone: bool) -> None:
        self.work = work
        self.then = then
        self.alone = alone
        self.future: Future[Any] = Future()
        self.result: Any = None


class SqliteDatabase(Database):
    """`folder/recollect.db`; with no folder, a temporary one that goes at close."""

    def __init__(self, folder: Path | None) -> None:
        self._temporary = Path(tempfile.mkdtemp(prefix="recollect-")) if folder is None else None
        self.path = (folder or self._temporary or Path()) / "recollect.db"
        self._durable = folder is not None
        self._local = threading.local()
        self._readers: list[Any] = []
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._idle = threading.Condition(self._lock)
        self._reading = 0
        self._closed = False
        self._writer = self._connect()
        try:
            _migrate(self._writer)
        except BaseException:
            self._writer.raw.close()
            raise
        self._thread = threading.Thread(target=self._run, name="recollect-writer", daemon=True)
        self._thread.start()

    def _connect(self) -> SqliteConnection:
        try:
            raw = sqlite.connect(str(self.path), isolation_level=None, check_same_thread=False, timeout=30.0)
            raw.execute(f"PRAGMA page_size={PAGE_BYTES}")
            raw.execute("PRAGMA journal_mode=WAL")
            raw.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'OFF'}")
            raw.execute("PRAGMA foreign_keys=ON")
            raw.execute("PRAGMA secure_delete=ON")
            raw.execute("PRAGMA cache_size=-16384")
            raw.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}")
        except sqlite.Error as exc:
            raise StorageError(f"{self.path} cannot be opened for writing: {exc}") from exc
        return SqliteConnection(raw)

    def read(self, work: Callable[[Connection], T]) -> T:
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

    def write(self, work: Callable[[Connection], T], then: Callable[[T], None] | None = None) -> Future[T]:
        """Queues `work` for the writing thread; the future is done when it is durable."""
        return self._queue(_Task(work, then, alone=False))

    def _queue(self, task: _Task) -> Future[Any]:
        with self._lock:
            if self._closed:
                raise StorageError(f"{self.path} is closed")
            self._tasks.put(task)
        return task.future

    def erase(self) -> Future[None]:
        """Deleted text leaves the pages as it is deleted (secure_delete); this empties the log as well."""

        def truncate_log(connection: SqliteConnection) -> None:
            busy, _, _ = connection.raw.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            if busy:
                raise StorageError("the write-ahead log could not be emptied: a reader still holds it")

        return self._queue(_Task(truncate_log, None, alone=True))

    def compact(self) -> Future[None]:
        """Rebuilds the file without free pages (VACUUM), then empties the log."""

        def vacuum(connection: SqliteConnection) -> None:
            connection.raw.execute("VACUUM")
            connection.raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")

        return self._queue(_Task(vacuum, None, alone=True))

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

    def close(self) -> None:
        """Finishes queued writes and the reads under way, then lets go. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._tasks.put(None)
        self._thread.join()
        with self._idle:  # a connection closed under a running statement takes the process down
            self._idle.wait_for(lambda: not self._reading)
        for raw in self._readers:
            raw.close()
        self._writer.raw.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    # --- the writing thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            task = self._tasks.get()
            if task is None:
                return
            group, follower, stop = self._gather(task)
            if group:
                self._commit(group)
            if follower is not None:
                self._alone(follower)
            if stop:
                return

    def _gather(self, first: _Task) -> tuple[list[_Task], _Task | None, bool]:
        """The tasks that wait now, up to one that must run outside a transaction."""
        if first.alone:
            return [], first, False
        group = [first]
        while len(group) < GROUP:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                break
            if task is None:
                return group, None, True
            if task.alone:
                return group, task, False
            group.append(task)
        return group, None, False

    def _alone(self, task: _Task) -> None:
        try:
            task.future.set_result(task.work(self._writer))
        except sqlite.Error as exc:
            task.future.set_exception(_storage_error(self.path, exc))
        except BaseException as exc:
            task.future.set_exception(exc)

    def _commit(self, group: list[_Task]) -> None:
        raw = self._writer.raw
        done: list[_Task] = []
        try:
            raw.execute("BEGIN IMMEDIATE")
            for task in group:
                if self._attempt(task, single=len(group) == 1):
                    done.append(task)
            raw.execute("COMMIT")
        except BaseException as exc:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
            error = _storage_error(self.path, exc) if isinstance(exc, sqlite.Error) else exc
            for task in group:
                if not task.future.done():
                    task.future.set_exception(error)
            return
        for task in done:
            self._finish(task)

    def _attempt(self, task: _Task, single: bool) -> bool:
        """Runs one piece of work inside the open transaction, undoing it alone when it raises."""
        raw = self._writer.raw
        if not single:
            raw.execute("SAVEPOINT work")
        try:
            task.result = task.work(self._writer)
        except BaseException as exc:
            if not raw.in_transaction:
                raise
            if single:
                raw.execute("ROLLBACK")
                raw.execute("BEGIN")
            else:
                raw.execute("ROLLBACK TO work")
                raw.execute("RELEASE work")
            error = _storage_error(self.path, exc) if isinstance(exc, sqlite.Error) else exc
            task.future.set_exception(error)
            return False
        if not single:
            raw.execute("RELEASE work")
        return True

    def _finish(self, task: _Task) -> None:
        try:
            if task.then is not None:
                task.then(task.result)
        except BaseException as exc:
            task.future.set_exception(exc)
            return
        task.future.set_result(task.result)


def _storage_error(path: Path, exc: BaseException) -> RecollectError:
    return StorageError(f"writing {path} failed, nothing was stored: {exc}")


def _migrate(connection: SqliteConnection) -> None:
    """Brings the schema to this version, each step in a transaction of its own."""
    raw = connection.raw
    held = int(raw.execute("PRAGMA user_version").fetchone()[0])
    steps = migrations("sqlite")
    if held > steps[-1][0]:
        raise StorageError(
            f"the folder has schema {held}, this version knows {steps[-1][0]}: upgrade recollect to open it"
        )
    for version, script in steps:
        if version <= held:
            continue
        try:
            raw.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version={version};\nCOMMIT;")
        except sqlite.Error as exc:
            if raw.in_transaction:
                raw.execute("ROLLBACK")
            raise StorageError(f"migration {version} failed, the folder is as it was: {exc}") from exc
