"""How many memories of a selection there are by kind, scope, source, tag and month."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta

from memoranda.clock import moment
from memoranda.filters import Filter
from memoranda.storage.sql.base import Connection, Database
from memoranda.storage.sql.where import compile_where
from memoranda.store import listing
from memoranda.store.access import PLACES
from memoranda.store.rows import Record
from memoranda.types import Facets, FacetValue

DAY = 86_400_000_000
"""Microseconds."""
ERA = 719_162
"""Days from the year 1 to 1970: no moment is earlier, so that days are counted from 0."""
NOWHERE = " AND ".join(f"{place}_id IS NULL" for place in PLACES)
GLOBAL = "global"


class _Counts:
    """Counts by value. `tags` are by the JSON of the tags of a memory."""

    def __init__(self) -> None:
        self.kinds = Counter[str]()
        self.scopes = Counter[str]()
        self.sources = Counter[str]()
        self.tags = Counter[str]()
        self.days = Counter[int]()

    def add(self, row: Record) -> None:
        """Count one row."""
        self.kinds[row.kind] += 1
        ids = {place: getattr(row, f"{place}_id") for place in PLACES}
        scopes = [f"{place}:{id_}" for place, id_ in ids.items() if id_ is not None]
        self.scopes.update(scopes or [GLOBAL])
        if row.source is not None:
            self.sources[row.source] += 1
        self.tags[row.tags] += 1
        self.days[row.occurred_at // DAY + ERA] += 1


def facets(db: Database, tenant: str, where: Filter, limit: int) -> Facets:
    """Return the counts of the rows that pass: of each facet at most `limit` values, most frequent first, then by name;
    of months the latest."""
    counts = db.read(lambda c: _counted(c, tenant, where), tenant)
    tags = Counter[str]()
    for listed, number in counts.tags.items():
        for tag in json.loads(listed):
            tags[tag] += number
    months = Counter[str]()
    for day, number in counts.days.items():
        date = moment(0) + timedelta(days=day - ERA)
        months[f"{date.year:04}-{date.month:02}"] += number
    return Facets(
        total=counts.kinds.total(),
        kinds=_top(counts.kinds, limit),
        scopes=_top(counts.scopes, limit),
        sources=_top(counts.sources, limit),
        tags=_top(tags, limit),
        months=_values(sorted(months.items(), reverse=True)[:limit]),
    )


def _counted(c: Connection, tenant: str, where: Filter) -> _Counts:
    compiled, counts = compile_where(where), _Counts()
    if not compiled.exact:
        after: int | None = None
        while passing := listing.page(c, tenant, where, limit=listing.SCAN, after=after, descending=False):
            for row in passing:
                counts.add(row)
            after = passing[-1].seq
        return counts

    def grouped(expression: str, condition: str = "TRUE") -> dict[str, int]:
        sql = (
            f"SELECT {expression}, count(*) FROM memories WHERE {listing.ALL} AND ({compiled.sql}) AND {condition}"
            " GROUP BY 1"
        )
        return dict(c.select(sql, [tenant, *compiled.params]))

    counts.kinds.update(grouped("kind"))
    for place in PLACES:
        ids = grouped(f"{place}_id", f"{place}_id IS NOT NULL")
        counts.scopes.update({f"{place}:{id_}": number for id_, number in ids.items()})
    counts.scopes[GLOBAL] = sum(grouped("1", NOWHERE).values())
    counts.sources.update(grouped("source", "source IS NOT NULL"))
    counts.tags.update(grouped("tags", "tags <> '[]'"))
    counts.days.update(
        {int(day): number for day, number in grouped(f"(occurred_at + {ERA * DAY}) / {DAY}").items()}
    )
    return counts


def _top(counts: Mapping[str, int], limit: int) -> list[FacetValue]:
    there = [item for item in counts.items() if item[1]]
    return _values(sorted(there, key=lambda item: (-item[1], item[0]))[:limit])


def _values(counts: Iterable[tuple[str, int]]) -> list[FacetValue]:
    return [FacetValue(value=value, count=count) for value, count in counts]
