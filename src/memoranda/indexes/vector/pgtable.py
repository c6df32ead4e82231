"""The table of one vector space in PostgreSQL, and its approximate index."""

from __future__ import annotations

import logging
import re
import threading
import time
from hashlib import blake2b
from math import isqrt
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

import msgspec
from msgspec.structs import replace

from memoranda.errors import ConfigError, IndexUnavailable, StorageError
from memoranda.storage.sql.base import Database
from memoranda.storage.sql.base import Options as DatabaseOptions
from memoranda.storage.sql.jsonb import COLUMNS, DEFINITION, TYPES, indexes, policy
from memoranda.storage.sql.pglink import connect
from memoranda.storage.sql.postgres import PostgresDatabase

if TYPE_CHECKING:
    import psycopg
else:
    from memoranda.storage.sql.pglink import psycopg

log = logging.getLogger("memoranda.indexes")
OLDEST = (0, 8)
LOOK_SECONDS = 30.0
VISIT_COST = 10
"""The cost of visiting one vector in the approximate index, in exact comparisons."""
INLINE_BYTES = 6_000
"""Vectors up to this size are stored in the row's page, so that a scan need not fetch them one by one."""
MOST_DIMENSIONS = {"vector": 2_000, "halfvec": 4_000}
"""The most dimensions that pgvector can index, by type."""
BUILD_MEMORY = (64 << 20, 2 << 30)


class Options(msgspec.Struct, frozen=True):
    """The options in the query of the URL.

    `index` is hnsw, ivfflat or none; `type` is vector or halfvec. `m`, `ef_construction` and `ef_search` are HNSW's,
    `lists` (0: by the table's size) and `probes` IVFFlat's. Scopes of up to `exact_below` vectors are searched
    exactly; the index is built at `build_at` vectors.
    """

    index: str = "hnsw"
    type: str = "vector"
    m: int = 16
    ef_construction: int = 200
    ef_search: int = 100
    lists: int = 0
    probes: int = 10
    exact_below: int = 3_000
    build_at: int = 50_000

    @property
    def half(self) -> bool:
        """True if vectors are stored in half precision."""
        return self.type == "halfvec"


RANGES = {
    "m": (2, 100),
    "ef_construction": (4, 1_000),
    "ef_search": (1, 1_000),
    "lists": (0, 32_768),
    "probes": (1, 32_768),
    "exact_below": (0, 10_000_000),
    "build_at": (1, 1_000_000_000),
}
CHOICES = {"index": ("hnsw", "ivfflat", "none"), "type": ("vector", "halfvec")}


def options(url: str, dim: int) -> tuple[Options, str]:
    """Return the options in the URL's query, and the address of another server without them ("" for the rows' own).

    Raises:
        ConfigError: an option is unknown or out of its range.
    """
    named, _, query = url.partition(":")[2].partition("?")
    given = dict(parse_qsl(query, keep_blank_values=True))
    ours: dict[str, Any] = {}
    for key in [key for key in given if key in RANGES or key in CHOICES]:
        ours[key] = _option(key, given.pop(key))
    if given and not named:
        known = ", ".join([*CHOICES, *RANGES])
        raise ConfigError("index.url", f"unknown option {next(iter(given))!r}; pgvector knows {known}")
    if named and not named.startswith(("postgresql:", "postgres:")):
        raise ConfigError("index.url", "after `pgvector:` comes nothing, or postgresql://user@host/name")
    parsed = replace(Options(), **ours)
    if parsed.index == "hnsw" and parsed.ef_construction < 2 * parsed.m:
        raise ConfigError("index.url", "`ef_construction` must be at least twice `m`")
    most = 16_000
    if dim > most:
        raise ConfigError("index.url", f"pgvector holds at most {most} dimensions, the model has {dim}")
    if dim > MOST_DIMENSIONS["halfvec"]:
        parsed = replace(parsed, index="none")
    return parsed, named + ("?" + urlencode(given) if given else "")


def _option(key: str, value: str) -> str | int:
    if key in CHOICES:
        if value not in CHOICES[key]:
            raise ConfigError(
                "index.url", f"{key} {value!r} is unknown; use one of {', '.join(CHOICES[key])}"
            )
        return value
    low, high = RANGES[key]
    if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
        raise ConfigError("index.url", f"`{key}` must be a whole number from {low} to {high}, not {value!r}")
    return int(value)


AWAY_SECONDS = 1.0
"""Seconds that a call waits for an index server that is unavailable: rows are written meanwhile, and it catches up."""


def own_database(address: str, rows: Database | None) -> PostgresDatabase:
    """Return the database with the vectors: the rows' own, or that of `address`."""
    if not address:
        if not isinstance(rows, PostgresDatabase):
            raise ConfigError(
                "index.url",
                "`pgvector:` lives in the rows' database, which is not PostgreSQL; set `database.url` to a"
                " PostgreSQL, or name a server: pgvector:postgresql://user@host/name",
            )
        return rows
    try:
        return PostgresDatabase(address, DatabaseOptions(retry_seconds=AWAY_SECONDS), schema=False)
    except ConfigError as exc:
        raise ConfigError("index.url", str(exc).partition(": ")[2]) from exc
    except StorageError as exc:
        raise IndexUnavailable(str(exc).replace("database.url", "index.url", 1)) from exc


class Table:
    """One table `vectors_<space>_<dim>`, created if it does not exist."""

    def __init__(
        self, given: Options, space: str, dim: int, database: PostgresDatabase, inside: bool
    ) -> None:
        self.name = _name(space, dim, given.type)
        self.built = False
        self.rows = 0
        self._path = f"{database.address.schema}.{self.name}"
        self._options = given
        self._dim = dim
        self._database = database
        self._inside = inside
        self._look_at = 0.0
        self._lock = threading.Lock()
        self._builder: threading.Thread | None = None
        self._building: Any = None
        self._cancelled = False
        if not inside:
            database.write(lambda c: _make_schema(c.raw, database.address.schema)).result()  # type: ignore[attr-defined]
        self.version, schema = database.write(lambda c: _extension(c.raw)).result()  # type: ignore[attr-defined]
        self._schema = f'"{schema}"'
        self._compose()
        database.write(lambda c: self._create(c.raw)).result()  # type: ignore[attr-defined]
        kinds = f"'{self._schema}.{given.type}'::regtype"
        oids = database.read(
            lambda c: c.select(f"SELECT oid::bigint, typarray::bigint FROM pg_type WHERE oid = {kinds}")
        )
        self.element_type, self.array_type = map(int, oids[0])
        self.refresh(at_once=True)

    def _compose(self) -> None:
        kind, less = f"{self._schema}.{self._options.type}", f"OPERATOR({self._schema}.<#>)"
        target = f"$2::{kind}"
        names = ", ".join(("seq", "part", "vector", *COLUMNS))
        places = ", ".join(
            f"${n + 2}::{cast}" for n, cast in enumerate(("bigint[]", "bigint[]", f"{kind}[]", *TYPES))
        )
        given = f"SELECT $1::text, given.* FROM unnest({places}) AS given"
        self.insert = f"INSERT INTO {self.name} (tenant_id, {names}) {given}"
        self.delete = f"DELETE FROM {self.name} WHERE tenant_id = $1::text AND seq = ANY($2::bigint[])"
        newest = f"(SELECT max(seq) FROM {self.name} WHERE tenant_id = $1::text)"
        self.replace = f"{self.delete} AND $3::bigint <= {newest}"
        passing = f"FROM {self.name} WHERE tenant_id = $1::text AND ({{where}})"
        # Adding 0 prevents the planner from using the approximate index.
        self.exact = (
            f"SELECT seq, part, (vector {less} {target}) + 0 AS distance {passing}"
            " ORDER BY distance, seq, part LIMIT {limit}"
        )
        column = "vector"
        self._operators = f"{self._schema}.{self._options.type}_ip_ops"
        if self._dim > MOST_DIMENSIONS[self._options.type]:
            half = f"{self._schema}.halfvec({self._dim})"
            column, target = f"(vector::{half})", f"{target}::{half}"
            self._operators = f"{self._schema}.halfvec_ip_ops"
        self._operand = f"({column})"
        self.near = (
            f"SELECT seq, part, vector {less} $2::{kind} {passing}"
            f" ORDER BY {column} {less} {target} LIMIT {{limit}}"
        )
        self.save_mark = (
            f"INSERT INTO vector_marks VALUES ('{self.name}', $1::bigint)"
            " ON CONFLICT (name) DO UPDATE SET rev = excluded.rev"
        )

    def _create(self, raw: Any) -> None:
        """Create the tables if they do not exist, one process at a time."""
        raw.execute("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", [f"memoranda:{self._path}"])
        if not self._inside:
            raw.execute(
                "CREATE TABLE IF NOT EXISTS vector_marks (name TEXT PRIMARY KEY, rev BIGINT NOT NULL)"
            )
        if raw.execute(f"SELECT to_regclass('{self._path}') IS NOT NULL").fetchone()[0]:
            return
        storage = "PLAIN" if self._dim * (2 if self._options.half else 4) <= INLINE_BYTES else "EXTERNAL"
        raw.execute(
            f'CREATE TABLE {self.name} (tenant_id TEXT COLLATE "C" NOT NULL, seq BIGINT NOT NULL, part BIGINT NOT NULL,'
            f" vector {self._schema}.{self._options.type}({self._dim}) NOT NULL, {DEFINITION},"
            " PRIMARY KEY (tenant_id, seq, part)) WITH (toast_tuple_target = 8160);"
            f" ALTER TABLE {self.name} ALTER COLUMN vector SET STORAGE {storage};"
            f" {indexes(self.name)}; {policy(self.name)}"
        )

    def mark(self) -> int:
        """Return the revision saved last; 0 for a new table."""
        if self._inside:
            return 0
        sql = f"SELECT rev FROM vector_marks WHERE name = '{self.name}'"
        rows = self._database.read(lambda c: c.select(sql))
        return int(rows[0][0]) if rows else 0

    # --- the approximate index ---------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """True if there are enough rows for an approximate index, and it is configured."""
        return self._options.index != "none" and self.rows >= self._options.build_at

    @property
    def has_graph(self) -> bool:
        """True if new vectors are inserted into a graph, which this process may still be building."""
        return self._options.index == "hnsw" and (self._builder is not None or self.built)

    def grew(self, rows: int) -> None:
        """Add to the row count, and start building the index if there are enough rows."""
        self.rows += rows
        if self.built or not self.due or self._builder is not None:
            return
        with self._lock:
            if self._builder is None and not self._cancelled:
                self._builder = threading.Thread(
                    target=self._try_build, name="memoranda-pgvector", daemon=True
                )
                self._builder.start()

    def refresh(self, at_once: bool = False) -> None:
        """Read what other processes changed: the number of rows, and whether the index exists."""
        now = time.monotonic()
        if now < self._look_at and not at_once:
            return
        self._look_at = now + LOOK_SECONDS
        sql = (
            "SELECT c.reltuples::bigint, coalesce((SELECT i.indisvalid FROM pg_index i"
            f" WHERE i.indexrelid = to_regclass('{self._path}_near')), false)"
            f" FROM pg_class c WHERE c.oid = to_regclass('{self._path}')"
        )
        (known, self.built), *_ = self._database.read(lambda c: c.select(sql))
        if known <= 0 and not self.rows:
            some = f"SELECT count(*) FROM (SELECT 1 FROM {self.name} LIMIT {self._options.build_at}) AS first_rows"
            known = self._database.read(lambda c: c.select(some))[0][0]
        self.rows = max(self.rows, int(known))

    def exact_bound(self, pool: int) -> int:
        """Return the number of passing vectors up to which exact search is cheaper, for a list of `pool`.

        Approximate search visits pool x rows / passing vectors, each at `VISIT_COST` times the cost.
        """
        return max(self._options.exact_below, isqrt(VISIT_COST * pool * self.rows))

    def near_settings(self, pool: int, scan: int) -> str:
        """Return statements that make the next search of the transaction use the index, with at most `scan` entries."""
        chosen = self._options
        if chosen.index == "ivfflat":
            own = f"SET LOCAL ivfflat.probes = {chosen.probes}; SET LOCAL ivfflat.iterative_scan = relaxed_order"
        else:
            own = (
                f"SET LOCAL hnsw.ef_search = {min(1000, max(chosen.ef_search, pool))};"
                f" SET LOCAL hnsw.iterative_scan = relaxed_order; SET LOCAL hnsw.max_scan_tuples = {scan}"
            )
        return f"{own}; SET LOCAL enable_sort = off"  # every other plan would have to sort

    def _try_build(self) -> None:
        try:
            self.build()
        except (psycopg.Error, StorageError, ConfigError) as exc:
            if not self._cancelled:
                log.warning("the approximate index was not built, searches stay exact: %s", exc)
        finally:
            self._builder = None

    def build_now(self) -> None:
        """Build the index if it is due and no other process is building it.

        Raises:
            StorageError: it could not be built.
        """
        builder = self._builder
        if builder is not None:
            builder.join()
        self.refresh(at_once=True)
        if self.due and not self.built:
            self.build()

    def build(self) -> None:
        """Build the index on a connection of its own, while others read and write; one process at a time.

        Raises:
            StorageError: it could not be built.
        """
        with connect(self._database.address, 0, "index.url") as raw:
            key = f"memoranda:{self._path}_near"
            row = raw.execute("SELECT pg_try_advisory_lock(hashtextextended($1, 0))", [key]).fetchone()
            if row is None or not row[0]:
                return  # another process builds it
            self._building = raw
            try:
                self._create_index(raw)
            except psycopg.errors.DiskFull:  # /dev/shm of a container is too small for parallel workers
                raw.execute("SET max_parallel_maintenance_workers = 0")
                self._create_index(raw)
            except psycopg.Error as exc:
                raise StorageError(f"{self.name}_near was not built: {exc}") from exc
            finally:
                self._building = None
        self.refresh(at_once=True)

    def _create_index(self, raw: Any) -> None:
        chosen = self._options
        row = raw.execute(
            f"SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{self._path}_near')"
        ).fetchone()
        if row is not None:
            if row[0]:
                return
            raw.execute(f"DROP INDEX CONCURRENTLY {self.name}_near")  # left by an interrupted build
        need = self.rows * (self._dim * (2 if chosen.half else 4) + 8 * chosen.m * 8)
        low, high = BUILD_MEMORY
        raw.execute(f"SET maintenance_work_mem = '{min(high, max(low, need)) >> 10}kB'")
        if chosen.index == "hnsw":
            given = f"m = {chosen.m}, ef_construction = {chosen.ef_construction}"
        else:
            given = f"lists = {chosen.lists or max(10, min(32_768, self.rows // 1_000))}"
        raw.execute(
            f"CREATE INDEX CONCURRENTLY {self.name}_near ON {self.name}"
            f" USING {chosen.index} ({self._operand} {self._operators}) WITH ({given})"
        )
        raw.execute(f"ANALYZE {self.name}")

    def cancel(self) -> None:
        """Stop a running build; the next opening starts it again."""
        self._cancelled = True
        builder, building = self._builder, self._building
        if building is not None:
            building.cancel_safe()
        if builder is not None:
            builder.join()


def _name(space: str, dim: int, kind: str) -> str:
    slug = re.sub(r"[^a-z0-9]+", "_", space.lower())[:24].strip("_")
    if slug != space:
        slug = f"{slug}_{blake2b(space.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"
    return f"vectors_{slug}_{dim}" + ("_half" if kind == "halfvec" else "")


def _make_schema(raw: Any, schema: str) -> None:
    row = raw.execute("SELECT 1 FROM pg_namespace WHERE nspname = $1", [schema]).fetchone()
    if row is None:
        try:
            raw.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
        except psycopg.errors.InsufficientPrivilege as exc:
            raise ConfigError(
                "index.url",
                f"the role may not create the schema {schema!r}; grant it CREATE on the database, or name a schema"
                " that is its own with ?schema=",
            ) from exc


def _extension(raw: Any) -> tuple[str, str]:
    """Return version and schema of pgvector, which is created if the role may."""
    sql = (
        "SELECT e.extversion, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
        " WHERE e.extname = 'vector'"
    )
    row = raw.execute(sql).fetchone()
    if row is None:
        try:
            raw.execute("CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA public")
        except psycopg.errors.InsufficientPrivilege as exc:
            raise ConfigError(
                "index.url",
                "the database has no extension `vector`, and this role may not create it; as a superuser, run in"
                " that database: CREATE EXTENSION vector",
            ) from exc
        except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as exc:
            raise ConfigError(
                "index.url",
                "the server has no pgvector; install the package postgresql-<version>-pgvector there",
            ) from exc
        row = raw.execute(sql).fetchone()
    version, schema = row
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        raise ConfigError(
            "index.url",
            f"pgvector {version} is too old, 0.8 is needed; install it on the server, then run in the database:"
            " ALTER EXTENSION vector UPDATE",
        )
    return version, schema
