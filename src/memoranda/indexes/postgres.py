"""Indexes in PostgreSQL: their work in the rows' own transaction, or in one of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from memoranda.errors import IndexUnavailable, StorageError
from memoranda.storage.sql.postgres import PostgresDatabase

T = TypeVar("T")
NEVER_BEHIND = 1 << 62
"""The watermark of an index in the rows' own transactions: beyond every revision, so that no minimum takes it."""


class InPostgres:
    """What `TsvectorWords` and `PgvectorIndex` share. `_connection` is that of an open transaction that the work is
    part of; errors are those of the transaction then, which may be tried again."""

    _name: str
    """As errors call the index: "word index"."""
    _database: PostgresDatabase
    _connection: Any = None
    _closed = False

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        if self._closed:
            raise IndexUnavailable(f"The {self._name} is closed.")
        try:
            yield
        except StorageError as exc:
            raise IndexUnavailable(f"The {self._name} failed while {doing}: {exc}. Rows are safe.") from exc

    def _write(self, doing: str, tenant: str | None, work: Callable[[Any], T]) -> T:
        if self._connection is not None:
            return work(self._connection.raw)
        with self._translated(doing):
            return self._database.write(lambda c: work(c.raw), tenant=tenant).result()  # type: ignore[attr-defined]

    def _read(self, doing: str, tenant: str | None, work: Callable[[Any], T]) -> T:
        if self._connection is not None:
            return work(self._connection.raw)
        with self._translated(doing):
            return self._database.read(lambda c: work(c.raw), tenant, late=True)  # type: ignore[attr-defined]
