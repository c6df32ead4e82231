"""Connections to a PostgreSQL server: URLs, settings of a connection, and translation of errors."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec

try:
    import psycopg
    from psycopg import RawCursor, sql
    from psycopg.types.numeric import Int8BinaryDumper
    from psycopg.types.string import BytesBinaryDumper
    from psycopg_pool import ConnectionPool, PoolTimeout

    from memoranda.storage.sql.pgbinary import Binary, BinaryDumper
except ImportError as exc:  # raised again with the fix
    from memoranda.errors import ConfigError

    raise ConfigError(
        "database.url", "PostgreSQL needs a package that is not there: pip install 'memoranda[postgres]'"
    ) from exc

from memoranda.errors import ConfigError, MemorandaError, StorageError

Raw = psycopg.Connection[Any]
OLDEST = 140_000
"""PostgreSQL 14, as `server_version` numbers it."""
CONNECT_SECONDS = 5
LOST = ("08", "57P01", "57P02", "57P03")
"""SQLSTATE classes of a lost server, or one that is starting or stopping."""
AGAIN = ("40001", "40P01", "23505", "25006")
"""SQLSTATEs of a write in conflict with another process: serialization, deadlock, a key taken meanwhile; or of a server
that is read-only now, because another one was promoted."""


class Address(msgspec.Struct, frozen=True):
    """A PostgreSQL URL for libpq, without our own options in its query.

    `schema` has the tables; `shown` is the URL without its password.
    """

    conninfo: str
    schema: str
    shown: str


def address(url: str, key: str) -> Address:
    """Parse `postgresql://user@host:5432/name?schema=memoranda`, with every option of libpq's URLs: several
    hosts, sockets, TLS, `target_session_attrs`.

    Raises:
        ConfigError: names `key`, if the URL is not one of libpq's.
    """
    try:
        parts = urlsplit(url)
    except ValueError as exc:
        raise ConfigError(key, f"is not a PostgreSQL URL: {exc}") from exc
    query = parse_qsl(parts.query, keep_blank_values=True)
    schema = dict(query).get("schema", "memoranda")
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise ConfigError(key, "`schema` must be a plain lower-case name of letters, digits and _")
    rest = urlencode([(name, value) for name, value in query if name != "schema"])
    conninfo = urlunsplit(parts._replace(scheme="postgresql", query=rest))
    if conninfo.startswith("postgresql:/") and not conninfo.startswith("postgresql://"):
        conninfo = conninfo.replace("postgresql:", "postgresql://", 1)
    try:
        psycopg.conninfo.conninfo_to_dict(conninfo)
    except psycopg.Error as exc:
        says = f"is not a PostgreSQL URL such as postgresql://user@host:5432/name: {str(exc).strip()}"
        raise ConfigError(key, says) from exc
    shown = re.sub(r"(://[^/@\s:]*):.*@", r"\1:***@", conninfo)  # to the last @: a password may contain one
    return Address(conninfo, schema, re.sub(r"(password=)[^&\s]+", r"\1***", shown))


def settings(where: Address, statement_timeout: float) -> dict[str, Any]:
    """Return the keyword arguments of `psycopg.connect` for every connection."""
    return {
        "conninfo": where.conninfo,
        "autocommit": True,
        "cursor_factory": RawCursor,
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "memoranda",
        "client_encoding": "UTF8",
        "keepalives_idle": 30,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": 15_000,
        "options": f"-c search_path={where.schema},public -c statement_timeout={int(statement_timeout * 1000)}"
        " -c idle_in_transaction_session_timeout=60000 -c client_min_messages=warning",
    }


def configure(raw: Raw) -> None:
    """Register dumpers: every int is sent as a bigint, bytes unchanged."""
    raw.adapters.register_dumper(int, Int8BinaryDumper)
    raw.adapters.register_dumper(bytes, BytesBinaryDumper)
    raw.adapters.register_dumper(bytearray, BytesBinaryDumper)
    raw.adapters.register_dumper(Binary, BinaryDumper)
    raw.prepare_threshold = 2


def connect(where: Address, statement_timeout: float, key: str) -> Raw:
    """Open a connection and check the server.

    Raises:
        StorageError: no server answers, or it refuses the connection; the message names the likely fix.
        ConfigError: the server is too old, or the database has another encoding than UTF-8.
    """
    try:
        raw = psycopg.connect(**settings(where, statement_timeout))
    except psycopg.Error as exc:
        raise unreachable(where, exc, key) from exc
    if raw.info.server_version < OLDEST:
        version = raw.info.server_version // 10_000
        raw.close()
        raise ConfigError(key, f"the server is PostgreSQL {version}; use 14 or newer")
    encoding = raw.info.parameter_status("server_encoding")
    if encoding != "UTF8":
        raw.close()
        says = f"the database has the encoding {encoding}; use one that was created with ENCODING 'UTF8'"
        raise ConfigError(key, says)
    configure(raw)
    return raw


def is_up(where: Address) -> bool:
    """Return False while no server answers, or it is still starting; whether it accepts user and password is not asked.
    The waiting thread can be interrupted by signals."""
    limited = psycopg.conninfo.make_conninfo(where.conninfo, connect_timeout=CONNECT_SECONDS)
    answers: list[int] = []
    asking = Thread(target=lambda: answers.append(psycopg.pq.PGconn.ping(limited.encode())), daemon=True)
    asking.start()
    asking.join()
    return answers[0] not in (psycopg.pq.Ping.REJECT, psycopg.pq.Ping.NO_RESPONSE)


def unreachable(where: Address, exc: BaseException, key: str) -> StorageError:
    """Return the error for a failed connection, with the fix that fits its message."""
    text = " ".join(str(exc).split()).rstrip("?")
    fixes = {
        "password authentication failed": "check user and password in the URL",
        "no password supplied": "put the password into the URL, or PGPASSWORD, or ~/.pgpass",
        "does not exist": "create it, or correct the name in the URL",
        "Servname not supported": "correct the port in the URL",
        "could not translate host name": "correct the host in the URL",
        "failed to resolve host": "correct the host in the URL; a password there has %40 for @ and %2F for /",
        "Connection refused": "start the server, or correct host and port",
        "No such file or directory": "start the server, or correct the socket's folder",
        "timeout": "see whether the host is up and lets this one through",
        "too many clients": "lower `database.pool_size`, or raise the server's max_connections",
    }
    fix = next(
        (fix for sign, fix in fixes.items() if sign in text), "see that the server is up and lets us in"
    )
    return StorageError(f"{key}: cannot connect to {where.shown}: {text}; {fix}")


def lost(exc: BaseException) -> bool:
    """Return True if the connection failed, not the statement."""
    if isinstance(exc, StorageError):
        return isinstance(exc.__cause__, psycopg.OperationalError)
    if not isinstance(exc, psycopg.Error):
        return False
    state = exc.sqlstate
    if state is None:
        return isinstance(exc, psycopg.OperationalError | psycopg.InterfaceError)
    return state.startswith(LOST)


def in_conflict(exc: BaseException) -> bool:
    """Return True if the write was in conflict with another process and may be retried."""
    return isinstance(exc, psycopg.Error) and exc.sqlstate in AGAIN


@contextmanager
def translated(doing: str, where: Address) -> Iterator[None]:
    """Turn the driver's errors into ours."""
    try:
        yield
    except MemorandaError:
        raise
    except PoolTimeout as exc:
        raise StorageError(
            f"{doing} {where.shown}: no connection in time; the server is away, or all are busy: then raise"
            " `database.pool_size`"
        ) from exc
    except psycopg.Error as exc:
        raise StorageError(f"{doing} {where.shown} failed: {' '.join(str(exc).split())}") from exc


def open_pool(where: Address, size: int, statement_timeout: float, wait: float) -> ConnectionPool[Raw]:
    """Open a pool of at most `size` connections, each opened when first needed. `wait` is how many seconds a caller
    waits for a free one."""
    logging.getLogger("psycopg.pool").setLevel(logging.ERROR)  # the caller's error is enough
    kwargs = settings(where, statement_timeout)
    conninfo = kwargs.pop("conninfo")
    return ConnectionPool(
        conninfo,
        min_size=0,
        max_size=size,
        kwargs=kwargs,
        configure=configure,
        timeout=wait,
        max_idle=300.0,
        reconnect_timeout=max(5.0, wait),
        open=True,
        name="memoranda-readers",
    )


@lru_cache(maxsize=4096)
def enter_tenant(tenant: str | None) -> str:
    """Return the statements that restrict the open transaction to one tenant's rows, or allow all rows (None)."""
    name = sql.quote(tenant or "").strip()
    all_tenants = "on" if tenant is None else "off"
    return f"SET LOCAL memoranda.tenant = {name}; SET LOCAL memoranda.house = '{all_tenants}'"
