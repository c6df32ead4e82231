"""The data folder that a command creates, and that is removed again if nothing is written."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import closing, suppress
from fnmatch import fnmatch
from pathlib import Path

from memoranda.config.sections import Config
from memoranda.errors import FolderInUse
from memoranda.storage.data_lock import DATABASE, PARTS, FolderLock

FIRST_TABLES = frozenset(("counters", "meta", "spaces", "sqlite_stat1"))
"""The tables that have rows when a database is new."""


def missing_folders(config: Config) -> list[Path]:
    """Return the data folder and those above it that do not exist, the innermost first; none if it exists, or if rows
    are not in it."""
    if Path(config.data).exists():
        return []
    from memoranda.app.bootstrap import (  # takes long to import; a folder that is served needs none
        folder_of,
        rows_url,
    )

    folder = folder_of(config)
    if folder is None or not rows_url(config).startswith("sqlite"):
        return []
    return [path for path in (folder, *folder.parents) if not path.exists()]


def remove_unused(folders: Sequence[Path]) -> None:
    """Remove new folders, of which the first is a data folder. Nothing is removed if anything was written into it, or
    if another process has it."""
    if not folders or not folders[0].exists():
        return
    try:
        lock = FolderLock(folders[0])
    except FolderInUse:
        return
    try:
        if not _is_unused(folders[0]):
            return
        shutil.rmtree(folders[0])
    finally:
        lock.release()
    for above in folders[1:]:
        with suppress(OSError):  # something else is in it
            above.rmdir()


def _is_unused(folder: Path) -> bool:
    """Return True for a data folder whose database has no rows of a user, if nothing else is beside it."""
    if not all(any(fnmatch(path.name, part) for part in PARTS) for path in folder.iterdir()):
        return False
    if not (folder / DATABASE).exists():
        return True
    from pysqlite3 import dbapi2  # imported late: other commands do without

    with closing(dbapi2.connect(f"{(folder / DATABASE).absolute().as_uri()}?mode=ro", uri=True)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        return not any(
            database.execute(f'SELECT EXISTS (SELECT 1 FROM "{table}")').fetchone()[0]
            for table in tables - FIRST_TABLES
        )
