"""A vector index in LanceDB: a table in a folder or an object store, and a tail of changes not written to it yet."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import numpy as np

from memoranda.errors import IndexUnavailable
from memoranda.filters import EVERYTHING, Filter
from memoranda.indexes.ranking import best_parts, cosines
from memoranda.indexes.vector.base import NO_MATCHES, Index, IndexLocation, Matches, Vector, VectorBatch
from memoranda.indexes.vector.floats import batch_vectors, unit, unit_query
from memoranda.indexes.vector.lance_filters import columns, condition, listed, memories
from memoranda.indexes.vector.lance_options import parse, table_name
from memoranda.indexes.vector.lance_table import LanceTable, Version, concat, translated
from memoranda.indexes.vector.lance_tail import Piece, Tail
from memoranda.storage.data_lock import bytes_in

log = logging.getLogger("memoranda.indexes.lancedb")

MARK_BATCHES, MARK_SECONDS = 10, 30.0
"""A flush makes the index durable after so many batches of rows, or so many seconds, since the last time."""
SCALARS_FROM = 20_000
"""Rows from which the columns get indexes; fewer are read in a few ms."""
NARROW = 20_000
"""Up to so many rows that pass a filter are all scored, whatever index there is."""
GRAPH_POOL = 1_000
"""The longest list that the graph is searched for; beyond it, scoring everything is faster."""
ROUNDING = 1e-5
"""An upper bound of the difference between LanceDB's cosines and ours."""
AT_ONCE = 5_000
"""Seqs named in one statement."""


class State(msgspec.Struct, frozen=True):
    """The state that one search sees throughout: one version of the table, and each tenant's changes since."""

    version: Version
    tails: Mapping[str, Tail]

    @property
    def pending(self) -> int:
        """Changes that are not in the table."""
        return sum(len(piece.seqs) for tail in self.tails.values() for piece in tail.pieces)


class LanceIndex(Index):
    """Vectors at length 1 in one LanceDB table per vector space; see `lance_options` for the URL.

    Raises:
        ConfigError: an option is unknown, or the package is missing.
        IndexUnavailable: the table cannot be opened.
    """

    def __init__(self, url: str, dim: int, place: IndexLocation) -> None:
        self.dim = dim
        self._options = parse(url)
        self._lock = threading.RLock()
        """Guards changes of the table and the state."""
        self._tidying = threading.Lock()
        """Guards merging of files and building of indexes. Taken before `_lock`."""
        self._gate = threading.Condition()
        """Guards the state and the versions' readers."""
        self._tidier: threading.Thread | None = None
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._older: list[Version] = []
        self._closed = self._closing = self._torn = self._holes = False
        self._written = self._untidied = self._tried = 0
        self._marked_at = time.monotonic()
        with translated("open its table"):
            folder = self._folder(place.folder)
            name = table_name(place.space, dim)
            self._table = LanceTable(folder, name, dim, self._options.storage)
            self._state = self._opened()

    def _folder(self, folder: Path | None) -> str:
        if self._options.where is not None:
            return self._options.where
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="memoranda-lancedb-")
            return self._temporary.name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return str(folder)

    def _opened(self) -> State:
        facts = self._table.facts
        self._rev = self._durable = int(facts.get("rev", 0))
        version = self._table.version({}, frozenset())
        self._holes = bool(version.count()) and facts.get("holes") != "0"
        if not self._durable and version.count():
            self._table.overwrite(None)  # rows without a durable revision
            version = self._table.version({}, frozenset())
        return State(self._surveyed(version), {})

    def _surveyed(self, version: Version) -> Version:
        tops: dict[str, int] = {}
        rows = version.read(None, ["tenant", "seq"])
        for row in rows.group_by("tenant").aggregate([("seq", "max")]).to_pylist():
            tops[row["tenant"]] = row["seq_max"]
        odd = frozenset(version.read("odd IS NOT NULL", ["tenant"])["tenant"].to_pylist())
        return self._table.version(tops, odd)

    @property
    def watermark(self) -> int:
        return self._durable

    # --- changes -----------------------------------------------------------------------------------

    def put(self, tenant: str, batch: VectorBatch) -> None:
        vectors = batch_vectors(batch, self.dim)
        if not len(batch):
            return
        seqs = np.asarray(batch.seqs, np.int64)
        with self._writing("put"):
            unit_batch = VectorBatch(seqs, np.asarray(batch.parts, np.int32), unit(vectors), batch.attributes)
            top = self._state.version.tops.get(tenant, -1)
            self._change(tenant, Piece(seqs, unit_batch), seqs[seqs <= top].tolist())

    def remove(self, tenant: str, seqs: Sequence[int]) -> int:
        with self._writing("remove"):
            version, tail = self._state.version, self._state.tails.get(tenant)
            wanted = np.unique(np.asarray(seqs, np.int64))
            top = version.tops.get(tenant, -1)
            hidden = tail.hidden if tail is not None else frozenset()
            stored = [seq for seq in wanted[wanted <= top].tolist() if seq not in hidden]
            removed = sum(version.count(memories(tenant, some)) for some in _chunks(stored))
            before = tail.rows.view.count if tail is not None else 0
            if not removed and not before:
                return 0
            after = self._change(tenant, Piece(wanted), stored if removed else [])
            return removed + before - (after.rows.view.count if before else 0)

    def _change(self, tenant: str, piece: Piece, hide: Iterable[int]) -> Tail:
        """Add one change to the tail; a full batch is written to the table first."""
        tails = self._state.tails
        tail = (tails.get(tenant) or Tail(self.dim)).plus(piece, hide)
        state = State(self._state.version, {**tails, tenant: tail})
        if state.pending >= self._options.batch:
            self._write_out(state)
        else:
            self._publish(state)
        return tail

    def _write_out(self, state: State) -> None:
        """Write `state` to the table and publish it. If it raises, no reader sees a change."""
        stale = [
            memories(tenant, some)
            for tenant, tail in state.tails.items()
            for some in _chunks(sorted(tail.hidden))
        ]
        fresh = {tenant: tail.living() for tenant, tail in state.tails.items()}
        rows = {
            tenant: columns(tenant, batch, batch.vectors)
            for tenant, batch in fresh.items()
            if batch is not None
        }
        self._mend()
        self._torn = True
        for sql in stale:
            self._table.delete(sql)
        if rows:
            self._table.add(concat(list(rows.values())))
        tops = dict(state.version.tops)
        for tenant, batch in fresh.items():
            if batch is not None:
                tops[tenant] = max(tops.get(tenant, -1), int(batch.seqs.max()))
        odd = {tenant for tenant, table in rows.items() if table["odd"].null_count < len(table)}
        version = self._table.version(tops, state.version.odd_tenants | odd)
        self._torn = False
        self._holes = self._holes or bool(stale)
        self._publish(State(version, {}))
        self._written += state.pending
        self._untidied += state.pending
        self._tidy_if_due(version)

    def _mend(self) -> None:
        """Undo what an interrupted write left in the table."""
        if self._torn:
            self._table.restore(self._state.version)
            self._torn = False

    def _publish(self, state: State) -> None:
        with self._gate:
            old, self._state = self._state.version, state
            if old is not state.version:
                self._older = [version for version in (*self._older, old) if version.readers]

    # --- questions ---------------------------------------------------------------------------------

    def search(self, tenant: str, query: Vector, limit: int, where: Filter = EVERYTHING) -> Matches:
        vector = unit_query(query, self.dim)
        with self._reading("search") as state:
            if limit < 1:
                return NO_MATCHES
            tail = state.tails.get(tenant)
            stored = NO_MATCHES
            if tenant in state.version.tops:
                hidden = tail.hidden if tail is not None else frozenset()
                stored = self._stored(state.version, tenant, vector, limit, where, hidden)
            if tail is None:
                return stored
            return _merged(stored, tail.rows.search(vector, limit, where), limit)

    def _stored(
        self, version: Version, tenant: str, query: Vector, limit: int, where: Filter, hidden: frozenset[int]
    ) -> Matches:
        """Return the best matches of the table. The list grows until no row beyond it can be a match: parts of one
        memory take one place, hidden rows take none, and rows beyond the list may tie with its last."""
        sql = _passing(version, tenant, where)
        if not query.any():
            return _all_equal(version, sql, limit, hidden)
        pool = limit + max(8, limit // 4)
        graph = version.trained and pool <= GRAPH_POOL and self._is_wide(version, sql)
        options = self._options if graph else None
        while True:
            seqs, parts, vectors = version.nearest(query, sql, pool, options)
            if options is not None and len(seqs) < pool:
                options = None  # a graph may end before the rows do
                continue
            scores = cosines(vectors, query)
            last = scores.min(initial=1)
            shown = ~np.isin(seqs, list(hidden)) if hidden else slice(None)
            matches = best_parts(seqs[shown], scores[shown], parts[shown], limit)
            settled = len(matches) == limit and matches.scores[-1] > last + ROUNDING
            if settled or len(seqs) < pool:
                return matches
            pool *= 4
            options = options if pool <= GRAPH_POOL else None

    def _is_wide(self, version: Version, sql: str | None) -> bool:
        return sql is None or version.count(sql) > NARROW

    def count(self, tenant: str, where: Filter = EVERYTHING) -> int:
        with self._reading("count") as state:
            return self._count(state, tenant, where)

    def _count(self, state: State, tenant: str, where: Filter) -> int:
        tail, stored = state.tails.get(tenant), 0
        if tenant in state.version.tops:
            sql = _passing(state.version, tenant, where)
            if tail is not None and tail.hidden:
                shown = f"seq NOT IN ({listed(tail.hidden)})"
                sql = shown if sql is None else f"({sql}) AND {shown}"
            stored = state.version.count(sql)
        return stored + (tail.rows.count(where) if tail is not None else 0)

    # --- durability --------------------------------------------------------------------------------

    def flush(self, rev: int) -> None:
        with self._writing("flush"):
            self._rev = rev
            waited = time.monotonic() - self._marked_at >= MARK_SECONDS
            rows = self._written + self._state.pending
            if waited or rows >= MARK_BATCHES * self._options.batch:
                self._save()

    def _save(self) -> None:
        """Write every change to the table, and then the revision."""
        if self._state.tails:
            self._write_out(self._state)
        self._mend()
        if self._rev and (self._written or self._rev != self._durable):
            self._table.mark({"rev": str(self._rev), "holes": str(int(self._holes))})
            self._durable = self._rev
        self._written = 0
        self._marked_at = time.monotonic()

    def compact(self) -> None:
        with self._tidying, self._writing("compact"):
            self._save()
            version = self._state.version
            if self._holes:
                self._table.overwrite(version.batches() if version.count() else None)
            self._table.settle()
            if version.count() >= SCALARS_FROM:
                self._table.build_scalar_indexes()
            if self._holes:
                self._holes, self._tried = False, 0
                self._table.mark({"rev": str(self._rev), "holes": "0"})
            self._purge()
            self._tidy_if_due(self._state.version)

    def clear(self) -> None:
        with self._tidying, self._writing("clear"):
            if self._state.version.tops or self._durable or self._torn:
                self._torn = True
                self._table.overwrite(None)
                version = self._table.version({}, frozenset())
                self._torn = self._holes = False
                self._publish(State(version, {}))
                self._table.settle()
                self._purge()
            self._publish(State(self._state.version, {}))
            self._rev = self._durable = self._written = self._untidied = self._tried = 0

    def _show_latest(self) -> None:
        shown = self._state.version
        version = self._table.version(shown.tops, shown.odd_tenants)
        self._publish(State(version, self._state.tails))

    def _purge(self) -> None:
        """Delete every file except those of the latest version, which must have nothing left to merge."""
        self._show_latest()
        self._drain()
        self._table.clean(timedelta(0), everything=True)

    def _drain(self) -> None:
        """Wait until older versions have no reader."""
        with self._gate:
            self._gate.wait_for(lambda: not any(version.readers for version in self._older))
            self._older = []

    # --- tidying -----------------------------------------------------------------------------------

    def _tidy_if_due(self, version: Version) -> None:
        """Merge files and update indexes in a background thread, after a quarter of the rows changed."""
        rows = version.count()
        due = self._untidied >= max(self._options.optimize_every, rows // 4)
        due = due or (self._trains(rows) and not version.trained and rows >= 2 * self._tried)
        if due and not self._closing and (self._tidier is None or not self._tidier.is_alive()):
            self._untidied, self._tried = 0, rows
            self._tidier = threading.Thread(target=self._tidy, args=(rows,), name="lancedb-tidier")
            self._tidier.start()

    def _trains(self, rows: int) -> bool:
        return self._options.index != "none" and rows >= self._options.train_rows

    def _tidy(self, rows: int) -> None:
        try:
            with self._tidying, translated("tidy up"):
                if self._closed:
                    return
                table = self._table.sibling()
                if rows >= SCALARS_FROM:
                    table.build_scalar_indexes()
                if self._trains(rows) and not table.has_index("vector"):
                    table.build_vector_index()
                with self._lock:
                    if not self._closed and not self._torn:
                        self._merge_files()
        except IndexUnavailable as exc:
            log.error("tidying up failed, the index answers as before, and it is tried again later: %s", exc)

    def _merge_files(self) -> None:
        """Merge files. Writers wait meanwhile, searches do not: a merge concurrent with replacements always failed, and
        left its files behind."""
        begun = time.time()
        self._table.optimize()
        self._show_latest()
        self._drain()
        # The current version was committed after `begun`.
        self._table.clean(timedelta(seconds=time.time() - begun), everything=False)
        self._show_latest()

    def health(self) -> dict[str, object]:
        with self._reading("report") as state:
            counts = {}
            if state.version.tops:
                rows = (
                    state.version.read(None, ["tenant"]).group_by("tenant").aggregate([("tenant", "count")])
                )
                counts = {row["tenant"]: row["tenant_count"] for row in rows.to_pylist()}
            for tenant in state.tails:
                counts[tenant] = self._count(state, tenant, EVERYTHING)
            waiting = sum(tail.nbytes for tail in state.tails.values())
            return {
                "backend": "lancedb",
                "tenants": sum(count > 0 for count in counts.values()),
                "vectors": sum(counts.values()),
                "waiting_changes": state.pending,
                "vector_index": "hnsw_sq" if state.version.trained else "none",
                "bytes_in_memory": waiting + self._table.cached_bytes,
                "bytes_on_disk": self._bytes_on_disk(state.version),
                "watermark": self._durable,
            }

    def _bytes_on_disk(self, version: Version) -> int:
        if self._table.path is None:
            return version.nbytes
        return bytes_in(self._table.path)

    def close(self) -> None:
        with self._lock:
            self._closing = True
            tidier = self._tidier
        if tidier is not None:
            tidier.join()
        with self._lock:
            if self._closed:
                return
            try:
                with translated("save"):
                    if self._temporary is None:
                        self._save()
            finally:
                with self._gate:
                    self._closed = True
                    self._gate.wait_for(
                        lambda: not any(v.readers for v in (*self._older, self._state.version))
                    )
                if self._temporary is not None:
                    self._temporary.cleanup()

    # --- access ------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self, verb: str) -> Iterator[State]:
        with self._gate:
            self._open()
            state = self._state
            state.version.readers += 1
        try:
            with translated(verb):
                yield state
        finally:
            with self._gate:
                state.version.readers -= 1
                self._gate.notify_all()

    @contextmanager
    def _writing(self, verb: str) -> Iterator[None]:
        with self._lock, translated(verb):
            self._open()
            yield

    def _open(self) -> None:
        if self._closed:
            raise IndexUnavailable("The vector index is closed.")


def _passing(version: Version, tenant: str, where: Filter) -> str | None:
    """Return the SQL for the tenant's rows that pass; None if every row of the table does."""
    alone = len(version.tops) == 1
    if where == EVERYTHING:
        return None if alone else condition(tenant, where)
    odd = version.odd(tenant, condition(tenant, EVERYTHING))
    return condition(None if alone else tenant, where, odd)


def _chunks(seqs: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(seqs), AT_ONCE):
        yield seqs[start : start + AT_ONCE]


def _all_equal(version: Version, sql: str | None, limit: int, hidden: frozenset[int]) -> Matches:
    """Return the matches of a zero query: every row at cosine 0, the first seqs."""
    rows = version.read(sql, ["seq", "part"])
    seqs, parts = rows["seq"].to_numpy(), rows["part"].to_numpy()
    shown = ~np.isin(seqs, list(hidden))
    return best_parts(seqs[shown], np.zeros(int(shown.sum()), np.float32), parts[shown], limit)


def _merged(first: Matches, second: Matches, limit: int) -> Matches:
    return best_parts(
        np.concatenate([first.seqs, second.seqs]),
        np.concatenate([first.scores, second.scores]),
        np.concatenate([first.parts, second.parts]),
        limit,
    )
