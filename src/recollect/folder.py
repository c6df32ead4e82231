"""One folder, one writing process: a lock that says who holds it and where its server listens."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Container
from contextlib import suppress
from pathlib import Path
from typing import IO

from recollect.errors import FolderInUse, StorageError

LOCK = "recollect.lock"


def drop_other_caches(folder: Path, keep: Container[str]) -> None:
    """Removes the index caches of other models and engines than those in use: a forgetting could not reach
    what they hold. Nothing is lost: they are made again from the rows."""
    for path in folder.iterdir():
        if path.is_dir() and path.name.startswith(("index-", "words-")) and path.name not in keep:
            shutil.rmtree(path)


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


def in_use(folder: Path) -> FolderInUse:
    """The error for a folder that another process holds."""
    try:
        held = json.loads((folder / LOCK).read_text("utf-8"))
    except (OSError, ValueError):
        held = {}
    url, pid = held.get("url"), held.get("pid", "unknown")
    fix = f"its server answers at {url}" if url else "stop it, or use another folder"
    return FolderInUse(f"{folder} is open in another process (pid {pid}); {fix}", url)
