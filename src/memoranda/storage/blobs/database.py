"""Bytes as rows of the database: a head row with size and state, and pieces of 1 MiB."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoranda.errors import ConfigError, Conflict, MemorandaError, NotFound, StorageError
from memoranda.storage.blobs.base import Blobs, BlobWriter
from memoranda.storage.blobs.disk import PART, SETTING, checked, file_errors, make_folder
from memoranda.storage.sql.base import Connection, Database

PIECE = 1 << 20
AT_ONCE = 8
"""Pieces that one transaction deletes: other writes wait no longer than for these."""
LISTED = 1_000


class RowWriter(BlobWriter):
    """Writes a piece as soon as it is full, each in its own transaction; the last one completes the head row."""

    def __init__(self, database: Database, tenant: str, id: str) -> None:
        self.size = 0
        self._database = database
        self._tenant = tenant
        self._id = id
        self._lock = threading.Lock()
        self._state = "open"
        self._rest = bytearray()
        self._stored = 0
        self._begun = False

    def write(self, piece: bytes) -> None:
        """Add a piece.

        Raises:
            Conflict: the id has bytes, or another writer has begun it.
        """
        with self._lock:
            self._check_open()
            rest = memoryview(piece)
            while rest:
                taken = rest[: PIECE - len(self._rest)]
                self._rest += taken
                rest = rest[len(taken) :]
                if len(self._rest) == PIECE:
                    self._store("writing")
            self.size += len(piece)

    def commit(self) -> None:
        """Store the rest and make the bytes visible.

        Raises:
            Conflict: the id has bytes, or another writer has begun it.
        """
        with self._lock:
            if self._state == "committed":
                return
            self._check_open()
            self._store("complete")
            self._state = "committed"

    def abort(self) -> None:
        """Remove everything written, after a running write has ended."""
        with self._lock:
            if self._state == "open":
                self._undo()

    def _check_open(self) -> None:
        if self._state != "open":
            raise StorageError(f"the bytes of {self._id} were taken back; send them again")

    def _store(self, state: str) -> None:
        data, key = bytes(self._rest), [self._tenant, self._id]

        def work(c: Connection) -> None:
            now = _now()
            if not self._stored and not c.run("begin_blob", [*key, now]):
                raise Conflict(
                    f"{self._id} has bytes already, or is being written; a new file takes a new id"
                )
            if not c.run("grow_blob", [len(data), state, now, *key]):
                raise StorageError(
                    f"the bytes of {self._id} went away while they were written; send them again"
                )
            if data:
                c.run("add_blob_piece", [*key, self._stored, data])

        self._begun = True
        try:
            self._database.write(work, tenant=self._tenant).result()
        except Conflict:
            self._state = "aborted"  # the existing bytes stay: they are another writer's
            raise
        except MemorandaError:
            with suppress(StorageError):  # the first error is raised; the sweep deletes the rest
                self._undo()
            raise
        self._stored += 1
        self._rest.clear()

    def _undo(self) -> None:
        self._state = "aborted"
        self._rest.clear()
        if self._begun:
            remove(self._database, self._tenant, self._id, ("writing", "complete"))


class DatabaseBlobs(Blobs):
    """Bytes in the rows' database: one database to back up, visible to every process that shares it."""

    def __init__(self, url: str, folder: Path | None, database: Database | None) -> None:
        """`folder` is for files while they are read; files left by a dead process are deleted.

        Raises:
            ConfigError: there is no database, or the URL says more than `database:`.
        """
        if url.partition(":")[2].strip("/"):
            raise ConfigError(
                SETTING, "`database:` is the database of the rows; set database.url to choose it"
            )
        if database is None:
            raise ConfigError(SETTING, "`database:` needs the database of the rows; use `folder:`")
        self.shared = database.shared
        self._database = database
        self._folder = folder
        self._temporary: Path | None = None if folder is None else folder / "reading"
        self._lock = threading.Lock()
        if self._temporary is not None and self._temporary.exists():
            with file_errors(self._temporary, "emptying"):
                shutil.rmtree(self._temporary)

    def writer(self, tenant: str, id: str) -> BlobWriter:
        """Return a writer for the bytes of a new id; the first full piece, or `commit`, checks that the id is new."""
        return RowWriter(self._database, tenant, checked(id))

    def read(self, tenant: str, id: str, piece: int = 1 << 18) -> Iterator[bytes]:
        """Return the bytes in order, one query per row.

        Raises:
            NotFound: there are none of this id; or, between two pieces, they were deleted meanwhile.
        """
        row = self._database.read(lambda c: c.one("blob_bytes", [tenant, checked(id)]), tenant)
        if row is None:
            raise NotFound(f"there are no bytes of {id}")
        return self._pieces(tenant, id, row[0], max(1, piece))

    def _pieces(self, tenant: str, id: str, size: int, piece: int) -> Iterator[bytes]:
        given = number = 0
        while given < size:
            key = [tenant, id, number]
            row = self._database.read(lambda c, key=key: c.one("blob_piece", key), tenant)  # type: ignore[misc]
            if row is None:
                raise NotFound(f"the bytes of {id} were deleted while they were read")
            data = bytes(row[0])
            for start in range(0, len(data), piece):
                yield data[start : start + piece]
            given += len(data)
            number += 1

    @contextmanager
    def local(self, tenant: str, id: str) -> Iterator[Path]:
        """Give the bytes in a temporary file."""
        pieces = self.read(tenant, id, PIECE)
        folder = self._reading()
        with file_errors(folder, "writing into"):
            descriptor, name = tempfile.mkstemp(dir=folder)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                for piece in pieces:
                    with file_errors(folder, "writing into"):
                        rest = memoryview(piece)
                        while rest:
                            rest = rest[file.write(rest) :]
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def _reading(self) -> Path:
        with self._lock:
            if self._temporary is None:
                self._temporary = Path(tempfile.mkdtemp(prefix="memoranda-reading-"))
            with file_errors(self._temporary, "making"):
                make_folder(self._temporary)
            return self._temporary

    def delete(self, tenant: str, id: str) -> bool:
        """Delete the bytes. Return True if there were any. They are invisible at once, and deleted a few at a time."""
        whole = checked(id.removesuffix(PART))
        states = ("writing", "going") if id.endswith(PART) else ("complete", "complete")
        return remove(self._database, tenant, whole, states)

    def stored(self, older_than: float) -> Iterator[tuple[str, str]]:
        """Yield tenant and id of all bytes last modified more than `older_than` seconds ago."""
        until = _now() - int(older_than * 1e6)
        after = ("", "")
        while True:
            given = [*after, until, LISTED]
            rows = self._database.read(lambda c, given=given: c.all("held_blobs", given))  # type: ignore[misc]
            for tenant, id, state in rows:
                yield tenant, id if state == "complete" else id + PART
            if len(rows) < LISTED:
                return
            after = rows[-1][:2]

    def health(self) -> dict[str, object]:
        """Return the backend of the database, and the free bytes if it is in the data folder."""
        facts: dict[str, object] = {"backend": "database", "database": self._database.health()["backend"]}
        if self._folder is not None and not self.shared:
            with file_errors(self._folder, "looking at"):
                facts["bytes_free"] = shutil.disk_usage(self._folder).free
        return facts

    def close(self) -> None:
        """Remove the folder of temporary files. Idempotent."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def remove(database: Database, tenant: str, id: str, states: tuple[str, str]) -> bool:
    """Delete bytes in one of these states. Return True if there were any."""
    key = [tenant, id]

    def begin(c: Connection) -> int | None:
        if not c.run("end_blob", [_now(), *key, *states]):
            return None
        row = c.one("last_blob_piece", key)
        last = -1 if row is None or row[0] is None else int(row[0])
        if last < AT_ONCE:
            end(c)
        return last

    def end(c: Connection) -> None:
        c.run("drop_blob_pieces", [*key, 1 << 40])
        c.run("drop_blob", key)

    last = database.write(begin, tenant=tenant).result()
    if last is None:
        return False
    if last < AT_ONCE:
        return True
    for stop in range(AT_ONCE, last, AT_ONCE):
        params = [*key, stop]
        database.write(lambda c, params=params: c.run("drop_blob_pieces", params), tenant=tenant).result()  # type: ignore[misc]
    database.write(end, tenant=tenant).result()
    return True


def _now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000
