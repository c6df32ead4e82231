"""The default vector index: in this process, exact scores after a quantised short list, cached in a folder."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigError, IndexUnavailable
from memoranda.filters import EVERYTHING, Filter
from memoranda.indexes.vector.base import (
    NO_MATCHES,
    Index,
    IndexLocation,
    Matches,
    Vector,
    VectorBatch,
    Vectors,
)
from memoranda.indexes.vector.cache import Cache
from memoranda.indexes.vector.floats import FileFloats, Floats, RamFloats, batch_vectors, unit, unit_query
from memoranda.indexes.vector.partition import Partition
from memoranda.indexes.vector.quantised import open_engine

IN_MEMORY = 2048
"""The most vectors of a tenant in memory; more are in a file of their own, if there is a folder."""
SEAL_FROM, SEAL_AT_MOST = 4096, 65_536
"""A put seals the vectors in no block once they are a quarter of the partition, within these bounds."""
WORTH_SEALING = 1024
COPY_COST, QUANTISE_COST = 14, 40
"""The cost of growing a block per existing row and per new row, in rows scored in float (0.06 us each)."""
WAITING = 64
"""Rows that small puts may leave waiting for the next search: added together they cost a tenth as much."""
DEAD_SHARE = 0.25
READY_ROWS = 100_000
"""The most vectors of a tenant that are searched on an event loop: 1 to 2 ms."""
CHECKPOINT_FROM, CHECKPOINT_AT_MOST = 10_000, 100_000


class MemoryIndex(Index):
    """Vectors by tenant in arrays of this process. `memory:?engine=turbovec` (the default), `numkong` or `float` is the
    engine of the short list; scores are always float.

    Raises:
        ConfigError: an option is unknown, or the engine's package is missing.
    """

    def __init__(self, url: str, dim: int, place: IndexLocation) -> None:
        folder = place.folder
        options = dict(parse_qsl(url.partition("?")[2]))
        name = options.pop("engine", "turbovec")
        if options:
            raise ConfigError("index.url", f"unknown option {', '.join(options)}; `engine` is the only one")
        self.dim = dim
        self._engine_name = name
        self._engine = open_engine(name, dim)
        self._lock = threading.RLock()
        self._sealer: threading.Thread | None = None
        self._closed = False
        self._changes = 0
        with translated("open"):
            self._cache = Cache(folder, dim, self._engine) if folder is not None else None
            loaded = self._cache.load() if self._cache is not None else None
        self._partitions = loaded.partitions if loaded is not None else {}
        self._rev = self._durable = loaded.rev if loaded is not None else 0
        self._waiting: dict[str, Waiting] = {}
        self._serials = count(1 + max((p.serial for p in self._partitions.values()), default=0))

    @property
    def watermark(self) -> int:
        return self._durable

    def put(self, tenant: str, batch: VectorBatch) -> None:
        vectors = batch_vectors(batch, self.dim)
        if not len(batch):
            return
        with self._writing("put"):
            waiting = self._waiting.get(tenant)
            if waiting is not None and not waiting.takes(batch):
                self._absorb(tenant)
                waiting = None
            if len(batch) >= WAITING:
                self._take(tenant, batch, unit(vectors))
                return
            if waiting is None:
                waiting = self._waiting[tenant] = Waiting()
            waiting.add(batch, vectors)

    def _absorb(self, tenant: str) -> None:
        """Add the waiting rows of the tenant's small puts to its partition. Locks, if the caller has not."""
        with self._writing("put"):
            waiting = self._waiting.get(tenant)
            if waiting is not None:
                batch = waiting.batch()
                self._take(tenant, batch, unit(batch.vectors))
                del self._waiting[
                    tenant
                ]  # last: a search that sees nothing waiting reads the partition at once

    def _absorb_all(self) -> None:
        for tenant in list(self._waiting):
            self._absorb(tenant)

    def _take(self, tenant: str, batch: VectorBatch, units: Vectors) -> None:
        partition = self._partitions.get(tenant) or self._new(len(batch))
        self._make_space(partition, len(batch))
        killed = partition.put(batch, units)
        self._partitions[tenant] = partition
        self._changes += len(batch) + killed
        self._tidy(tenant, partition)

    def remove(self, tenant: str, seqs: Sequence[int]) -> int:
        with self._writing("remove"):
            self._absorb(tenant)
            partition = self._partitions.get(tenant)
            if partition is None or not len(seqs):
                return 0
            removed = partition.remove(np.asarray(seqs, np.int64))
            self._changes += removed
            self._tidy(tenant, partition)
            return removed

    def search(self, tenant: str, query: Vector, limit: int, where: Filter = EVERYTHING) -> Matches:
        vector = unit_query(query, self.dim)
        if tenant in self._waiting:
            self._absorb(tenant)
        partition = self._reading().get(tenant)
        if partition is None or limit < 1:
            return NO_MATCHES
        matches = partition.search(vector, limit, where)
        if partition.scanned:
            self._seal_if_paid_for(tenant, partition)
        return matches

    def scores(self, tenant: str, query: Vector, seqs: NDArray[np.int64]) -> Matches:
        if tenant in self._waiting:
            self._absorb(tenant)
        partition = self._reading().get(tenant)
        return NO_MATCHES if partition is None else partition.scores(unit_query(query, self.dim), seqs)

    def ready(self, tenant: str) -> bool:
        partition = self._partitions.get(tenant)
        if partition is not None and partition.view.n > READY_ROWS:
            return False
        if tenant not in self._waiting:
            return True
        free = self._lock.acquire(blocking=False)  # a search adds the waiting rows, under the lock
        if free:
            self._lock.release()
        return free

    def count(self, tenant: str, where: Filter = EVERYTHING) -> int:
        if tenant in self._waiting:
            self._absorb(tenant)
        partition = self._reading().get(tenant)
        return 0 if partition is None else partition.count(where)

    def flush(self, rev: int) -> None:
        with self._writing("flush"):
            self._rev = rev
            total = sum(partition.view.n for partition in self._partitions.values())
            if self._changes >= min(CHECKPOINT_AT_MOST, max(CHECKPOINT_FROM, total // 4)):
                self._absorb_all()
                self._save()

    def compact(self) -> None:
        with self._writing("compact"):
            self._absorb_all()
            for tenant, partition in list(self._partitions.items()):
                if partition.view.dead:
                    self._compact(tenant, partition)
            self._save()

    def clear(self) -> None:
        with self._writing("clear"):
            self._partitions, self._waiting = {}, {}
            self._rev = self._durable = self._changes = 0
            if self._cache is not None:
                self._cache.wipe()

    def health(self) -> dict[str, object]:
        self._reading()
        self._absorb_all()
        partitions = list(self._reading().values())
        views = [partition.view for partition in partitions]
        resident = sum(p.floats.resident_bytes + p.columns.nbytes + 20 * p.view.n for p in partitions)
        return {
            "backend": "memory",
            "engine": self._engine_name,
            "tenants": len(partitions),
            "vectors": sum(view.count for view in views),
            "removed_vectors": sum(view.dead for view in views),
            "quantised_vectors": sum(view.blocks.sealed for view in views),
            "bytes_in_memory": resident + sum(view.blocks.nbytes for view in views),
            "bytes_on_disk": self._cache.nbytes if self._cache is not None else 0,
            "watermark": self._durable,
        }

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            with translated("save"):
                self._absorb_all()
            self._closed = True
            partitions, self._partitions = self._partitions, {}
            if self._rev and (self._changes or self._rev != self._durable):
                with translated("save"):
                    self._save(partitions)

    def _new(self, rows: int) -> Partition:
        serial = next(self._serials)
        return Partition(self._floats(serial, rows), self._engine, serial)

    def _floats(self, serial: int, rows: int) -> Floats:
        if self._cache is None or rows <= IN_MEMORY:
            return RamFloats(self.dim)
        return FileFloats(self._cache.sidecar(serial), self.dim, 0)

    def _make_space(self, partition: Partition, rows: int) -> None:
        n = partition.view.n
        if self._cache is not None and isinstance(partition.floats, RamFloats) and n + rows > IN_MEMORY:
            floats = FileFloats(self._cache.sidecar(partition.serial), self.dim, 0)
            floats.write(0, partition.floats.rows()[:n])
            partition.floats = floats

    def _tidy(self, tenant: str, partition: Partition) -> None:
        view = partition.view
        if view.dead > max(SEAL_FROM // 4, view.n * DEAD_SHARE):
            self._compact(tenant, partition)
        elif partition.unsealed >= min(SEAL_AT_MOST, max(SEAL_FROM, view.n // 4)):
            partition.seal()

    def _compact(self, tenant: str, partition: Partition) -> None:
        if partition.view.count:
            serial = next(self._serials)
            floats = self._floats(serial, partition.view.count)
            self._partitions[tenant] = partition.compacted(floats, serial)
        else:
            del self._partitions[tenant]

    def _seal_if_paid_for(self, tenant: str, partition: Partition) -> None:
        """Seal in a background thread once searches have spent as much on unsealed vectors as sealing costs."""
        pieces = partition.view.blocks.pieces
        tail = partition.unsealed
        copied = pieces[-1].block.rows if pieces else 0
        if tail < WORTH_SEALING or partition.scanned < COPY_COST * copied + QUANTISE_COST * tail:
            return
        if self._sealer is None or not self._sealer.is_alive():
            partition.scanned = 0
            self._sealer = threading.Thread(target=self._seal, args=(tenant, partition), name="index-sealer")
            self._sealer.start()

    def _seal(self, tenant: str, partition: Partition) -> None:
        with self._lock:
            self._absorb_all()  # no search may wait for this lock with rows still to add
            if self._partitions.get(tenant) is partition:
                partition.seal()

    def _save(self, partitions: dict[str, Partition] | None = None) -> None:
        if self._cache is not None:
            saved = self._partitions if partitions is None else partitions
            for partition in saved.values():
                # The open block is rewritten anyway, and a process that opens the cache has nothing left to scan.
                if partition.view.blocks.sealed and partition.unsealed >= WORTH_SEALING:
                    partition.seal()
            self._cache.save(self._rev, saved)
            self._durable = self._rev
        self._changes = 0

    def _reading(self) -> dict[str, Partition]:
        if self._closed:
            raise IndexUnavailable("The vector index is closed.")
        return self._partitions

    @contextmanager
    def _writing(self, verb: str) -> Iterator[None]:
        with self._lock, translated(verb):
            self._reading()
            yield


class Waiting:
    """Rows of one tenant that were put and are not in its partition yet; no seq twice."""

    def __init__(self) -> None:
        self.batches: list[VectorBatch] = []
        self.vectors: list[Vectors] = []
        self.seqs: set[int] = set()

    def takes(self, batch: VectorBatch) -> bool:
        """Return True if the batch may wait with the others: they are few, and it replaces none of them."""
        return len(self.seqs) + len(batch) < WAITING and self.seqs.isdisjoint(batch.seqs.tolist())

    def add(self, batch: VectorBatch, vectors: Vectors) -> None:
        """Add the batch."""
        self.batches.append(batch)
        self.vectors.append(vectors)
        self.seqs.update(batch.seqs.tolist())

    def batch(self) -> VectorBatch:
        """Return all waiting rows as one batch."""
        return VectorBatch(
            np.concatenate([batch.seqs for batch in self.batches]),
            np.concatenate([batch.parts for batch in self.batches]),
            np.concatenate(self.vectors),
            [row for batch in self.batches for row in batch.attributes],
        )


@contextmanager
def translated(verb: str) -> Iterator[None]:
    """Raise file errors as IndexUnavailable."""
    try:
        yield
    except OSError as exc:
        raise IndexUnavailable(f"The vector index could not {verb}: {exc}. Rows are safe.") from exc
