"""Bytes as files of a folder: `<tenant>/<last two letters of the id>/<id>`."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from memoranda.errors import Conflict, NotFound, StorageError
from memoranda.storage.blobs.base import Blobs, BlobWriter
from memoranda.storage.blobs.disk import (
    PART,
    SETTING,
    checked,
    file_errors,
    folder_names,
    listed,
    make_folder,
    tenant_folders,
)
from memoranda.storage.data_lock import MARK
from memoranda.storage.durable import sync_folder
from memoranda.storage.sql.base import Database

QUARANTINE = ".quarantine"
"""The folder of files without a row."""


class FileWriter(BlobWriter):
    """Writes `<id>.part`, and renames it when it is complete and synced."""

    def __init__(self, path: Path) -> None:
        """Raises:
        Conflict: the id has bytes, or another writer has begun it.
        StorageError: the file cannot be made.
        """
        self.size = 0
        self._path = path
        self._part = path.with_name(path.name + PART)
        self._lock = threading.Lock()
        self._state = "open"
        try:
            with file_errors(path.parent, "writing into"):
                make_folder(path.parent)
                self._file = open(self._part, "xb", buffering=0, opener=_private)  # noqa: SIM115 - stays open
        except StorageError as exc:
            if isinstance(exc.__cause__, FileExistsError):
                raise Conflict(f"{path.name} is being written already") from exc
            raise
        if path.exists():
            self.abort()
            raise Conflict(f"{path.name} has bytes already; a new file takes a new id")

    def write(self, piece: bytes) -> None:
        """Add a piece."""
        with self._lock, self._undone_by_errors("writing into"):
            self._check_open()
            rest = memoryview(piece)
            while rest:
                rest = rest[self._file.write(rest) :]
            self.size += len(piece)

    def commit(self) -> None:
        """Make the bytes durable under their id."""
        with self._lock:
            if self._state == "committed":
                return
            with self._undone_by_errors("keeping a file in"):
                self._check_open()
                os.fsync(self._file.fileno())
                self._file.close()
                os.rename(self._part, self._path)
                self._state = "committed"
                sync_folder(self._path.parent)

    def abort(self) -> None:
        """Remove everything written, after a running write has ended."""
        with self._lock:
            if self._state == "open":
                self._undo()

    def _check_open(self) -> None:
        if self._state != "open":
            raise StorageError(f"the bytes of {self._path.name} were taken back; send them again")

    @contextmanager
    def _undone_by_errors(self, doing: str) -> Iterator[None]:
        try:
            with file_errors(self._path.parent, doing):
                yield
        except NotFound as exc:
            self._undo()
            raise StorageError(f"the bytes of {self._path.name} went away while they were written") from exc
        except StorageError:
            self._undo()
            raise

    def _undo(self) -> None:
        path = self._path if self._state == "committed" else self._part
        self._state = "aborted"
        with suppress(OSError):  # the descriptor is closed all the same
            self._file.close()
        with file_errors(path.parent, "removing from"), suppress(FileNotFoundError):
            path.unlink()


class FolderBlobs(Blobs):
    """Bytes in files that only this user can read. `folder:` is in the data folder; a named folder may be shared."""

    def __init__(self, url: str, folder: Path | None, database: Database | None) -> None:
        """Create the folder if needed.

        Raises:
            StorageError: it cannot be made or written.
        """
        named = url.partition(":")[2]
        self.shared = bool(named)
        self._temporary: Path | None = None
        if not named and folder is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="memoranda-files-"))
        self.root = Path(named).expanduser() if named else self._temporary or (folder or Path()) / "files"
        with file_errors(self.root, "keeping files in"):
            make_folder(self.root)
        if not os.access(self.root, os.W_OK | os.X_OK):
            raise StorageError(
                f"keeping files in {self.root} failed: it may not be written; change its owner or mode"
            )

    def _path(self, tenant: str, id: str) -> Path:
        whole = checked(id.removesuffix(PART))
        return self.root.joinpath(*folder_names(tenant), whole[-2:], id)

    def writer(self, tenant: str, id: str) -> BlobWriter:
        """Return a writer for the bytes of a new id."""
        return FileWriter(self._path(tenant, checked(id)))

    def read(self, tenant: str, id: str, piece: int = 1 << 18) -> Iterator[bytes]:
        """Return the bytes in order, even if they are deleted meanwhile."""
        pieces = _pieces(self._path(tenant, checked(id)), piece)
        next(pieces)  # opens the file
        return pieces

    @contextmanager
    def local(self, tenant: str, id: str) -> Iterator[Path]:
        """Give the file itself. After a deletion it can no longer be opened."""
        path = self._path(tenant, checked(id))
        if not path.is_file():
            raise NotFound(f"there are no bytes of {id}")
        yield path

    def delete(self, tenant: str, id: str) -> bool:
        """Delete the bytes. Return True if there were any."""
        path = self._path(tenant, id)
        try:
            with file_errors(path.parent, "removing from"):
                path.unlink()
        except NotFound:
            return False
        return True

    def stored(self, older_than: float) -> Iterator[tuple[str, str]]:
        """Yield tenant and id of all bytes last modified more than `older_than` seconds ago."""
        until = time.time() - older_than
        with file_errors(self.root, "listing"):
            for tenant, folder in tenant_folders(self.root):
                for path in (path for below in listed(folder) for path in listed(below)):
                    with suppress(FileNotFoundError):
                        if path == _own(folder, path.name) and path.stat().st_mtime <= until:
                            yield tenant, path.name

    def claim(self, database: str, *, empty: bool, keep: bool) -> None:
        """Compare the mark of the folder with the id of the database; a folder without one is marked."""
        if self._temporary is not None:
            return
        mark = self.root / MARK
        with file_errors(self.root, "looking at"):
            owner = mark.read_text("utf-8").strip() if mark.is_file() else ""
            files = owner != database and any(
                path.is_file() and path.name != MARK for path in self.root.rglob("*")
            )
            if not owner and empty and files:
                raise StorageError(
                    f"{self.root} has files of uploads, and the database is empty: bring back the database that they"
                    " belong to, or move the files away to begin anew"
                )
            if not owner and keep:
                owner = _mark(mark, database)
            if owner not in ("", database) and not self.shared and not files:
                mark.unlink()
                owner = _mark(mark, database)  # the data folder's own, which this process has locked
        if owner not in ("", database):
            raise StorageError(
                f"{self.root} has the files of another database (its id is in {mark.name}, this one is {database}):"
                f" name another folder in `{SETTING}`, or bring back the database that they belong to"
            )

    def discard(self, tenant: str, id: str) -> bool:
        """Move the bytes to the quarantine, `.quarantine` in the folder."""
        path = self._path(tenant, id)
        place = self.root.joinpath(QUARANTINE, *folder_names(tenant), id)
        try:
            with file_errors(path.parent, "moving a file out of"):
                make_folder(place.parent)
                os.replace(path, place)
                os.utime(place)
        except NotFound:
            return False
        return True

    def drop_discarded(self, older_than: float, tenant: str | None = None) -> int:
        """Delete files of the quarantine."""
        until = time.time() - older_than
        dropped = 0
        with file_errors(self.root, "removing from"):
            for owner, folder in tenant_folders(self.root / QUARANTINE):
                for path in listed(folder) if tenant in (None, owner) else ():
                    with suppress(FileNotFoundError):
                        if path.stat().st_mtime <= until:
                            path.unlink()
                            dropped += 1
        return dropped

    def health(self) -> dict[str, object]:
        """Return the folder, and the free bytes of its disk."""
        with file_errors(self.root, "looking at"):
            free = shutil.disk_usage(self.root).free
        return {"backend": "folder", "path": str(self.root), "bytes_free": free}

    def close(self) -> None:
        """Remove a temporary folder. Idempotent."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


def _mark(path: Path, database: str) -> str:
    """Write the id of a database into a mark that is empty or missing; return the id that the mark has then."""
    with open(path, "a+", encoding="utf-8", opener=_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # if two databases open at once, the first gets the folder
        file.seek(0)
        owner = file.read().strip()
        if owner:
            return owner
        file.write(database)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
    return database


def _own(folder: Path, name: str) -> Path:
    """Return the path of a file of this name that this class wrote."""
    return folder / name.removesuffix(PART)[-2:] / name


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _pieces(path: Path, piece: int) -> Iterator[bytes]:
    """Yield an empty piece once the file is open, then its bytes."""
    try:
        file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed below
    except FileNotFoundError as exc:
        raise NotFound(f"there are no bytes of {path.name}") from exc
    except OSError as exc:
        raise StorageError(f"reading {path} failed: {exc.strerror}") from exc
    with file:
        yield b""
        while True:
            with file_errors(path, "reading"):
                data = file.read(max(1, piece))
            if not data:
                return
            yield data
