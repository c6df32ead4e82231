"""Where the bytes of uploaded files are stored, chosen by URL: one line adds a backend."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from memoranda.errors import ConfigError
from memoranda.storage.blobs.base import Blobs, BlobWriter
from memoranda.storage.blobs.disk import SETTING
from memoranda.storage.sql.base import Database

BLOBS = {
    "folder": "memoranda.storage.blobs.folder:FolderBlobs",
    "database": "memoranda.storage.blobs.database:DatabaseBlobs",
}

__all__ = ["BLOBS", "BlobWriter", "Blobs", "open_blobs"]


def open_blobs(url: str, folder: Path | None, database: Database | None) -> Blobs:
    """Open the storage that `url` names: `folder:` is `files` in the data folder (None: temporary, deleted at close),
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
