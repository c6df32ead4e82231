"""Access to a Qdrant collection: the URL, the client, and calls with retries."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, TypeVar
from urllib.parse import parse_qsl, urlsplit

import msgspec

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.storage.data_lock import bytes_in

try:
    import grpc
    import httpx
    from qdrant_client import QdrantClient
    from qdrant_client import models as models
    from qdrant_client.common.client_exceptions import QdrantException, ResourceExhaustedResponse
    from qdrant_client.http.exceptions import ApiException, ResponseHandlingException, UnexpectedResponse
except ModuleNotFoundError as exc:
    raise ConfigError("index.url", "`qdrant:` needs a package: pip install 'memoranda[qdrant]'") from exc

T = TypeVar("T")
Count = Annotated[int, msgspec.Meta(ge=1)]

WAITS = (0.1, 0.4, 1.2)
"""Seconds before the second, third and fourth attempt."""
LONGEST_WAIT = 5.0
SECRETS = {"api_key", "apikey", "api-key", "key", "token", "password"}
BUSY = {429, 502, 503, 504}
FAILURES = (ApiException, QdrantException, grpc.RpcError, sqlite3.Error, OSError, RuntimeError, ValueError)
"""Errors of the client: of a server, of gRPC, of its in-process engine."""
FILE_SECONDS = 5.0
"""Seconds to wait for another connection to a file of the engine in this process."""


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Options after `?` in the URL. All but `collection_prefix` need a server."""

    collection_prefix: str = "memoranda"
    shards: Count | None = None
    replicas: Count | None = None
    write_consistency: Count | None = None
    on_disk: bool = False
    hnsw_m: Count = 16
    ef_construct: Count | None = None
    ef: Count | None = None
    exact: bool = False
    timeout: Count = 10
    prefer_grpc: bool = False
    api_key_env: str | None = None


def read_url(url: str) -> tuple[str, Options]:
    """The server's address, "" for the engine in this process, and the options.

    Raises:
        ConfigError: an option is unknown, wrong, or needs a server; or the URL contains a secret.
    """
    address, _, query = url.partition(":")[2].partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    if SECRETS & given.keys() or "@" in urlsplit(address).netloc:
        raise ConfigError(
            "index.url",
            "holds a secret; put the key into an environment variable and name that: "
            "?api_key_env=QDRANT_API_KEY",
        )
    unknown = [name for name in given if name not in Options.__struct_fields__]
    if unknown:
        known = ", ".join(Options.__struct_fields__)
        raise ConfigError("index.url", f"unknown option {', '.join(unknown)}; use one of {known}")
    if address and urlsplit(address).scheme not in ("http", "https"):
        raise ConfigError("index.url", f"{address!r} is no address; write qdrant:http://host:6333")
    idle = [name for name in given if name != "collection_prefix"]
    if not address and idle:
        fix = f"qdrant:http://host:6333?{idle[0]}=..."
        raise ConfigError("index.url", f"{', '.join(idle)} needs a server; write {fix}")
    try:
        return address, msgspec.convert(given, Options, strict=False)
    except msgspec.ValidationError as exc:
        raise ConfigError("index.url", f"{exc}") from exc


def collection_name(prefix: str, space: str, dim: int) -> str:
    """Return `{prefix}-{space}-{dim}`; a name with other characters than letters, digits, `_`, `.` and `-` gets a
    hash."""
    wanted = f"{prefix}-{space}-{dim}"
    safe = re.sub(r"[^A-Za-z0-9_.-]", "_", wanted)[:150]
    return safe if safe == wanted else f"{safe}-{blake2b(wanted.encode(), digest_size=5).hexdigest()}"


def api_key(options: Options) -> str | None:
    """Return the key in the environment, if the options name one.

    Raises:
        ConfigError: the variable is not set.
    """
    if options.api_key_env is None:
        return None
    key = os.environ.get(options.api_key_env)
    if not key:
        raise ConfigError("index.url", f"api_key_env: the environment has no {options.api_key_env}; set it")
    return key


class Link:
    """A client of one server, or the engine in this process. Thread-safe."""

    def __init__(self, address: str, options: Options, folder: Path | None) -> None:
        """Open the client; no request is sent to a server yet.

        Raises:
            IndexUnavailable: another process has the folder open, or it cannot be written.
        """
        self.local = not address
        self.address = address
        self._address, self._options, self._folder = address, options, folder
        self._lock, self._gate = threading.Lock(), threading.Lock()
        self._key = api_key(options)
        self._client: QdrantClient | None = self._opened()

    @property
    def where(self) -> str:
        """The server's address, or the engine in this process, for messages."""
        if not self.local:
            return self._address
        return "in this process" if self._folder is None else f"in {self._folder}"

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Lock the engine in this process, which is not thread-safe; a server needs no lock.

        Waiting threads queue at a gate, so that a reader that calls again at once cannot overtake a writer.

        Raises:
            IndexUnavailable: the index is closed.
        """
        if self.local:
            with self._gate:
                self._lock.acquire()
            try:
                self.client()
                yield
            finally:
                self._lock.release()
        else:
            self.client()
            yield

    def client(self) -> QdrantClient:
        """The client.

        Raises:
            IndexUnavailable: the index is closed.
        """
        if self._client is None:
            raise IndexUnavailable("The vector index is closed.")
        return self._client

    def ask(self, verb: str, question: Callable[[QdrantClient], T]) -> T:
        """Return the result of a call; it is retried if a server is briefly unavailable, so it must be idempotent.

        Raises:
            IndexUnavailable: it did not answer, or refused.
        """
        for wait in (*WAITS, None):
            try:
                return question(self.client())
            except FAILURES as exc:
                pause = None if wait is None else patience(exc, wait)
                if pause is None:
                    raise self.failure(verb, exc) from exc
            time.sleep(pause)
        raise AssertionError("the last try returns or raises")

    def failure(self, verb: str, exc: Exception) -> IndexUnavailable:
        """Return the error in one sentence, with the fix."""
        fix = "" if self.local else " Is the server up, and index.url right?"
        if isinstance(exc, UnexpectedResponse) and exc.status_code in (401, 403):
            fix = " Name the variable that holds its key: ?api_key_env=QDRANT_API_KEY."
        return IndexUnavailable(
            f"Qdrant ({self.where}) could not {verb}: {reason(exc)}. Rows are safe.{fix}",
        )

    def reopen(self) -> None:
        """Close and open the engine in this process; removed points leave its files.

        Raises:
            IndexUnavailable: another connection has the files open and reads or writes, or they cannot be written. The
                engine is open again; files may keep removed points.
        """
        self.client().close()
        self._client = None
        try:
            emptied = [_emptied(connection) for connection in self._connections()]
        except FAILURES as exc:
            raise self.failure("compact", exc) from exc
        finally:
            self._client = self._opened()
            self.write_ahead()
        if not all(emptied):
            raise IndexUnavailable(
                f"Qdrant ({self.where}) could not compact: another connection reads its files; compact again."
            )

    def write_ahead(self) -> None:
        """Make the engine in this process write to a log and sync at checkpoints only.

        It commits each point separately, 1.5 ms with the default sync. A power failure loses the end of the log, in
        order, so the watermark is never ahead of the points.
        """
        for connection in self._connections():
            connection.execute("PRAGMA journal_mode=WAL")
        engine = getattr(self.client(), "_client", None)  # no public way to its connections
        for collection in getattr(engine, "collections", {}).values():
            if collection.storage is not None:
                collection.storage.storage.execute("PRAGMA synchronous=NORMAL")

    def _connections(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection to each file of the engine in this process."""
        if self.local and self._folder is not None:
            for path in self._folder.glob("collection/*/storage.sqlite"):
                with closing(sqlite3.connect(path, timeout=FILE_SECONDS)) as connection:
                    yield connection

    @property
    def closed(self) -> bool:
        """True if `close` was called."""
        return self._client is None

    def close(self) -> None:
        """Close files and connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            client.close()

    @property
    def bytes_on_disk(self) -> int | None:
        """Bytes of the engine in this process; None for a server, which does not report them."""
        if not self.local:
            return None
        return 0 if self._folder is None else bytes_in(self._folder)

    def _opened(self) -> QdrantClient:
        try:
            if not self.local:
                return QdrantClient(
                    url=self._address,
                    api_key=self._key,
                    timeout=self._options.timeout,
                    prefer_grpc=self._options.prefer_grpc,
                    check_compatibility=False,
                )
            if self._folder is None:
                return QdrantClient(":memory:")
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            return QdrantClient(path=str(self._folder), force_disable_check_same_thread=True)
        except FAILURES as exc:
            raise self.failure("open", exc) from exc


def _emptied(connection: sqlite3.Connection) -> bool:
    """Remove deleted rows from a file and its log; return False if another connection reads them.

    Closing the last connection would empty the log, but one that the engine has closed is only gone when the garbage
    collector has found its statements.
    """
    connection.execute("VACUUM")
    busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    return not busy


def patience(exc: Exception, wait: float) -> float | None:
    """Return the seconds before a retry; None if a retry cannot help."""
    if isinstance(exc, ResourceExhaustedResponse):
        return min(float(exc.retry_after_s), LONGEST_WAIT)
    if isinstance(exc, UnexpectedResponse):
        return wait if exc.status_code in BUSY else None
    if isinstance(exc, ResponseHandlingException):
        slow = httpx.ReadTimeout | httpx.WriteTimeout | httpx.PoolTimeout
        return (
            wait
            if isinstance(exc.source, httpx.TransportError) and not isinstance(exc.source, slow)
            else None
        )
    if isinstance(exc, grpc.RpcError) and isinstance(exc, grpc.Call):
        return (
            wait if exc.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED) else None
        )
    return None


def reason(exc: Exception) -> str:
    """Return the cause of an error, on one line."""
    if isinstance(exc, UnexpectedResponse):
        return f"HTTP {exc.status_code} {exc.content[:300].decode('utf-8', 'replace')}"
    if isinstance(exc, ResponseHandlingException):
        return f"{type(exc.source).__name__}: {exc.source}"
    if isinstance(exc, grpc.RpcError) and isinstance(exc, grpc.Call):
        return f"{exc.code()}: {exc.details()}"
    return f"{type(exc).__name__}: {exc}"
