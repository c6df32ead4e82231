"""How many memories of a selection there are by kind, scope, source, tag and month."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, tzinfo
from typing import Any

from memoranda.clock import moment, zone_named
from memoranda.errors import InvalidInput
from memoranda.filters import Filter
from memoranda.memories.overviews import Facets, FacetValue
from memoranda.storage.sql.base import Connection, Database
from memoranda.storage.sql.where import compile_where
from memoranda.store import listing
from memoranda.store.access import PLACES
from memoranda.store.rows import Record

SECOND, DAY = 1_000_000, 86_400_000_000
"""Microseconds."""
ERA = 719_162 * DAY
"""From the year 1 to 1970: no moment is earlier, so that days are counted from 0."""
NOWHERE = " AND ".join(f"{place}_id IS NULL" for place in PLACES)
GLOBAL = "global"


class _Counts:
    """Counts by value. `tags` are by the JSON of the tags of a memory."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self.kinds = Counter[str]()
        self.scopes = Counter[str]()
        self.sources = Counter[str]()
        self.tags = Counter[str]()
        self.months = Counter[str]()

    def add(self, row: Record) -> None:
        """Count one row."""
        self.kinds[row.kind] += 1
        ids = {place: getattr(row, f"{place}_id") for place in PLACES}
        scopes = [f"{place}:{id_}" for place, id_ in ids.items() if id_ is not None]
        self.scopes.update(scopes or [GLOBAL])
        if row.source is not None:
            self.sources[row.source] += 1
        self.tags[row.tags] += 1
        self.months[_month(row.occurred_at, self.zone)] += 1


def zone_of(name: Any) -> tzinfo:
    """Return the time zone of a name such as `Europe/Berlin`.

    Raises:
        InvalidInput: there is none of this name.
    """
    try:
        return zone_named(name)
    except ValueError as exc:
        raise InvalidInput("time_zone", str(exc)) from exc


def facets(db: Database, tenant: str, where: Filter, limit: int, zone: tzinfo = UTC) -> Facets:
    """Return the counts of the rows that pass: of each facet at most `limit` values, most frequent first, then by name;
    of months, which are those of `zone`, the latest."""
    counts = db.read(lambda c: _counted(c, tenant, where, zone), tenant)
    tags = Counter[str]()
    for listed, number in counts.tags.items():
        for tag in json.loads(listed):
            tags[tag] += number
    return Facets(
        total=counts.kinds.total(),
        kinds=_top(counts.kinds, limit),
        scopes=_top(counts.scopes, limit),
        sources=_top(counts.sources, limit),
        tags=_top(tags, limit),
        months=_values(sorted(counts.months.items(), reverse=True)[:limit]),
    )


def _counted(c: Connection, tenant: str, where: Filter, zone: tzinfo) -> _Counts:
    compiled, counts = compile_where(where), _Counts(zone)
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
    counts.months = _months(grouped, zone)
    return counts


def _months(grouped: Callable[..., Mapping[Any, int]], zone: tzinfo) -> Counter[str]:
    """Return the counts by month out of those by day in UTC. A day that belongs to two months of the zone is counted by
    second."""
    months, day_of, parted = Counter[str](), f"(occurred_at + {ERA}) / {DAY}", []
    for day, number in grouped(day_of).items():
        start = int(day) * DAY - ERA
        month = _month(start, zone)
        if month == _month(start + DAY - SECOND, zone):
            months[month] += number
        else:
            parted.append(str(int(day)))
    if parted:
        seconds = grouped(f"(occurred_at + {ERA}) / {SECOND}", f"{day_of} IN ({', '.join(parted)})")
        for second, number in seconds.items():
            months[_month(int(second) * SECOND - ERA, zone)] += number
    return months


def _month(at: int, zone: tzinfo) -> str:
    """Return the month of a moment, such as `2026-05`."""
    date = moment(at)
    with contextlib.suppress(OverflowError):  # the first and the last day of the calendar stay those of UTC
        date = date.astimezone(zone)
    return f"{date.year:04}-{date.month:02}"


def _top(counts: Mapping[str, int], limit: int) -> list[FacetValue]:
    there = [item for item in counts.items() if item[1]]
    return _values(sorted(there, key=lambda item: (-item[1], item[0]))[:limit])


def _values(counts: Iterable[tuple[str, int]]) -> list[FacetValue]:
    return [FacetValue(value=value, count=count) for value, count in counts]
