"""The values of overviews of memories: near-duplicates, facets and projections. No behaviour, no I/O."""

from __future__ import annotations

from datetime import datetime

import msgspec


class NearDuplicate(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.near_duplicate"):
    """Two memories of one scope that say nearly the same. `reason` is `cosine` or `jaccard`."""

    first: str
    second: str
    cosine: float | None
    jaccard: float
    reason: str

    @property
    def likeness(self) -> float:
        """The greater of the two similarities."""
        return max(self.cosine or 0.0, self.jaccard)


class NearDuplicatePage(msgspec.Struct, kw_only=True, tag_field="object", tag="list"):
    """Near-duplicates among the `compared` newest memories, most alike first, or among the next older ones than
    `after`; `after=last_id` asks for those of the next older ones."""

    data: list[NearDuplicate]
    compared: int
    last_id: str | None
    has_more: bool


MOST_POINTS = 100_000
"""The most memories in one projection."""


class Projection(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.projection"):
    """Memories as points of a plane: equally long columns in the order of writing; each of `points` is an x and
    a y. `total` memories pass the selection; those without a vector are left out, and of many only some are taken.
    `explained` is the share of the variance of the vectors that the plane shows, 0..1."""

    ids: list[str]
    points: list[tuple[float, float]]
    kinds: list[str]
    scopes: list[str]
    occurred_at: list[datetime]
    total: int
    explained: float


class FacetValue(msgspec.Struct, kw_only=True):
    """A value of a facet, and how many memories have it."""

    value: str
    count: int


class Facets(msgspec.Struct, kw_only=True, tag_field="object", tag="memory.facets"):
    """Memories of a selection, counted. The values of each facet are the most frequent ones; `months` are the latest,
    such as `2026-05`, of `occurred_at` in the time zone that was asked for. A memory counts in each of its scopes
    (`user:ana` and `session:s1`), and in `global` if it has none."""

    total: int
    kinds: list[FacetValue]
    scopes: list[FacetValue]
    sources: list[FacetValue]
    tags: list[FacetValue]
    months: list[FacetValue]
