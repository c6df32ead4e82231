"""Waiting for files that were just attached, so that callers need not poll for small ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from memoranda.errors import InvalidInput
from memoranda.knowledge.values import Batch, StoreFile
from memoranda.store.core import Core

T = TypeVar("T")
MOST_WAIT = 10.0
"""Seconds."""


def check_wait(seconds: float) -> None:
    """Refuse an invalid time to wait.

    Raises:
        InvalidInput: it is below 0, or too long.
    """
    if not 0 <= seconds <= MOST_WAIT:
        raise InvalidInput("wait", f"must be between 0 and {MOST_WAIT:g} seconds; 0 does not wait")


async def settled(
    core: Core, seconds: float, now: T, again: Callable[[], Awaitable[T]], done: Callable[[T], bool]
) -> T:
    """Return the attachment as it is `now`, or from `again` once it is `done`; at most so many seconds later."""
    if not seconds or done(now):
        return now
    return await core.jobs.until_ended(again, done, seconds)


def is_settled(value: StoreFile | Batch) -> bool:
    """Return True if a file of a store, or a batch, is no longer in progress."""
    return value.status != "in_progress"


def none_in_progress(files: Sequence[StoreFile]) -> bool:
    """Return True if none of these files is in progress."""
    return all(map(is_settled, files))
