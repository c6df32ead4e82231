"""Cuts messages of a channel into sessions: no two neighbours of a session are further apart than the gap.

Pure functions. Times and gaps are microseconds. Whatever the order of arrival, the same messages end up in the same
sessions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

import msgspec

MINUTE = 60_000_000
PATIENCE = MINUTE
"""How long at most a session stays open after its last message arrived, if that is dated long ago: sessions of an
imported history are closed soon."""
FOREVER = 1 << 62
"""A gap wider than any other."""


class Cluster(msgspec.Struct):
    """Messages of one batch that belong together: their places in the batch, and when the first and the last were
    sent."""

    started_at: int
    ended_at: int
    places: list[int] = msgspec.field(default_factory=list)


class Timed(Protocol):
    """A value with a beginning and an end."""

    @property
    def started_at(self) -> int: ...

    @property
    def ended_at(self) -> int: ...


S = TypeVar("S", bound=Timed)


def gap_of(minutes: float) -> int:
    """Return the gap in microseconds."""
    return round(minutes * MINUTE)


def clusters(times: Sequence[int], gap: int) -> list[Cluster]:
    """Return the messages sent at `times` in clusters, the earliest first; within a cluster in order of arrival. Two
    that are exactly `gap` apart belong together."""
    results: list[Cluster] = []
    for place in sorted(range(len(times)), key=lambda i: (times[i], i)):
        if results and times[place] - results[-1].ended_at <= gap:
            results[-1].ended_at = times[place]
            results[-1].places.append(place)
        else:
            results.append(Cluster(times[place], times[place], [place]))
    for cluster in results:
        cluster.places.sort()
    return results


def near(cluster: Cluster, sessions: Iterable[S], gap: int) -> list[S]:
    """Return those of `sessions` that a cluster belongs to, the earliest first. A cluster merges several into one,
    which keeps the id of the first."""
    matching = [
        session
        for session in sessions
        if session.ended_at >= cluster.started_at - gap and session.started_at <= cluster.ended_at + gap
    ]
    return sorted(matching, key=lambda session: (session.started_at, session.ended_at))


def due_at(ended_at: int, last_seen_at: int, gap: int) -> int:
    """Return when a session is closed if no message follows: a gap after its last message. A message dated in the
    future, perhaps by a wrong clock, keeps no session open, and one of the past no longer than `PATIENCE`."""
    return max(min(ended_at, last_seen_at) + gap, last_seen_at + min(gap, PATIENCE))
