"""The door to the bytes of uploaded files. Rows say which exist; bytes without a row are leftovers to be swept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path


class BlobWriter(ABC):
    """Bytes on their way in. Nothing is there until `commit`; `abort` leaves nothing. Idempotent after either."""

    size: int
    """Bytes written so far."""

    @abstractmethod
    def write(self, piece: bytes) -> None:
        """Adds a piece.

        Raises:
            StorageError: there is no room, or the place cannot be written.
        """

    @abstractmethod
    def commit(self) -> None:
        """Makes the bytes durable under their id.

        Raises:
            StorageError: they are not; nothing is left.
        """

    @abstractmethod
    def abort(self) -> None:
        """Takes everything back."""


class Blobs(ABC):
    """Bytes by tenant and id. Calls are synchronous and thread-safe; ids are ours, letters, digits, `-` and `_`."""

    shared: bool = False
    """Whether other processes see the same bytes."""

    @abstractmethod
    def writer(self, tenant: str, id: str) -> BlobWriter:
        """Begins to write the bytes of a new id."""

    @abstractmethod
    def read(self, tenant: str, id: str, piece: int = 1 << 18) -> Iterator[bytes]:
        """The bytes in order, in pieces of at most about `piece` bytes.

        Raises:
            NotFound: there are none of this id (before the first piece is given).
        """

    @abstractmethod
    def local(self, tenant: str, id: str) -> AbstractContextManager[Path]:
        """The bytes as a file of this machine, to be read only, while the context lasts.

        Raises:
            NotFound: there are none of this id.
        """

    @abstractmethod
    def delete(self, tenant: str, id: str) -> bool:
        """Takes the bytes away; whether there were any."""

    @abstractmethod
    def held(self, older_than: float) -> Iterator[tuple[str, str]]:
        """Tenant and id of all bytes, and of writers that died, last touched more than `older_than` seconds ago; for
        the sweep. Ids of dead writers end with `.part`; `delete` takes them, too."""

    def claim(self, database: str, *, empty: bool, keep: bool) -> None:  # noqa: B027 - the rows' own place is its own
        """Make sure that the bytes are those of the database of this id, and with `keep` mark the place as its own.
        `empty` says that the database has no rows.

        Raises:
            StorageError: the place belongs to another database, or has bytes beside an empty one. A sweep would take
                them for leftovers.
        """

    def discard(self, tenant: str, id: str) -> bool:
        """Take away bytes that no row knows, where the place allows it so that they can be brought back by hand until
        `drop_discarded`; whether there were any."""
        return self.delete(tenant, id)

    def drop_discarded(self, older_than: float, tenant: str | None = None) -> int:
        """Delete what was discarded more than `older_than` seconds ago, of one tenant or of all; how many it was."""
        return 0

    @abstractmethod
    def health(self) -> dict[str, object]:
        """Facts for `doctor` and `stats`: backend, and bytes free where that is known."""

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Lets go. Idempotent."""
