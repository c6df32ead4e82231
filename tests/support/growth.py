"""Whether work takes time in proportion to what it is given, by times of one run: a slow or busy machine stretches them
alike, so that nothing is said of how long anything may take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TIMES, SLACK = 8, 3
"""How many times as much the larger work is given, and how far its time may be above so many times the smaller's."""
TRIES = 3
LEAST = 0.001
"""Seconds: what is quicker counts as this."""


def grows_in_proportion(work: Callable[[T], object], of: Callable[[int], T], size: int) -> None:
    """Works on `of(size)` and then on `TIMES` times as much, each at its best of some tries; by the processor's time of
    this process, so that what else the machine does counts little. Choose a `size` that takes some milliseconds: a time
    that grows with the square is `TIMES` times too long, but where the smaller takes less than `LEAST` or has a fixed
    part, that is hidden.

    Raises:
        AssertionError: the larger took more than `SLACK * TIMES` times as long as the smaller.
    """
    __tracebackhide__ = True

    def seconds(given: T) -> float:
        began = time.process_time()
        work(given)
        return time.process_time() - began

    few = of(size)
    small, large = max(LEAST, min(seconds(few) for _ in range(TRIES))), float("inf")
    many = of(size * TIMES)
    for _ in range(TRIES):
        large = min(large, seconds(many))
        if large <= SLACK * TIMES * small:
            return
    raise AssertionError(
        f"{TIMES} times {size} takes {large / small:.1f} times as long: {large:.3f} s, not {small:.3f} s"
    )
