"""Where the bytes of uploaded files are kept, chosen by URL: one line adds a backend."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from recollect.blobs.base import Blobs, BlobWriter
from recollect.blobs.disk import SETTING
from recollect.db import Database
from recollect.errors import ConfigError

BLOBS = {
    "folder": "recollect.blobs.folder:FolderBlobs",
    "database": "recollect.blobs.database:DatabaseBlobs",
}

__all__ = ["BLOBS", "BlobWriter", "Blobs", "open_blobs"]


def open_blobs(url: str, folder: Path | None, database: Database | None) -> Blobs:
    """The bytes' place that `url` names: `folder:` is `files` in the data folder (None: temporary, gone at close),
    `folder:/some/path` that one, `database:` the rows' database. The data folder must be this process's own.

    Raises:
        ConfigError: the scheme is unknown, and the message lists the known ones; or there is no database.
        StorageError: the folder cannot be made or written.
    """
    scheme = url.split(":", 1)[0]
    if scheme not in BLOBS:
        raise ConfigError(SETTING, f"{scheme!r} is unknown; use one of {', '.join(BLOBS)}")
    module, name = BLOBS[scheme].split(":")
    blobs: Blobs = getattr(import_module(module), name)(url, folder, database)
    return blobs
