"""A replica of the database server, for reads that may be late."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from memoranda.errors import MemorandaError
from memoranda.storage.sql.base import Connection
from memoranda.storage.sql.pglink import address, connect, lost, open_pool

if TYPE_CHECKING:
    import psycopg
else:
    from memoranda.storage.sql.pglink import psycopg

log = logging.getLogger("memoranda.storage")
T = TypeVar("T")
WAIT_SECONDS = 1.0
LOOK_SECONDS = 1.0
REPLAYED = "SELECT NOT pg_is_in_recovery() OR pg_last_wal_replay_lsn() >= CAST(? AS pg_lsn)"
KEY = "database.replica_url"


class Replica:
    """Connections to a replica. If it does not answer, a background thread retries, and no read waits for it meanwhile.

    `read` runs `work` on a connection of the pool, in one snapshot.

    Raises:
        ConfigError: the URL is wrong.
    """

    def __init__(self, url: str, size: int, statement_timeout: float, read: Callable[..., Any]) -> None:
        self._where = address(url, KEY)
        self._size = size
        self._timeout = statement_timeout
        self._read = read
        self._lock = threading.Lock()
        self._away = False
        self._closed = threading.Event()
        self._pool = self._open()

    def _open(self) -> Any:
        return open_pool(self._where, self._size, self._timeout, WAIT_SECONDS)

    def read(
        self, work: Callable[[Connection], T], tenant: str | None, written: str
    ) -> tuple[bool, T | None]:
        """Return True and the result if the replica is up and has replayed the log up to `written`; else False and
        None."""
        if self._away:
            return False, None

        def checked(c: Connection) -> tuple[bool, T | None]:
            return (True, work(c)) if c.select(REPLAYED, [written])[0][0] else (False, None)

        try:
            outcome: tuple[bool, T | None] = self._read(self._pool, checked, tenant)
        except (psycopg.OperationalError, psycopg.InterfaceError) as exc:
            if lost(exc):
                self._leave(exc)
            else:
                log.info("the replica %s could not answer: %s", self._where.shown, exc)
            return False, None
        return outcome

    def _leave(self, exc: psycopg.Error) -> None:
        with self._lock:
            if self._away or self._closed.is_set():
                return
            self._away = True
        log.warning("the replica %s does not answer, the first server does: %s", self._where.shown, exc)
        threading.Thread(target=self._look_for, name="memoranda-replica", daemon=True).start()

    def _look_for(self) -> None:
        """Retry until the server is up, then open a new pool: the old one waits longer after each failure."""
        while not self._closed.wait(LOOK_SECONDS):
            try:
                connect(self._where, self._timeout, KEY).close()
            except MemorandaError:
                continue
            with self._lock:
                if self._closed.is_set():
                    return
                old, self._pool = self._pool, self._open()
                self._away = False
            old.close()
            log.warning("the replica %s answers again", self._where.shown)
            return

    def close(self) -> None:
        """Close the connections. Idempotent."""
        with self._lock:
            self._closed.set()
            pool = self._pool
        pool.close()
