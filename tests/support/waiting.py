"""Waits for something that should happen, and says what it waited for when it does not."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Iterator
from operator import not_
from typing import Any

from memoranda.clock import now_micros
from memoranda.store.core import Core

SECONDS = 120.0
"""Long enough for a busy machine: a wait that is met ends at once, whatever the limit."""
FIRST, LONGEST, GROWTH = 0.002, 0.1, 1.5
DUE = "SELECT kind FROM jobs WHERE state IN ('queued', 'running') AND run_at <= ?"


def until(
    check: Callable[[], Any],
    what: str,
    seconds: float = SECONDS,
    *,
    accept: Callable[[Any], Any] = bool,
    every: float = LONGEST,
) -> Any:
    """The first value of `check` that `accept` is true of; without `accept`, the first true value.

    `every` is the longest pause in seconds: shorter for a state that lasts only a moment. An error that `check` raises
    ends the wait.

    Raises:
        AssertionError: there was none within `seconds`; says `what` was waited for and the last value.
    """
    __tracebackhide__ = True
    pauses = _pauses(seconds, every)
    while not accept(value := check()):
        time.sleep(_next(pauses, what, seconds, value))
    return value


async def until_async(
    check: Callable[[], Any],
    what: str,
    seconds: float = SECONDS,
    *,
    accept: Callable[[Any], Any] = bool,
    every: float = LONGEST,
) -> Any:
    """`until` on an event loop; `check` may also be a coroutine function."""
    __tracebackhide__ = True
    pauses = _pauses(seconds, every)
    while not accept(value := await _result(check())):
        await asyncio.sleep(_next(pauses, what, seconds, value))
    return value


def until_no_job_is_due(core: Core) -> None:
    """Wait until no job of any tenant is due: files are indexed, texts embedded, background responses ended."""
    until(lambda: core.store.db.read(lambda c: c.select(DUE, [now_micros()])), "no job", accept=not_)


def _pauses(seconds: float, longest: float) -> Iterator[float]:
    end, pause = time.monotonic() + seconds, FIRST
    while time.monotonic() < end:
        yield min(pause, longest)
        pause *= GROWTH


def _next(pauses: Iterator[float], what: str, seconds: float, value: Any) -> float:
    __tracebackhide__ = True
    pause = next(pauses, None)
    assert pause is not None, f"not within {seconds:g} s: {what}; the last value is {value!r}"
    return pause


async def _result(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
