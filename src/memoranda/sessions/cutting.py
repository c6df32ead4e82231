"""Which messages make a session: those of a channel between which it was never silent for longer than the gap.

Values alone. Times and gaps are microseconds. Whatever the order in which messages come, the same messages end up in
the same sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

MINUTE = 60_000_000
PATIENCE = MINUTE
"""For how long at most a session stays open after its last message came, when that was said long ago: what is read in
from a history is closed soon."""
FOREVER = 1 << 62
"""A gap that nothing is wider than."""


@dataclass(slots=True)
class Cluster:
    """Messages of one batch that belong together: their places in the batch, and from when to when they were said."""

    started_at: int
    ended_at: int
    places: list[int] = field(default_factory=list)


class Timed(Protocol):
    """What has a beginning and an end."""

    @property
    def started_at(self) -> int: ...

    @property
    def ended_at(self) -> int: ...


S = TypeVar("S", bound=Timed)


def gap_of(minutes: float) -> int:
    """The gap in microseconds."""
    return round(minutes * MINUTE)


def clusters(times: Sequence[int], gap: int) -> list[Cluster]:
    """The messages said at `times` in clusters, the earliest first; within one in the order in which they came. Two
    that are exactly `gap` apart belong together."""
    found: list[Cluster] = []
    for place in sorted(range(len(times)), key=lambda i: (times[i], i)):
        if found and times[place] - found[-1].ended_at <= gap:
            found[-1].ended_at = times[place]
            found[-1].places.append(place)
        else:
            found.append(Cluster(times[place], times[place], [place]))
    for one in found:
        one.places.sort()
    return found


def near(cluster: Cluster, held: Iterable[S], gap: int) -> list[S]:
    """The sessions among `held` that a cluster belongs to; where there are several, it makes them one. The first is the
    one that began first, whose id stays."""
    found = [
        one
        for one in held
        if one.ended_at >= cluster.started_at - gap and one.started_at <= cluster.ended_at + gap
    ]
    return sorted(found, key=lambda one: (one.started_at, one.ended_at))


def due_at(ended_at: int, last_seen_at: int, gap: int) -> int:
    """When a session is closed if nothing more comes: a gap after what was said last. A message that is dated in the
    future, by a wrong clock perhaps, holds nothing open, and one of the past not for longer than `PATIENCE`."""
    return max(min(ended_at, last_seen_at) + gap, last_seen_at + min(gap, PATIENCE))
