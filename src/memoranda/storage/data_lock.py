"""One writing process per folder: the folder itself is locked, and a lock file in it, which has the process id and the
URL of its server."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import shutil
import stat
from collections.abc import Container
from contextlib import ExitStack, suppress
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from memoranda.errors import FolderInUse, InvalidInput, StorageError

log = logging.getLogger("memoranda.storage")
DATABASE = "memoranda.db"
LOCK = "memoranda.lock"
INDEXES = ("index-*", "words-*")
PARTS = (f"{DATABASE}*", LOCK, "files", *INDEXES)
"""Names of the files and folders of a data folder."""
HOOKS = "hooks"
"""The folder of what hooks of the command line store beside the memories."""
MARK = ".memoranda"
"""The file in a folder of uploads with the id of the database that they belong to."""
LOGS = ("-wal", "-shm")
"""The suffixes of the two files of SQLite's write-ahead log."""
_own = set[str]()
"""The data folders that this process has locked."""


def data_folder_of(path: Path) -> Path | None:
    """Return the data folder that `path` is or is part of; None for every other path. Files of others in a data folder
    are not part of it."""
    if is_data_folder(path):
        return path
    for part, folder in pairwise((path, *path.parents)):
        if any(fnmatch(part.name, name) for name in PARTS) and is_data_folder(folder):
            return folder
    return None


def is_data_folder(folder: Path) -> bool:
    """Return True for a folder with the lock or the database of a data folder."""
    return any(os.path.isfile(folder / name) for name in (LOCK, DATABASE))


def is_live_database(path: Path) -> bool:
    """Return True for a file with an SQLite log beside it, and for the files of the log.

    Nothing but SQLite may open these files: closing any descriptor of a file drops all locks that the process holds
    on it (https://www.sqlite.org/howtocorrupt.html, section 2.2).
    """
    name = str(path)
    database = name[:-4] if name.endswith(LOGS) else name
    return os.path.isfile(database) and any(os.path.exists(database + log) for log in LOGS)


def refuse_live_database(path: Path, field: str) -> None:
    """Check a path that is about to be read.

    Raises:
        InvalidInput: the path is a live database; `field` is the name that the caller knows the path by.
    """
    if is_live_database(path):
        raise InvalidInput(
            field,
            f"{path} is an SQLite database in use; close the program that uses it, or read an export of it",
        )


def drop_other_caches(folder: Path, keep: Container[str]) -> None:
    """Remove the index caches of other models and engines than those in use, since `forget` could not erase from them.
    Nothing is lost: they are rebuilt from the rows."""
    for path in folder.iterdir():
        if path.is_dir() and path.name.startswith(("index-", "words-")) and path.name not in keep:
            shutil.rmtree(path)


def refuse_lost_database(folder: Path) -> None:
    """Check a data folder before its database is opened.

    Raises:
        StorageError: uploads or indexes exist, and the database does not. A new database would have no row of them.
    """
    if not (folder / DATABASE).exists():
        _refuse_beside(folder, "missing", "files", *INDEXES)


def refuse_emptied_database(folder: Path) -> None:
    """Check a data folder whose database was never used before, before an index is opened.

    Raises:
        StorageError: indexes exist. The database that they belong to was lost or emptied.
    """
    _refuse_beside(folder, "empty", *INDEXES)


def _refuse_beside(folder: Path, state: str, *names: str) -> None:
    left = sorted(
        path.name
        for path in folder.iterdir()
        if any(fnmatch(path.name, name) for name in names)
        and any(below.is_file() and below.name != MARK for below in path.rglob("*"))
    )
    if left:
        raise StorageError(
            f"{folder / DATABASE} is {state} beside {', '.join(left)}: bring it back from where it was moved or backed"
            f" up, or move {', '.join(left)} away to begin anew"
        )


def bytes_in(folder: Path) -> int:
    """Return the bytes of the files in a folder; files that vanish meanwhile are left out."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


def make_private(folder: Path) -> None:
    """Remove the rights of other users on the parts of a data folder, and on the folder if nothing else is in it.

    Links and parts of other owners stay as they are. Files inside a part are protected by its folder and not read.
    """
    with os.scandir(folder) as listing:
        names = [entry.name for entry in listing]
    parts = [name for name in names if any(fnmatch(name, part) for part in PARTS)]
    paths = [folder / name for name in parts]
    if set(names) <= {*parts, HOOKS}:
        paths.insert(0, folder)
    for path in paths:
        with suppress(FileNotFoundError):  # SQLite removes its log
            status = os.lstat(path)
            mode = stat.S_IMODE(status.st_mode)
            if status.st_uid != os.geteuid() or stat.S_ISLNK(status.st_mode) or not mode & 0o077:
                continue
            try:
                os.chmod(path, mode & ~0o077)
            except PermissionError as exc:  # a file system without rights, such as FAT
                log.info("other users may read %s: %s", path, exc.strerror)


class FolderLock:
    """Locks a data folder for this process until `release`; the kernel releases it when the process dies.

    The folder itself is locked: a lock file that is deleted, or replaced, lets no second process in. File systems that
    cannot lock a folder (NFS) have the lock file alone.
    """

    def __init__(self, folder: Path) -> None:
        """Take the lock, and create the folder if needed.

        Raises:
            FolderInUse: another process has it, or this one; the error carries its server's URL when it runs one.
            StorageError: the folder cannot be made or written.
        """
        self.path = folder / LOCK
        with ExitStack() as opened:
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                opened.callback(os.close, descriptor)
                _lock_folder(descriptor)
                self._file: IO[str] | None = opened.enter_context(open(self.path, "a+", encoding="utf-8"))
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise in_use(folder) from exc
            except (FileExistsError, NotADirectoryError) as exc:
                raise StorageError(
                    f"{folder} cannot be used as a data folder: a file is there; name a folder"
                ) from exc
            except OSError as exc:
                raise StorageError(f"{folder} cannot be used as a data folder: {exc.strerror}") from exc
            self._opened = opened.pop_all()
        self._place = os.path.realpath(folder)
        _own.add(self._place)
        try:
            self.announce(None)
        except StorageError:
            self.release()
            raise

    def announce(self, url: str | None) -> None:
        """Write the URL at which this process serves the folder, for other processes.

        Raises:
            StorageError: the lock file cannot be written.
        """
        if self._file is None:
            return
        try:
            self._file.seek(0)
            self._file.truncate()
            self._file.write(json.dumps({"pid": os.getpid(), "url": url}))
            self._file.flush()
        except OSError as exc:
            raise StorageError(f"{self.path} cannot be written: {exc.strerror}") from exc

    def release(self) -> None:
        """Release the lock. Idempotent."""
        if self._file is not None:
            self._file = None
            _own.discard(self._place)
            with suppress(
                OSError
            ):  # a flush may fail on a full disk; the descriptors are closed all the same
                self._opened.close()


def _lock_folder(descriptor: int) -> None:
    """Lock an open folder.

    Raises:
        BlockingIOError: another process has it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as exc:
        log.info("the folder itself cannot be locked here, its lock file is: %s", exc.strerror)


def url_of_other(folder: str | Path) -> str | None:
    """Return where another process serves a folder; None if none does. The URL that an ended process left in the lock
    is ignored: its port may be another server's now."""
    try:
        with open(os.path.join(folder, LOCK), encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # released when the file is closed
    except BlockingIOError:
        url = _written(Path(folder)).get("url")
        return url if isinstance(url, str) else None
    except OSError:
        pass
    return None


def _written(folder: Path) -> dict[str, Any]:
    """Return the content of the lock file of a folder."""
    try:
        content = json.loads((folder / LOCK).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def in_use(folder: Path) -> FolderInUse:
    """Return the error for a folder that is locked, by another process or by this one."""
    content = _written(folder)
    url, pid = content.get("url"), content.get("pid", "unknown")
    # Processes in two containers may have the same id, so the id alone does not show that this process has the lock.
    if pid == os.getpid() and os.path.realpath(folder) in _own:
        return FolderInUse(f"{folder} is open in this program already; use the object that has it open", url)
    fix = f"its server answers at {url}" if url else "stop it, or use another folder"
    return FolderInUse(f"{folder} is open in another process (pid {pid}); {fix}", url)
