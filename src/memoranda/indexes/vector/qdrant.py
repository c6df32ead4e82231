"""Vectors in Qdrant: a server, a cluster, or the client's own engine in this process.

`qdrant:http://host:6333?shards=6&replicas=2` names a server; `qdrant:` stores everything in the index's folder, or in
memory when there is none, in an engine written in Python for development, not for size: each search looks at
every point. `qdrant_link.Options` lists the options.

All tenants share one collection, `{prefix}-{space}-{dim}`. As Qdrant's guide to multitenancy advises, the tenant's
payload index says `is_tenant` (servers from 1.11 on) and the graph is built per tenant (`m=0`, `payload_m`). Vectors
are stored at length 1 under the distance `Dot`, which is then the cosine; a zero vector stays zero, which `Cosine`
could not hold, and scores 0.

Isolation: the engine in this process serialises calls, so readers see whole writes only. On a server a `put`
is one request per some hundred vectors, and in each the new parts are applied before the parts that the memory no
longer has are deleted. So while a put runs, a search may meet some memories new and others old, a memory with new
parts beside old ones, and in a cluster replicas that lag; no memory is missing in between. Once `put` returned
(`wait=true`), all of it is seen. A put that failed half-way is put again by the store.

Filters are compiled as in `qdrant_filters`. What Qdrant cannot decide, the order of strings, is decided here by
`matches` on the attributes of the candidates. Equal scores at the end of a list make the list grow until none is
left out, so a query that scores thousands of points alike, such as a zero vector, reads them all.

`compact` gives removed space back in this process; a server's optimizer does it on its own time.

Run against the engine in this process, and against a server in the tests that records requests and answers as
Qdrant's API says. Not run: a real server, a cluster, gRPC. Recall, speed and memory there are Qdrant's and were
not measured.
"""

from __future__ import annotations

import json
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memoranda.errors import ConfigError
from memoranda.filters import EVERYTHING, Filter, matches
from memoranda.indexes.ranking import best_parts, cosines
from memoranda.indexes.vector.base import NO_MATCHES, Index, IndexLocation, Matches, Vector, VectorBatch
from memoranda.indexes.vector.floats import batch_vectors, unit, unit_query
from memoranda.indexes.vector.qdrant_filters import EVER, Compiled, column, compiled, fields, with_seqs
from memoranda.indexes.vector.qdrant_link import Link, collection_name, models, read_url

NAMES = uuid.UUID("6f0c1d1e-3f1c-5d0b-9d55-6b1f0f6f7a51")
"""The namespace of the ids of points."""
META = str(uuid.uuid5(NAMES, "watermark"))
"""The point with the watermark: it has no tenant, so no search returns it."""
REQUEST_POINTS, REQUEST_BYTES = 512, 8_000_000
PAGE, IDS = 1_000, 4_000
SPARE = 16
"""Points requested beyond the limit, for ties and further parts."""
DEEP = 8_192
"""Candidates of an inexact filter after which reading all their attributes is cheaper than a longer list."""
JITTER = 2e-6
"""The most by which two sums of the same products differ in the engine in this process; scores are recomputed."""
LAZY = 2.0
"""Seconds between two writes of the watermark."""
TENANTS = 10_000


def payload_indexes() -> dict[str, models.PayloadSchemaType | Any]:
    """Return the payload indexes of a server: only that of the tenant has graphs, else every common keyword had one."""
    times = ("$occurred_at", "$valid_from", "$invalid_at")
    number = models.FloatIndexParams(type=models.FloatIndexType.FLOAT, enable_hnsw=False)
    kind = models.KeywordIndexType.KEYWORD
    return {
        "tenant": models.KeywordIndexParams(type=kind, is_tenant=True),
        "tags": models.KeywordIndexParams(type=kind, enable_hnsw=False),
        "seq": models.IntegerIndexParams(
            type=models.IntegerIndexType.INTEGER, lookup=True, range=True, enable_hnsw=False
        ),
        **{f"num.{column(key)}": number for key in times},
    }


class QdrantIndex(Index):
    """Vectors of all tenants in one collection of Qdrant; see the module for isolation.

    Raises:
        ConfigError: the URL is wrong, or the collection exists with another dimension or distance.
        IndexUnavailable: the server does not answer; or another process has the folder open.
    """

    def __init__(self, url: str, dim: int, place: IndexLocation) -> None:
        address, self._options = read_url(url)
        self.dim = dim
        self.shared = bool(address)
        self._name = collection_name(self._options.collection_prefix, place.space, dim)
        self._rows = max(16, min(REQUEST_POINTS, REQUEST_BYTES // (12 * dim + 1_000)))
        self._rev = self._durable = 0
        self._written = 0.0
        self._link = Link(address, self._options, place.folder)
        try:
            self._ensure()
            self._rev = self._durable = self._read_watermark()
        except BaseException:
            self._link.close()
            raise

    @property
    def identity(self) -> str:
        return f"qdrant {self._link.address} {self._name}"

    @property
    def watermark(self) -> int:
        return self._durable

    def put(self, tenant: str, batch: VectorBatch) -> None:
        vectors = batch_vectors(batch, self.dim)
        with self._link.exclusive():
            if not len(batch):
                return
            points = [self._point(tenant, batch, i, row) for i, row in enumerate(unit(vectors))]
            for start in range(0, len(points), self._rows):
                operations: list[models.UpdateOperation] = [
                    models.UpsertOperation(
                        upsert=models.PointsList(points=points[start : start + self._rows])
                    )
                ]
                if start + self._rows >= len(points):
                    operations += [
                        models.DeleteOperation(delete=models.FilterSelector(filter=stale))
                        for stale in stale_parts(tenant, batch)
                    ]
                self._update("put", operations)

    def remove(self, tenant: str, seqs: Sequence[int]) -> int:
        wanted = sorted({int(seq) for seq in seqs})
        removed = 0
        with self._link.exclusive():
            for start in range(0, len(wanted), IDS):
                where = owned(tenant, with_seqs(wanted[start : start + IDS]))
                count = self._count("remove", where)
                if count:
                    self._update(
                        "remove", [models.DeleteOperation(delete=models.FilterSelector(filter=where))]
                    )
                removed += count
        return removed

    def search(self, tenant: str, query: Vector, limit: int, where: Filter = EVERYTHING) -> Matches:
        vector = unit_query(query, self.dim)
        with self._link.exclusive():
            if limit < 1:
                return NO_MATCHES
            asked = compiled(where)
            return self._nearest(vector, owned(tenant, asked.condition), limit, decider(asked, where))

    def count(self, tenant: str, where: Filter = EVERYTHING) -> int:
        with self._link.exclusive():
            asked = compiled(where)
            condition = owned(tenant, asked.condition)
            keep = decider(asked, where)
            if keep is None:
                return self._count("count", condition)
            return sum(keep(point) for point in self._scroll(condition, ["attributes"]))

    def flush(self, rev: int) -> None:
        with self._link.exclusive():
            self._rev = rev
            if time.monotonic() - self._written >= LAZY:
                self._write_watermark()

    def compact(self) -> None:
        with self._link.exclusive():
            self._write_watermark()
            if not self._link.local:
                return
            if self._link.bytes_on_disk:
                self._link.reopen()
            else:
                self._copy()

    def clear(self) -> None:
        with self._link.exclusive():
            self._rev = self._durable = 0
            if self._link.local:
                self._link.ask("clear", lambda client: client.delete_collection(self._name))
                self._ensure()
                return
            meta = models.PointIdsList(points=[META])
            everything = models.FilterSelector(filter=EVER)
            self._update("clear", [models.DeleteOperation(delete=meta)])
            self._update("clear", [models.DeleteOperation(delete=everything)])

    def health(self) -> dict[str, object]:
        with self._link.exclusive():
            memories = models.Filter(must_not=[models.HasIdCondition(has_id=[META])])
            vectors = self._count("report its health", memories)
            tenants = self._link.ask(
                "report its health",
                lambda client: client.facet(self._name, "tenant", limit=TENANTS, exact=True),
            )
            local = self._link.local
            return {
                "backend": "qdrant",
                "where": self._link.where,
                "collection": self._name,
                "tenants": len(tenants.hits),
                "vectors": vectors,
                "bytes_in_memory": vectors * self.dim * 4 if local else None,
                "bytes_on_disk": self._link.bytes_on_disk,
                "watermark": self._durable,
            }

    def close(self) -> None:
        if self._link.closed:
            return
        with self._link.exclusive():
            try:
                if self._rev != self._durable:
                    self._write_watermark()
            finally:
                self._link.close()

    def _ensure(self) -> None:
        """Create the collection and its payload indexes if they are missing, and check existing ones."""
        if not self._link.ask("open", lambda client: client.collection_exists(self._name)):
            self._link.ask("create its collection", self._create)
        info = self._link.ask("open", lambda client: client.get_collection(self._name))
        vectors = info.config.params.vectors
        if not isinstance(vectors, models.VectorParams) or (
            (vectors.size, vectors.distance) != (self.dim, models.Distance.DOT)
        ):
            raise ConfigError(
                "index.url",
                f"the collection {self._name!r} holds {vectors!r}, not {self.dim} dimensions under Dot; "
                "delete it, or choose another ?collection_prefix=",
            )
        if self._link.local:  # its engine has no payload indexes
            self._link.ask("open", lambda _: self._link.write_ahead())
            return
        for field, schema in payload_indexes().items():
            if field not in (info.payload_schema or {}):
                self._link.ask("index " + field, self._index_maker(field, schema))

    def _index_maker(self, field: str, schema: Any) -> Callable[[Any], object]:
        return lambda client: client.create_payload_index(self._name, field, schema, wait=True)

    def _create(self, client: Any) -> None:
        options = self._options
        vectors = models.VectorParams(
            size=self.dim, distance=models.Distance.DOT, on_disk=options.on_disk or None
        )
        graph = models.HnswConfigDiff(
            m=0,
            payload_m=options.hnsw_m,
            ef_construct=options.ef_construct,
            on_disk=options.on_disk or None,
        )
        try:
            client.create_collection(
                self._name,
                vectors_config=vectors,
                hnsw_config=graph,
                shard_number=options.shards,
                replication_factor=options.replicas,
                write_consistency_factor=options.write_consistency,
                on_disk_payload=options.on_disk or None,
            )
        except Exception:
            if not client.collection_exists(self._name):  # otherwise another process created it first
                raise

    def _point(self, tenant: str, batch: VectorBatch, i: int, row: Vector) -> models.PointStruct:
        seq, part = int(batch.seqs[i]), int(batch.parts[i])
        payload = {"tenant": tenant, "seq": seq, "part": part, **fields(batch.attributes[i], seq)}
        return models.PointStruct(id=point_id(tenant, seq, part), vector=row.tolist(), payload=payload)

    def _update(self, verb: str, operations: Sequence[models.UpdateOperation]) -> None:
        results = self._link.ask(
            verb, lambda client: client.batch_update_points(self._name, operations, wait=True)
        )
        late = [result.status for result in results if result.status != models.UpdateStatus.COMPLETED]
        if late:
            raise self._link.failure(verb, TimeoutError(f"not applied in time ({late[0].value})"))

    def _count(self, verb: str, condition: models.Filter) -> int:
        return self._link.ask(
            verb, lambda client: client.count(self._name, count_filter=condition, exact=True)
        ).count

    def _scroll(self, condition: models.Filter, payload: list[str]) -> Iterator[Any]:
        """All points that pass, in pages."""
        offset: Any = None
        size = PAGE if not self._link.local else 1_000_000_000  # there each page reads every point
        while True:
            start = offset
            points, offset = self._link.ask(
                "read",
                lambda client, start=start: client.scroll(  # type: ignore[misc]
                    self._name, condition, limit=size, offset=start, with_payload=payload
                ),
            )
            yield from points
            if offset is None:
                return

    def _nearest(self, vector: Vector, condition: models.Filter, limit: int, keep: Decider | None) -> Matches:
        """Return the best `limit` of the points that pass `condition` and `keep`."""
        pool = (limit if keep is None else 4 * limit) + SPARE
        while True:
            points = self._candidates(vector, condition, pool, keep is not None)
            chosen = points if keep is None else [point for point in points if keep(point)]
            results = best_parts(*self._scored(vector, chosen), limit)
            if len(points) < pool:
                return results
            lowest = points[-1].score + (JITTER if self._link.local else 0.0)
            if len(results) == limit and results.scores[-1] > lowest:
                return results
            if keep is not None and pool > DEEP and not self._link.local:
                return self._among(vector, condition, limit, keep)
            pool *= 4

    def _among(self, vector: Vector, condition: models.Filter, limit: int, keep: Decider) -> Matches:
        """Like `_nearest`: read all attributes first, then search among the points that pass."""
        ids = [point.id for point in self._scroll(condition, ["attributes"]) if keep(point)]
        parts = [
            self._nearest(
                vector,
                models.Filter(must=[condition, models.HasIdCondition(has_id=ids[start : start + IDS])]),
                limit,
                None,
            )
            for start in range(0, len(ids), IDS)
        ]
        if not parts:
            return NO_MATCHES
        return best_parts(
            np.concatenate([part.seqs for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.parts for part in parts]),
            limit,
        )

    def _candidates(
        self, vector: Vector, condition: models.Filter, pool: int, attributes: bool
    ) -> list[models.ScoredPoint]:
        local, options = self._link.local, self._options
        params = models.SearchParams(hnsw_ef=options.ef, exact=options.exact or None)
        payload = ["seq", "part", "attributes"] if attributes else ["seq", "part"]
        answer = self._link.ask(
            "search",
            lambda client: client.query_points(
                self._name,
                query=vector.tolist(),
                query_filter=condition,
                search_params=None if local else params,
                limit=pool,
                with_payload=payload,
                with_vectors=local,
            ),
        )
        return answer.points

    def _scored(
        self, vector: Vector, points: Sequence[models.ScoredPoint]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.int32]]:
        """Return seqs, cosines and parts. In this process the cosines are recomputed: equal vectors then score
        equal."""
        payloads = [point.payload or {} for point in points]
        if self._link.local:
            rows = np.array([point.vector for point in points], np.float32).reshape(-1, self.dim)
            scores = cosines(rows, vector)
        else:
            scores = np.clip(np.array([point.score for point in points], np.float32), -1, 1)
        seqs = np.array([payload["seq"] for payload in payloads], np.int64)
        return seqs, scores, np.array([payload["part"] for payload in payloads], np.int32)

    def _read_watermark(self) -> int:
        points = self._link.ask("open", lambda client: client.retrieve(self._name, [META], with_payload=True))
        return int((points[0].payload or {}).get("watermark", 0)) if points else 0

    def _write_watermark(self) -> None:
        """Write the watermark. Earlier puts are applied by now, so the revision is never ahead of the data."""
        point = models.PointStruct(id=META, vector=[0.0] * self.dim, payload={"watermark": self._rev})
        self._update("flush", [models.UpsertOperation(upsert=models.PointsList(points=[point]))])
        self._durable, self._written = self._rev, time.monotonic()

    def _copy(self) -> None:
        """Copy the live points to a new engine: the engine in memory never frees removed points."""
        points, _ = self._link.ask(
            "compact", lambda client: client.scroll(self._name, limit=1_000_000_000, with_vectors=True)
        )
        self._link.reopen()
        self._ensure()
        for start in range(0, len(points), self._rows):
            some = [
                models.PointStruct(id=point.id, vector=point.vector or [], payload=point.payload)  # type: ignore[arg-type]
                for point in points[start : start + self._rows]
            ]
            self._update("compact", [models.UpsertOperation(upsert=models.PointsList(points=some))])


Decider = Callable[[Any], bool]
"""Returns True if a point with its attributes passes the filter."""


def decider(asked: Compiled, where: Filter) -> Decider | None:
    """Return what decides on points that the compiled filter selects; None if it is exact."""
    if asked.exact:
        return None
    return lambda point: matches(where, json.loads(point.payload["attributes"]))


def owned(tenant: str, condition: models.Condition) -> models.Filter:
    """Points of the tenant that meet the condition."""
    own = models.FieldCondition(key="tenant", match=models.MatchValue(value=tenant))
    return models.Filter(must=[own] if condition == EVER else [own, condition])


def point_id(tenant: str, seq: int, part: int) -> str:
    """Return a deterministic id, so that putting again replaces the point."""
    return str(uuid.uuid5(NAMES, f"{seq}/{part}/{tenant}"))


def stale_parts(tenant: str, batch: VectorBatch) -> list[models.Filter]:
    """Parts that the batch's memories had and no longer have, one filter per set of parts."""
    parts: dict[int, list[int]] = defaultdict(list)
    for seq, part in zip(batch.seqs.tolist(), batch.parts.tolist(), strict=True):
        parts[seq].append(part)
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for seq, numbers in parts.items():
        alike[tuple(sorted(numbers))].append(seq)
    filters = []
    for numbers_, seqs in alike.items():
        others = models.FieldCondition(key="part", match=models.MatchExcept(**{"except": list(numbers_)}))
        filters.append(models.Filter(must=[others, owned(tenant, with_seqs(seqs))]))
    return filters
