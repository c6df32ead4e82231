"""One folder, one writing process: a lock that says who holds it and where its server listens."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Container
from contextlib import suppress
from fnmatch import fnmatch
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from memoranda.errors import FolderInUse, InvalidInput, StorageError

DATABASE = "memoranda.db"
LOCK = "memoranda.lock"
PARTS = (f"{DATABASE}*", LOCK, "files", "index-*", "words-*")
"""Names of the files and folders of a data folder."""
MARK = ".memoranda"
"""The file in a folder of uploads that says whose they are: the id of a database."""
LOGS = ("-wal", "-shm")
"""What SQLite adds to the name of a database for the two files of its write-ahead log."""


def data_folder_of(path: Path) -> Path | None:
    """The data folder that `path` is or is a part of; None for every other path. Files of others in a data folder are
    not part of it."""
    if is_data_folder(path):
        return path
    for part, folder in pairwise((path, *path.parents)):
        if any(fnmatch(part.name, name) for name in PARTS) and is_data_folder(folder):
            return folder
    return None


def is_data_folder(folder: Path) -> bool:
    """Return True for a folder that holds the lock or the database of a data folder."""
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
    """Removes the index caches of other models and engines than those in use: a forgetting could not reach
    what they hold. Nothing is lost: they are made again from the rows."""
    for path in folder.iterdir():
        if path.is_dir() and path.name.startswith(("index-", "words-")) and path.name not in keep:
            shutil.rmtree(path)


def refuse_lost_database(folder: Path) -> None:
    """Check a data folder before its database is opened.

    Raises:
        StorageError: uploads or indexes are there, and the database is not. A new one would know of none of them.
    """
    if (folder / DATABASE).exists():
        return
    left = sorted(
        path.name
        for path in folder.iterdir()
        if any(fnmatch(path.name, name) for name in ("files", "index-*", "words-*"))
        and any(below.is_file() and below.name != MARK for below in path.rglob("*"))
    )
    if left:
        raise StorageError(
            f"{folder / DATABASE} is missing beside {', '.join(left)}: bring it back from where it was moved or backed"
            f" up, or move {', '.join(left)} away to begin anew"
        )


def bytes_in(folder: Path) -> int:
    """The bytes of the files in a folder, as far as they stay while they are counted."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(place, name)).st_size
    return total


class FolderLock:
    """Holds a data folder for this process until `release`; the kernel lets go when the process dies."""

    def __init__(self, folder: Path) -> None:
        """Takes the lock, making the folder if needed.

        Raises:
            FolderInUse: another process has it; the error carries its server's URL when it runs one.
            StorageError: the folder cannot be made or written.
        """
        self.path = folder / LOCK
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file: IO[str] | None = open(self.path, "a+", encoding="utf-8")  # noqa: SIM115 - held open
        except (FileExistsError, NotADirectoryError) as exc:
            raise StorageError(
                f"{folder} cannot be used as a data folder: a file is there; name a folder"
            ) from exc
        except OSError as exc:
            raise StorageError(f"{folder} cannot be used as a data folder: {exc.strerror}") from exc
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            self._file.close()
            raise in_use(folder) from exc
        try:
            self.announce(None)
        except StorageError:
            self.release()
            raise

    def announce(self, url: str | None) -> None:
        """Tells other processes at which URL this one serves the folder.

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
        """Lets go. Idempotent."""
        if self._file is not None:
            file, self._file = self._file, None
            with suppress(
                OSError
            ):  # what could not be flushed to a full disk; the descriptor is closed all the same
                file.close()


def url_of_other(folder: str | Path) -> str | None:
    """Return where another process serves a folder; None if none does. What a process that ended has left in the lock
    is not believed: its port may be another server's now."""
    try:
        with open(os.path.join(folder, LOCK), encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # given back as the file is closed
    except BlockingIOError:
        url = _written(Path(folder)).get("url")
        return url if isinstance(url, str) else None
    except OSError:
        pass
    return None


def _written(folder: Path) -> dict[str, Any]:
    """What the process that has a folder wrote into its lock."""
    try:
        found = json.loads((folder / LOCK).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def in_use(folder: Path) -> FolderInUse:
    """The error for a folder that another process holds."""
    held = _written(folder)
    url, pid = held.get("url"), held.get("pid", "unknown")
    fix = f"its server answers at {url}" if url else "stop it, or use another folder"
    return FolderInUse(f"{folder} is open in another process (pid {pid}); {fix}", url)
