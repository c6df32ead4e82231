"""How long changes occupy the writing thread: no other change begins meanwhile."""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

log = logging.getLogger("memoranda.storage")
SLOW_SECONDS = 0.25
"""The most seconds that a change should occupy the writer; a longer one is logged."""
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the histograms' buckets, in seconds; one more bucket has no bound."""


class Spread(NamedTuple):
    """A histogram: the number of observations in each bucket, not cumulated, and their sum in seconds."""

    counts: Sequence[int]
    seconds: float


class Histogram:
    """Seconds by bucket, and the longest of them. Written by one thread, read by any."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._counts = [0] * (len(BOUNDS) + 1)
        self._seconds = 0.0

    def observe(self, seconds: float) -> None:
        """Counts one observation."""
        self.longest = max(self.longest, seconds)
        self._counts[bisect_left(BOUNDS, seconds)] += 1
        self._seconds += seconds

    def spread(self) -> Spread:
        """Return the observations so far."""
        return Spread(self._counts.copy(), self._seconds)


class Holds:
    """How long each change and each transaction occupied the writer.

    `changes` is by kind, the package that made a change: its statements and the index updates after its commit.
    `transactions` has one observation for each transaction, with the commit, and for each work outside a transaction.
    """

    def __init__(self) -> None:
        self.changes: dict[str, Histogram] = {}
        self.transactions = Histogram()

    def changed(self, work: Callable[..., Any], seconds: float) -> None:
        """Observe one change; log it if it was slow."""
        name = origin(work)
        kind = kind_of(name)
        if kind not in self.changes:
            self.changes[kind] = Histogram()
        self.changes[kind].observe(seconds)
        if seconds > SLOW_SECONDS:
            log.debug("%s kept the writer busy for %.0f ms", name, 1e3 * seconds)

    def ended(self, changes: int, seconds: float, commit_seconds: float) -> None:
        """Observe one transaction of so many changes; log the commit if it was slow."""
        self.transactions.observe(seconds)
        if commit_seconds > SLOW_SECONDS:
            log.debug(
                "the commit of %d changes kept the writer busy for %.0f ms", changes, 1e3 * commit_seconds
            )


def origin(work: Callable[..., Any]) -> str:
    """Return the dotted name of the function that a change runs; a wrapper's is that of what it wraps."""
    inner: Any = work
    while (next_ := getattr(inner, "__wrapped__", None) or getattr(inner, "func", None)) is not None:
        inner = next_
    return f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', type(inner).__name__)}"


def kind_of(name: str) -> str:
    """Return the package of a dotted name, `other` for one that is not of this library."""
    first, _, rest = name.partition(".")
    return rest.partition(".")[0] if first == "memoranda" else "other"
