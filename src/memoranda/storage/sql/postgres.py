"""Rows in PostgreSQL: one connection writes and commits in groups, a pool reads beside it, optionally a replica."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from memoranda.errors import ConfigError, StorageError
from memoranda.storage.sql.base import Connection, Database, Options, Params, Row
from memoranda.storage.sql.group import GroupWriter, Task, Transaction
from memoranda.storage.sql.pglink import (
    Address,
    Raw,
    address,
    connect,
    enter_tenant,
    in_conflict,
    lost,
    open_pool,
    translated,
)
from memoranda.storage.sql.replica import Replica
from memoranda.storage.sql.statements import migrations, render, statements

if TYPE_CHECKING:
    import psycopg
else:
    from memoranda.storage.sql.pglink import psycopg

log = logging.getLogger("memoranda.storage")
T = TypeVar("T")
BULK = 32
"""Rows from which COPY is faster."""
ANALYZE_AFTER, ANALYZE_GROWTH = 1_000, 8
"""Rows that a connection has loaded into a table when it first checks whether that was analyzed, and how many times as
many when it checks again. The server itself checks once a minute."""
SNAPSHOT = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
ERASED = (
    "erased from rows and indexes; the server's freed space, its write-ahead log, replicas, backups and exports handed"
    " out before keep it until they are written over or recycled"
)
TWINS = 5
"""Unique violations of one group blamed on other processes; one more is a conflict of the work with itself."""


class PostgresConnection:
    """Statements by name on one PostgreSQL connection, see `base.Connection`."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self._sql = statements("postgres")
        self._types: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        self._loaded: Counter[str] = Counter()
        self._analyze_at: dict[str, int] = {}

    def _execute(self, sql: str, params: Params) -> Any:
        return self.raw.cursor(binary=True).execute(sql, params)

    def all(self, name: str, params: Params = ()) -> list[Row]:
        """Return every row of the named query."""
        rows: list[Row] = self._execute(self._sql[name], params).fetchall()
        return rows

    def one(self, name: str, params: Params = ()) -> Row | None:
        """Return the first row of the named query, or None."""
        row: Row | None = self._execute(self._sql[name], params).fetchone()
        return row

    def run(self, name: str, params: Params = ()) -> int:
        """Execute the named statement; return the number of rows changed."""
        return int(self._execute(self._sql[name], params).rowcount)

    def many(self, name: str, rows: Iterable[Params]) -> None:
        """Execute the named statement once per row, without waiting in between."""
        self._repeat(self._sql[name], list(rows))

    def _repeat(self, sql: str, rows: Sequence[Params]) -> None:
        if len(rows) == 1:  # a pipeline costs more than it saves
            self.raw.cursor().execute(sql, rows[0])
        elif rows:
            self.raw.cursor().executemany(sql, rows)

    def load(self, table: str, columns: Sequence[str], rows: Iterable[Params]) -> None:
        """Insert rows in bulk: COPY into a temporary table, then one INSERT, because COPY bypasses row security and the
        server refuses it."""
        listed = list(rows)
        names = ", ".join(columns)
        if len(listed) < BULK:
            places = ", ".join(f"${n + 1}" for n in range(len(columns)))
            self._repeat(f"INSERT INTO {table} ({names}) VALUES ({places})", listed)
            return
        cursor = self.raw.cursor()
        types = self._column_types(cursor, table, tuple(columns))
        with cursor.copy(f"COPY pg_temp.load_{table} ({names}) FROM STDIN (FORMAT BINARY)") as copy:
            copy.set_types(types)
            for row in listed:
                copy.write_row(row)
        cursor.execute(f"INSERT INTO {table} ({names}) SELECT {names} FROM pg_temp.load_{table}")
        cursor.execute(f"DELETE FROM pg_temp.load_{table}")
        self._loaded[table] += len(listed)
        if self._loaded[table] >= self._analyze_at.get(table, ANALYZE_AFTER):
            self._analyze_at[table] = ANALYZE_GROWTH * self._loaded[table]
            self._analyze(cursor, table)

    def _analyze(self, cursor: Any, table: str) -> None:
        """Analyze a table if most of its rows are new. Until then the server keeps plans from when the table was small,
        also those of the checks of foreign keys, which then read all rows of a tenant for each row. A table in which
        space is being freed is left out: writers would wait for that."""
        known = cursor.execute(f"SELECT reltuples FROM pg_class WHERE oid = '{table}'::regclass").fetchone()
        if known[0] * 2 < self._loaded[table]:
            cursor.execute(f"SET LOCAL default_statistics_target = 10; ANALYZE (SKIP_LOCKED) {table}")
            cursor.execute("SET LOCAL default_statistics_target TO DEFAULT")

    def _column_types(self, cursor: Any, table: str, columns: tuple[str, ...]) -> list[str]:
        """Return the types of columns; the first call creates the table for COPY."""
        cursor.execute(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS load_{table} (LIKE {table} INCLUDING DEFAULTS) ON COMMIT DELETE ROWS"
        )
        key = (table, columns)
        if key not in self._types:
            rows = cursor.execute(
                "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
                f" WHERE attrelid = '{table}'::regclass AND attnum > 0"
            ).fetchall()
            types = dict(rows)
            self._types[key] = [types[name] for name in columns]
        return self._types[key]

    def select(self, sql: str, params: Params = ()) -> list[Row]:
        """Return the rows of a composed SELECT."""
        rows: list[Row] = self._execute(render(sql, "postgres"), params).fetchall()
        return rows


LOCKED = "BEGIN; SELECT FROM counters WHERE name = 'rev' FOR UPDATE; "
"""Begins a transaction of rows. Writers of all processes take turns: what one reads is the latest, and no two wait for
each other's locks."""


class PostgresTransaction(Transaction):
    """`BEGIN` to `COMMIT` on the writing connection, which is reopened after it was lost.

    If COMMIT was sent but not answered, the server that answers next is asked for the status of the transaction. Only
    if that is another server (one that was promoted) can it remain unknown whether the group was stored; the callers
    then get an error that says so.
    """

    def __init__(self, where: Address, statement_timeout: float, patience: float, begin: str) -> None:
        self.patience = patience
        self.written = "0/0"
        """The end of the write-ahead log after the last commit."""
        self.note_written = False
        self._where = where
        self._timeout = statement_timeout
        self._connection: PostgresConnection | None = None
        self._begin = begin
        self._pending = ""
        self._only = False
        self._timeline = ""
        self._twin: BaseException | None = None
        self._twins = 0
        self._open()

    def _open(self) -> PostgresConnection:
        if self._connection is None or self._connection.raw.closed:
            raw = connect(self._where, self._timeout, "database.url")
            self._connection = PostgresConnection(raw)
            self._timeline = _timeline(raw)
        return self._connection

    @property
    def raw(self) -> Raw:
        """The connection, for what runs outside a transaction."""
        return self._open().raw

    def begin(self) -> Connection:
        connection = self._open()
        self._pending = self._begin
        return connection

    def enter(self, tenant: str | None, only: bool) -> None:
        self._only = only
        mark = "" if only else "SAVEPOINT work; "
        self.raw.execute(f"{self._pending}{mark}{enter_tenant(tenant)}")
        self._pending = ""

    def leave(self) -> None:
        if not self._only:
            self.raw.execute("RELEASE work")

    def undo(self) -> bool:
        assert self._connection is not None
        if self._connection.raw.closed:
            return False
        if self._only:
            self.raw.execute("ROLLBACK")
            self._pending = self._begin
        else:
            self.raw.execute("ROLLBACK TO work; RELEASE work")
        return True

    def commit(self) -> None:
        self._twin, self._twins = None, 0
        if self._pending:  # nothing was done
            return
        row = self.raw.execute("SELECT pg_current_xact_id_if_assigned()::text").fetchone()
        xid, timeline = (row[0] if row else None), self._timeline
        try:
            self.raw.execute("COMMIT")
        except psycopg.Error as exc:
            if xid is None or not lost(exc):
                raise
            self._resolve(xid, timeline, exc)
        if self.note_written:
            with suppress(psycopg.Error):  # the next write records it
                row = self.raw.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
                self.written = row[0] if row else self.written

    def _resolve(self, xid: str, timeline: str, exc: psycopg.Error) -> None:
        """Check that the transaction was committed.

        Raises:
            psycopg.Error: it was not; `exc` again, so that the group is retried.
            StorageError: the outcome is unknown.
        """
        until = time.monotonic() + self.patience
        while True:
            self.rollback()
            try:
                row = self.raw.execute("SELECT pg_xact_status($1::xid8)", [xid]).fetchone()
                status = row[0] if row else None
            except psycopg.DataError:  # an id beyond this server's last: it never saw the transaction
                status = None
            except (psycopg.Error, StorageError) as again:
                if not lost(again) or time.monotonic() > until:
                    raise StorageError(
                        "the server went away while a write was committed; write again: what is there is left alone"
                    ) from None
                time.sleep(0.1)
                continue
            if status == "in progress":
                time.sleep(0.02)
                continue
            if status != "committed":
                raise exc
            if self._timeline != timeline:
                raise StorageError(
                    "another server took over while a write was committed, which may or may not have reached it;"
                    " write again: what is there is left alone"
                ) from None
            return

    def rollback(self) -> None:
        if self._connection is None:
            return
        with suppress(psycopg.Error):
            if not self._connection.raw.closed:
                self._connection.raw.execute("ROLLBACK")
                return
        self.close()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error):
                connection.raw.close()

    def retryable(self, exc: BaseException) -> bool:
        if isinstance(exc, psycopg.errors.ReadOnlySqlTransaction):
            self.close()  # this server was demoted; the next connection tries the URL's other hosts
        if isinstance(exc, psycopg.errors.UniqueViolation):
            if exc is not self._twin:
                self._twin, self._twins = exc, self._twins + 1
            return self._twins <= TWINS
        return lost(exc) or in_conflict(exc)

    def error(self, exc: BaseException) -> BaseException:
        if not isinstance(exc, psycopg.Error):
            return exc
        text = " ".join(str(exc).split())
        error = StorageError(f"writing to {self._where.shown} failed, nothing was stored: {text}")
        error.__cause__ = exc
        return error


class PostgresDatabase(Database):
    """Rows in one schema of a PostgreSQL database; several processes may have it open. With `schema` False it creates
    no tables.

    Raises:
        ConfigError: the URL is wrong, or the server too old.
        StorageError: the server refuses the connection, or a migration failed.
    """

    shared = True
    erased = ERASED

    def __init__(self, url: str, options: Options = Options(), *, schema: bool = True) -> None:  # noqa: B008
        self.address = address(url, "database.url")
        self._timeout = timeout = options.statement_timeout
        begin = LOCKED if schema else "BEGIN; "
        self._transaction = PostgresTransaction(self.address, timeout, options.retry_seconds, begin)
        self._closed = False
        if schema:
            try:
                _migrate(self._transaction.raw, self.address)
            except BaseException:
                self._transaction.close()
                raise
        self._pool = open_pool(self.address, options.pool_size, timeout, options.retry_seconds)
        self._replica = None
        if options.replica_url is not None:
            self._replica = Replica(options.replica_url, options.pool_size, timeout, self._read)
            self._transaction.note_written = True
        self._group = GroupWriter(self._transaction, self.address.shown)
        self._vacuuming = ThreadPoolExecutor(1, "memoranda-vacuum")
        self.holds = self._group.holds
        self.called = self._group.called

    def read(self, work: Callable[[Connection], T], tenant: str | None = None, *, late: bool = False) -> T:
        """Run `work` on the calling thread against one consistent snapshot."""
        if self._closed:
            raise StorageError(f"{self.address.shown} is closed")
        if late and self._replica is not None:
            answered, result = self._replica.read(work, tenant, self._transaction.written)
            if answered:
                return result  # type: ignore[return-value]
        with translated("reading", self.address):
            try:
                return self._read(self._pool, work, tenant)
            except psycopg.Error as exc:
                if not lost(exc):
                    raise
                log.warning("reading again, the connection was lost: %s", exc)
            self._pool.check()
            return self._read(self._pool, work, tenant)

    def _read(self, pool: Any, work: Callable[[Connection], T], tenant: str | None) -> T:
        with pool.connection() as raw:
            raw.execute(f"{SNAPSHOT}; {enter_tenant(tenant)}")
            return work(_named(raw))  # the pool ends the transaction

    def write(
        self,
        work: Callable[[Connection], T],
        then: Callable[[T], None] | None = None,
        tenant: str | None = None,
    ) -> Future[T]:
        """Queue `work` for the writing thread; the future is done when it is durable."""
        return self._group.queue(Task(work, then, tenant))

    def erase(self) -> Future[None]:
        """Free the space of deleted rows for new rows. The server does not overwrite it by itself: see `erased` for
        what remains, and the documentation of VACUUM FULL for a rewrite under a lock."""
        return self.vacuum(())

    def compact(self) -> Future[None]:
        """Return free pages at the ends of tables to the file system, and refresh the planner's statistics."""
        return self.vacuum((), analyze=True)

    def vacuum(self, tables: Sequence[str], *, analyze: bool = False) -> Future[None]:
        """Free the space of deleted rows in these tables of the schema (default: all), once earlier writes are done.
        Later writes go on beside it: it has a connection of its own.

        `analyze` refreshes the planner's statistics too, except of a table on which an index is being built: ANALYZE
        would wait for the build, and the build for the snapshot of ANALYZE (VACUUM holds no such snapshot).
        """

        earlier = self.write(lambda c: None)
        return self._vacuuming.submit(self._vacuum, earlier, tables, analyze)

    def _vacuum(self, earlier: Future[None], tables: Sequence[str], analyze: bool) -> None:
        earlier.result()
        with translated("VACUUM in", self.address), connect(self.address, 0.0, "database.url") as raw:
            schema = [self.address.schema]
            every = raw.execute("SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
            named = tables or [name for (name,) in every]
            raw.execute(f"VACUUM {', '.join(named)}")
            if analyze:
                raw.execute(f"ANALYZE (SKIP_LOCKED) {', '.join(named)}")

    def health(self) -> dict[str, object]:
        """Return server and schema, bytes of the tables, and whether row security applies to this role."""

        def facts(c: Connection) -> dict[str, object]:
            row = c.select(
                "SELECT current_setting('server_version'), coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint,"
                " (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user)"
                " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
                " WHERE n.nspname = ? AND c.relkind IN ('r', 'p')",
                [self.address.schema],
            )[0]
            return {
                "backend": "postgresql",
                "version": row[0],
                "schema": self.address.schema,
                "bytes": row[1],
                "row_security": not row[2],
            }

        return self.read(facts) | {"replica": self._replica is not None}

    def faults(self) -> list[str]:
        """Return no faults; raises StorageError if the tables cannot be read."""
        self.read(lambda c: c.one("last_rev"))
        return []

    def close(self) -> None:
        """Finish queued writes and a running VACUUM, then close the connections. Idempotent."""
        if self._closed:
            return
        self._group.close()
        self._vacuuming.shutdown()
        self._closed = True
        self._pool.close()
        if self._replica is not None:
            self._replica.close()
        self._transaction.close()


def _named(raw: Raw) -> PostgresConnection:
    connection: PostgresConnection | None = getattr(raw, "memoranda", None)
    if connection is None:
        connection = PostgresConnection(raw)
        raw.memoranda = connection  # type: ignore[attr-defined]
    return connection


def _timeline(raw: Raw) -> str:
    """Return the timeline of a primary server; a promoted server has another one."""
    row = raw.execute(
        "SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END"
    ).fetchone()
    return str(row[0]) if row else ""


def _migrate(raw: Raw, where: Address) -> None:
    """Migrate the schema to this version, each step in its own transaction, one process at a time."""
    steps = migrations("postgres")
    with translated("setting up", where):
        try:
            current = _make_schema(raw, where.schema)
        except psycopg.errors.InsufficientPrivilege as exc:
            raise ConfigError(
                "database.url",
                f"the role may not create the schema {where.schema!r}; grant it CREATE on the database,"
                " or name a schema that is its own with ?schema=",
            ) from exc
        _refuse_newer(current, steps[-1][0])
        for version, script in steps:
            if version <= current:
                continue
            with raw.transaction():
                _lock(raw, where.schema)
                current = _version(raw)
                _refuse_newer(current, steps[-1][0])
                if version <= current:  # another process was faster
                    continue
                raw.execute("SET LOCAL statement_timeout = 0; SET LOCAL memoranda.house = 'on'")
                raw.execute(script)
                raw.execute(f"INSERT INTO schema_history (version) VALUES ({version})")


def _refuse_newer(current: int, known: int) -> None:
    if current > known:
        raise StorageError(
            f"the database has schema {current}, this version knows {known}: upgrade memoranda"
        )


def _make_schema(raw: Raw, schema: str) -> int:
    """Make the schema and its history if they are missing; return the last version in it."""
    with raw.transaction():
        _lock(raw, schema)
        row = raw.execute("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]).fetchone()
        if row is None:
            raw.execute(f"CREATE SCHEMA {schema}")
        raw.execute(
            "CREATE TABLE IF NOT EXISTS schema_history"
            " (version BIGINT PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL DEFAULT now())"
        )
        return _version(raw)


def _lock(raw: Raw, schema: str) -> None:
    """Lock the schema: other processes that migrate it wait until the transaction ends."""
    raw.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [f"memoranda:{schema}"])


def _version(raw: Raw) -> int:
    row = raw.execute("SELECT coalesce(max(version), 0) FROM schema_history").fetchone()
    return int(row[0]) if row else 0


def open_postgres(url: str, folder: object, options: Options) -> PostgresDatabase:
    """Open the database of a libpq URL, see `pglink.address`."""
    return PostgresDatabase(url, options)
