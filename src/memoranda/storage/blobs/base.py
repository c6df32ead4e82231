"""The interface for the bytes of uploaded files. Rows say which exist; the sweep deletes bytes without a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path


class BlobWriter(ABC):
    """Writes the bytes of a file. They are visible after `commit`; `abort` removes them. Idempotent after either."""

    size: int
    """Bytes written so far."""

    @abstractmethod
    def write(self, piece: bytes) -> None:
        """Add a piece.

        Raises:
            StorageError: there is no space, or the storage cannot be written.
        """

    @abstractmethod
    def commit(self) -> None:
        """Make the bytes durable under their id.

        Raises:
            StorageError: they are not; nothing is left.
        """

    @abstractmethod
    def abort(self) -> None:
        """Remove everything written."""


class Blobs(ABC):
    """Bytes by tenant and id. Calls are synchronous and thread-safe; ids are ours, letters, digits, `-` and `_`."""

    shared: bool = False
    """True if other processes see the same bytes."""

    @abstractmethod
    def writer(self, tenant: str, id: str) -> BlobWriter:
        """Return a writer for the bytes of a new id."""

    @abstractmethod
    def read(self, tenant: str, id: str, piece: int = 1 << 18) -> Iterator[bytes]:
        """Return the bytes in order, in pieces of at most about `piece` bytes.

        Raises:
            NotFound: there are none of this id (before the first piece is returned).
        """

    @abstractmethod
    def local(self, tenant: str, id: str) -> AbstractContextManager[Path]:
        """Give the bytes as a local file, read-only, for the duration of the context.

        Raises:
            NotFound: there are none of this id.
        """

    @abstractmethod
    def delete(self, tenant: str, id: str) -> bool:
        """Delete the bytes. Return True if there were any."""

    @abstractmethod
    def stored(self, older_than: float) -> Iterator[tuple[str, str]]:
        """Yield tenant and id of all stored bytes, and of dead writers, last modified more than `older_than` seconds
        ago, for the sweep. Ids of dead writers end with `.part`; `delete` accepts them, too."""

    def claim(self, database: str, *, empty: bool, keep: bool) -> None:  # noqa: B027 - bytes in the rows' database need no mark
        """Check that the bytes belong to the database of this id, and with `keep` mark the storage as its own. `empty`
        says that the database has no rows.

        Raises:
            StorageError: the storage belongs to another database, or has bytes while the database is empty. A sweep
                would delete them.
        """

    def discard(self, tenant: str, id: str) -> bool:
        """Discard bytes without a row. If the storage supports it, they can be restored by hand until `drop_discarded`.
        Return True if there were any."""
        return self.delete(tenant, id)

    def drop_discarded(self, older_than: float, tenant: str | None = None) -> int:
        """Delete what was discarded more than `older_than` seconds ago, of one tenant or of all; return the number."""
        return 0

    @abstractmethod
    def health(self) -> dict[str, object]:
        """Return facts for `doctor` and `stats`: backend, and free bytes if they are known."""

    def close(self) -> None:  # noqa: B027 - most have nothing to close
        """Close the storage. Idempotent."""
