"""The interface of databases: reads run on the calling thread, writes on the one thread that commits."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

import msgspec

from memoranda.storage.sql.holds import Holds

T = TypeVar("T")
Row = tuple[Any, ...]
Params = Sequence[Any]


class Options(msgspec.Struct, frozen=True):
    """Options of a database server, beside its URL.

    `pool_size` bounds the reading connections of this process; one more writes. `statement_timeout` is in seconds.
    `retry_seconds` is how long a call waits for a server that is unavailable. `replica_url` names a server that follows
    the first, for reads that may be late.
    """

    pool_size: int = 10
    statement_timeout: float = 30.0
    retry_seconds: float = 10.0
    replica_url: str | None = None


class Connection(Protocol):
    """The connection of one read or write: statements by name, from `queries/*.sql`."""

    def all(self, name: str, params: Params = ()) -> list[Row]:
        """Return every row of the named query."""

    def one(self, name: str, params: Params = ()) -> Row | None:
        """Return the first row of the named query, or None."""

    def run(self, name: str, params: Params = ()) -> int:
        """Execute the named statement; return the number of rows changed."""

    def many(self, name: str, rows: Iterable[Params]) -> None:
        """Execute the named statement once per row."""

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Params]) -> None:
        """Insert rows in bulk, in the fastest way of the database."""

    def select(self, sql: str, params: Params = ()) -> list[Row]:
        """Return the rows of a composed SELECT; values go in `params`, never into the text."""


class Database(ABC):
    """A database whose rows are read and written in transactions.

    `work` is a plain function of a connection, so nothing in it can wait for a network or a model. It may run again
    after the connection was lost, so it has no side effects until it returns. `tenant` names the only tenant whose rows
    it may touch, None all of them; a database with row security enforces that.
    """

    shared: bool = False
    """True if other processes write to it too."""
    holds: Holds
    """How long changes occupied the writing thread."""
    called: threading.Event
    """Set unless a commit is under way, which a reader may see, whose callbacks have not all been called."""
    erased: str
    """The note of a receipt about deleted text: where it is erased, and where it may remain."""

    @abstractmethod
    def read(self, work: Callable[[Connection], T], tenant: str | None = None, *, late: bool = False) -> T:
        """Run `work` on the calling thread against one consistent snapshot. With `late` it may be a replica's, which
        has all earlier writes of this process.

        Raises:
            StorageError: the rows could not be read.
        """

    @abstractmethod
    def write(
        self,
        work: Callable[[Connection], T],
        then: Callable[[T], None] | None = None,
        tenant: str | None = None,
    ) -> Future[T]:
        """Queues `work` for the writing thread; the future is done when it is durable.

        Works that wait together are committed together (group commit); a work that raises is undone alone, and its
        error is the future's. After the commit, `then` is called with the result, in commit order and before the future
        is done; derived indexes are updated there.

        Raises (in the future):
            StorageError: the commit failed, of a full disk for example; nothing of it was stored.
        """

    @abstractmethod
    def erase(self) -> Future[None]:
        """Erase deleted text from free pages and logs, once earlier writes are done."""

    @abstractmethod
    def compact(self) -> Future[None]:
        """Return free pages to the file system."""

    @abstractmethod
    def health(self) -> dict[str, object]:
        """Return facts for `doctor` and `stats`; raises StorageError if rows cannot be read."""

    @abstractmethod
    def faults(self) -> list[str]:
        """Return the faults of the stored pages that a check can detect; empty if there are none."""

    @abstractmethod
    def close(self) -> None:
        """Finish queued writes, then close the connections. Idempotent."""
